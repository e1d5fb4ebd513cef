"""Imitates ``profiler/analysis/prof_common_func``: ``_constant.py``, ``_singleton.py`` and ``_utils.py``."""

import functools
import os


class Constant:
    """Names and limits."""

    FRAMEWORK_DIR = "FRAMEWORK"
    OUTPUT_DIR = "ASCEND_PROFILER_OUTPUT"
    PROFILER_META_DATA = "profiler_metadata.json"
    MAX_WORKER_NAME_LENGTH = 226
    MAX_FILE_NAME_LENGTH = 255
    DEFAULT_PROCESS_NUMBER = os.cpu_count() // 2
    LEVEL0 = "Level0"
    LEVEL1 = "Level1"
    LEVEL2 = "Level2"
    LEVEL_NONE = "Level_none"
    AicPipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    AicArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    AicMemory = "ACL_AICORE_MEMORY_BANDWIDTH"
    AicMemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    AicMemoryUB = "ACL_AICORE_MEMORY_UB"
    AicResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    AicL2Cache = "ACL_AICORE_L2_CACHE"
    AicMemoryAccess = "ACL_AICORE_MEMORY_ACCESS"
    AicMetricsNone = "ACL_AICORE_NONE"
    Db = "db"
    Text = "text"
    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"
    NUMA = "numa"
    END_INFO = "end_info"
    MSPROF_STATIC_ENV = "PROFILER_SAMPLECONFIG"
    MSPROF_DYNAMIC_ENV = "PROFILING_MODE"


class Singleton:
    """Makes one object of a class."""

    def __init__(self, cls):
        self._cls = cls
        self._instance = {}

    def __call__(self):
        """Return it."""
        if self._cls not in self._instance:
            self._instance[self._cls] = self._cls()
        return self._instance[self._cls]


def print_warn_msg(message: str):
    """Warn: of the first rank alone."""
    if os.environ.get("RANK", "0") == "0":
        print(f"[WARNING] [{os.getpid()}] profiler.py: {message}", flush=True)


def print_error_msg(message: str):
    """Say what failed."""
    print(f"[ERROR] [{os.getpid()}] profiler.py: {message}", flush=True)


def check_msprof_env() -> bool:
    """Say whether the process was not launched under msprof; what is found first counts for ever."""
    if not hasattr(check_msprof_env, "_called"):
        check_msprof_env._called = True
        found = os.getenv(Constant.MSPROF_STATIC_ENV) or os.getenv(Constant.MSPROF_DYNAMIC_ENV)
        if found:
            print_warn_msg("torch_npu profiler api is not effective.")
        check_msprof_env._cached_result = not found
    return check_msprof_env._cached_result


def no_exception_func(default_ret=None):
    """Swallow what a function raises, and print it."""

    def decorator(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            try:
                return func(*args, **kwargs)
            except Exception as ex:
                print_error_msg(f"Call {func.__name__} failed. Exception: {ex}")
                return default_ret

        return wrapper

    return decorator
