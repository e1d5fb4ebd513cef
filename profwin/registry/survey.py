"""Who holds what on this host, found without disturbing anybody."""

from __future__ import annotations

import fcntl
import os
import stat
from urllib.parse import unquote

import msgspec

from profwin.errors import RegistryError
from profwin.registry.file import MARK_OFFSET
from profwin.registry.holder import MARK_LIMIT, RECORD_SIZE, Holder, Mark, decode, decode_mark
from profwin.registry.process import gone, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.registry.lock import Registry

__all__ = ["DeviceState", "confirm", "survey"]


class DeviceState(msgspec.Struct, frozen=True):
    """One device as the registry knows it.

    Attributes:
        key: the device.
        state: ``"free"``; ``"held"``; ``"unknown"``: nobody holds it, but an engine may be recording on it;
            ``"unusable"``: its lock file cannot be read or trusted, so nobody collects on it.
        holder: what the holder wrote, if it is held and its record can be believed.
        mark: the mark left for an engine, unless that is proven dead.
        since: seconds since the epoch (wall clock) when it was taken; None unless it is held.
        problem: what is wrong with an unusable file.
    """

    key: str
    state: str
    holder: Holder | None = None
    mark: Mark | None = None
    since: float | None = None
    problem: str | None = None


def survey(directory: str) -> list[DeviceState]:
    """Look at every lock file of a directory, sorted by device.

    Whether a file is locked is read from ``/proc/locks``. That list leaves out the locks of other process
    namespaces: only where the record speaks of one, the file is locked for a moment (shared, without waiting) to
    find out.

    Raises:
        RegistryError: the directory cannot be read.
    """
    try:
        names = sorted(os.listdir(directory))
    except OSError as problem:
        raise RegistryError(directory, f"cannot be read: {problem.strerror}") from problem
    locked = _locked()
    return [_look(f"{directory}/{name}", unquote(name[:-5]), locked) for name in names if name.endswith(".lock")]


def confirm(registry: Registry, key: str) -> tuple[bool, DeviceState | None]:
    """Remove a device's mark, as :meth:`profwin.registry.lock.Registry.confirm` does.

    Returns:
        Whether there was one to remove, and what the device was like before; None where there is no such device.

    Raises:
        RegistryError: the lock file cannot be used or trusted.
    """
    state = next((state for state in registry.survey() if state.key == key), None)
    return registry.confirm(key), state


def _locked() -> set[tuple[int, int, int]] | None:
    """Read which files are locked, as major and minor device number and inode; None if nobody can tell."""
    found = set()
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            for line in file:
                # 1: FLOCK  ADVISORY  WRITE 21389 fe:00:2146657 0 EOF; waiters have an arrow after the number.
                fields = line.split()
                if len(fields) >= 6 and fields[1] == "FLOCK" and fields[3] == "WRITE":
                    major, minor, inode = fields[5].split(":")
                    found.add((int(major, 16), int(minor, 16), int(inode)))
    except (OSError, ValueError):
        return None
    return found


def _look(path: str, key: str, locked: set[tuple[int, int, int]] | None) -> DeviceState:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        return DeviceState(key, "unusable", problem=problem.strerror)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return DeviceState(key, "unusable", problem="not a regular file with one link")
        holder = decode(os.pread(number, RECORD_SIZE, 0))
        mark = decode_mark(os.pread(number, MARK_LIMIT, MARK_OFFSET))
        held = _held(number, status, holder, locked)
    except OSError as problem:
        return DeviceState(key, "unusable", problem=problem.strerror)
    finally:
        os.close(number)
    if mark is not None and mark.dead():
        mark = None
    if not held:
        return DeviceState(key, "free" if mark is None else "unknown", mark=mark)
    if holder is not None and (not holder.held or gone(holder.identity)):
        holder = None
    # The record is written when the device is taken, and nothing else touches the file but a mark.
    return DeviceState(key, "held", holder, mark, status.st_mtime)


def _held(number: int, status: os.stat_result, holder: Holder | None, locked: set[tuple[int, int, int]] | None) -> bool:
    if locked is not None:
        if (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino) in locked:
            return True
        # Some file systems show another device number there than here: then only the inode tells.
        elsewhere = any(status.st_ino == inode for _, _, inode in locked)
        ours = holder is None or not holder.held or holder.namespace == identity().namespace
        if ours and not elsewhere:
            return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False  # closing it unlocks
