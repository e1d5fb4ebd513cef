"""Which process is meant, so that a number that the kernel gives out anew is not taken for it."""

from __future__ import annotations

import functools
import os

import msgspec

from profwin.registry.host import boot_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ProcessIdentity", "gone", "identities", "identity", "within"]

_EXITING = 0x4  # PF_EXITING of the kernel's task flags


class ProcessIdentity(msgspec.Struct, frozen=True, array_like=True):
    """A process, told apart from any later one that gets its number.

    Attributes:
        pid: process number, in the process namespace ``namespace``.
        start: field 22 of ``/proc/<pid>/stat``: clock ticks from the boot to the process's start.
        boot: the kernel's boot id; all containers of a host see the same.
        namespace: inode of the process namespace in which ``pid`` counts.
    """

    pid: int
    start: int
    boot: str
    namespace: int


@functools.cache
def _boot() -> str:
    return boot_id()


@functools.cache
def _own(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, _stat(pid)[0], _boot(), os.stat("/proc/self/ns/pid").st_ino)


def _stat(pid: int) -> tuple[int, str, int]:
    """Read start time, state and flags. Raises OSError where there is nothing to read."""
    with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
        text = file.read(4096)
    # The command's name is in parentheses and may hold spaces and parentheses itself.
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[19]), fields[0].decode("ascii"), int(fields[6])


def identity(pid: int | None = None) -> ProcessIdentity:
    """Identify a process of this process namespace.

    Args:
        pid: its number; None for this process.

    Raises:
        OSError: there is no such process (``ProcessLookupError``), or ``/proc`` cannot be read.
    """
    own = _own(os.getpid())
    if pid is None or pid == own.pid:
        return own
    try:
        start = _stat(pid)[0]
    except FileNotFoundError as problem:
        raise ProcessLookupError(f"there is no process {pid}") from problem
    return ProcessIdentity(pid, start, own.boot, own.namespace)


def identities(pids: Iterable[int]) -> list[ProcessIdentity]:
    """Identify processes, without those that have ended since they were listed: a server starts and ends helpers.

    Raises:
        OSError: there were some and all have ended (``ProcessLookupError``), or ``/proc`` cannot be read.
    """
    found: list[ProcessIdentity] = []
    missing = None
    for pid in pids:
        try:
            found.append(identity(pid))
        except ProcessLookupError as problem:
            missing = problem
    if missing is not None and not found:
        raise missing
    return found


def gone(process: ProcessIdentity) -> bool:
    """Say whether a process is *proven* gone; False where it lives and where nobody can tell from here.

    Proofs are: another boot, no such number, another start time, or a process that is exiting or a zombie (one
    that is being killed gives up its locks before it looks dead; measured in a run of random kills). In another
    process namespace nothing is proven. Namespaces that differ only in their clock (time namespaces) are not
    told apart.
    """
    own = _own(os.getpid())
    if process.boot != own.boot:
        return True
    if process.namespace != own.namespace or process.pid <= 0:
        return False
    try:
        start, state, flags = _stat(process.pid)
    except (OSError, ValueError):
        # Other users' processes may be hidden from /proc (hidepid): only the kernel's own answer is a proof.
        return _absent(process.pid)
    return start != process.start or state in "ZXx" or bool(flags & _EXITING)


def _absent(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def within(processes: Sequence[ProcessIdentity], others: frozenset[ProcessIdentity]) -> bool:
    """Say whether there are ``processes`` and all are among ``others``."""
    return bool(processes) and others.issuperset(processes)
