/* A tool that NVTX loads (NVTX_INJECTION64_PATH) and that writes each call it receives as a line of JSON.

   The declarations are those of NVTX's own headers, as far as they are needed: nvToolsExt.h and nvtxDetail/nvtxTypes.h.
   The calls of the package nvtx are those with a domain. Lines go to the file that NVTX_INJECTION_LOG names, each in
   one write, so that threads and forked children share it; without it nothing is written. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colour_type;
    uint32_t colour;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message; /* of a registered string: what register_string returned */
} Attributes;

typedef void (*Function)(void);
typedef struct {
    size_t size;
    int (*functions_of)(int module, Function ***table, unsigned *count);
} Callbacks;

enum { EXPORT_CALLBACKS = 1, MODULE_CORE2 = 5 };
enum { START = 2, END = 3, PUSH = 4, POP = 5, NAME_CATEGORY = 8, REGISTER_STRING = 10, CREATE = 12, DESTROY = 14 };
enum { MOST_CATEGORIES = 64 };

typedef struct {
    char name[64];
    char *categories[MOST_CATEGORIES];
} Domain;

static int file = -1;
static uint64_t started;

static void say(const char *call, const Domain *domain, const Attributes *given, uint64_t number)
{
    char line[1024], more[768] = "";
    if (file < 0) return;
    if (given) {
        const char *category = domain && given->category < MOST_CATEGORIES ? domain->categories[given->category] : NULL;
        snprintf(more, sizeof more, ", \"name\": \"%s\", \"colour\": %u, \"category\": \"%s\"",
                 given->message_type ? given->message : "", given->colour, category ? category : "");
    }
    if (number) snprintf(more + strlen(more), sizeof more - strlen(more), ", \"number\": %lu", (unsigned long)number);
    int length = snprintf(line, sizeof line, "{\"call\": \"%s\", \"domain\": \"%s\", \"pid\": %d, \"thread\": %ld%s}\n",
                          call, domain ? domain->name : "", (int)getpid(), (long)syscall(SYS_gettid), more);
    if (write(file, line, (size_t)length) != length) abort();
}

static void *create(const char *name)
{
    Domain *domain = calloc(1, sizeof *domain);
    snprintf(domain->name, sizeof domain->name, "%s", name);
    return domain;
}
static void destroy(Domain *domain) { (void)domain; }
static const char *register_string(Domain *domain, const char *text) { (void)domain; return strdup(text); }
static void name_category(Domain *domain, uint32_t category, const char *name)
{
    if (domain && category < MOST_CATEGORIES) domain->categories[category] = strdup(name);
}
static int push(Domain *domain, const Attributes *given) { say("push", domain, given, 0); return 0; }
static int pop(Domain *domain) { say("pop", domain, NULL, 0); return 0; }
static uint64_t start(Domain *domain, const Attributes *given)
{
    uint64_t number = __sync_add_and_fetch(&started, 1);
    say("start", domain, given, number);
    return number;
}
static void end(Domain *domain, uint64_t number) { say("end", domain, NULL, number); }

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    const Callbacks *callbacks = export_table(EXPORT_CALLBACKS);
    Function **table;
    unsigned count;
    const char *path = getenv("NVTX_INJECTION_LOG");
    if (!callbacks || !callbacks->functions_of(MODULE_CORE2, &table, &count) || count <= DESTROY) return 0;
    if (path && file < 0) file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    *table[START] = (Function)start;
    *table[END] = (Function)end;
    *table[PUSH] = (Function)push;
    *table[POP] = (Function)pop;
    *table[NAME_CATEGORY] = (Function)name_category;
    *table[REGISTER_STRING] = (Function)register_string;
    *table[CREATE] = (Function)create;
    *table[DESTROY] = (Function)destroy;
    return 1;
}
