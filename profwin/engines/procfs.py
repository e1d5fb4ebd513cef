"""Reading other processes in ``/proc``: whatever stands there, and however soon it is gone.

Command lines and environments may hold tokens. They are for looking things up: nobody writes
them to a log or a journal.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["arguments", "environment", "family", "links", "numbers", "parents", "program", "within"]

PROC = "/proc"
_ENDED = (b"Z", b"X", b"x")
_ALL = 0x40000000
"""Linux's ``__WALL``: children of whatever kind, not only those whose end is a SIGCHLD."""
_MOST = 8 << 20
"""Most bytes that are read of one file: more than the kernel lets a program be started with."""


def numbers() -> list[int]:
    """List the processes that can be seen from here; empty where ``/proc`` cannot be read."""
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return []


def parents(pids: Iterable[int] | None = None) -> dict[int, int]:
    """Return the parents of processes that have not ended.

    Args:
        pids: the processes; None for all that can be seen from here.
    """
    found = {}
    for pid in numbers() if pids is None else pids:
        try:
            with open(f"{PROC}/{pid}/stat", "rb", buffering=0) as file:
                text = file.read(4096)
            # The command's name is in parentheses and may hold spaces and parentheses itself.
            state, parent = text[text.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in _ENDED:
                found[pid] = int(parent)
        except (OSError, ValueError):
            continue  # it has ended meanwhile
    return found


def within(top: int, family: dict[int, int]) -> list[int]:
    """List a process and all below it, parents before children.

    Args:
        top: the process; it need not be alive.
        family: as :func:`parents` returns it.
    """
    children: dict[int, list[int]] = {}
    for pid, parent in family.items():
        children.setdefault(parent, []).append(pid)
    # Numbers are read one after the other and may be given out anew meanwhile: no process is listed twice.
    found = {top: None}
    queue = [top]
    while queue:
        for child in sorted(children.get(queue.pop(0), ())):
            if child not in found:
                found[child] = None
                queue.append(child)
    return list(found)


def family() -> list[int]:
    """List this process and all below it.

    The kernel says in 1 us whether there are children at all (``waitid``, which neither waits here nor takes an end
    from whoever waits for it); reading ``/proc`` takes 12 us for each process of the host, so it is done only then.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _ALL)
    except ChildProcessError:
        return [os.getpid()]
    except OSError:
        pass  # an old kernel: it is not known
    return within(os.getpid(), parents())


def arguments(pid: int) -> list[str]:
    """Return the command line of a process; empty where it has none, is gone, or may not be seen.

    A process can overwrite it: vLLM's and SGLang's workers put a title there (``VLLM::Worker_TP0``). What is no UTF-8
    is kept as surrogates.
    """
    text = _read(pid, "cmdline")
    return [] if not text else [part.decode("utf-8", "surrogateescape") for part in text.rstrip(b"\0").split(b"\0")]


def environment(pid: int) -> dict[str, str] | None:
    """Return the variables that a process was started with; None where it is gone or may not be read.

    What it has set since does not show, but in the processes that it has started (not merely forked) since.
    """
    text = _read(pid, "environ")
    if text is None:
        return None
    pairs = (entry.decode("utf-8", "surrogateescape").partition("=") for entry in text.split(b"\0"))
    found: dict[str, str] = {}
    for name, equals, value in pairs:
        if name and equals:
            found.setdefault(name, value)  # of a name that is there twice, getenv finds the first
    return found


def program(pid: int) -> str:
    """Return the file name of the program that a process runs; empty where it may not be seen."""
    try:
        return os.path.basename(os.readlink(f"{PROC}/{pid}/exe"))
    except OSError:
        return ""


def links(pid: int) -> Iterator[tuple[str, str]]:
    """Go through the open files of a process that may be seen: the link's path, and where it leads."""
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield f"{folder}/{name}", os.readlink(f"{folder}/{name}")
        except OSError:
            continue  # closed meanwhile


def _read(pid: int, name: str) -> bytes | None:
    try:
        with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
            parts = []
            size = 0
            while size < _MOST and (part := file.read(1 << 16)):
                parts.append(part)
                size += len(part)
    except OSError:
        return None
    return b"".join(parts)
