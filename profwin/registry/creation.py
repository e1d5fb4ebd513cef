"""Making lock files and FIFOs that every user can open, and naming what is wrong with those there are."""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from itertools import repeat, starmap

from profwin.errors import RegistryError
from profwin.registry import directory

__all__ = ["ACCESS", "FLAGS", "WATCH_FLAGS", "close_all", "explained", "full", "make_fifo", "open_slowly"]

ACCESS = 0o666
"""The mode of both files, whatever the umask says: any user must be able to lock a device."""
FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""How both files are opened: without O_CREAT, which the kernel may refuse for another user's file in a shared
directory (``fs.protected_regular``, ``fs.protected_fifos``)."""
WATCH_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""How those who wait open the FIFO."""

_TRIES = 20
_PAUSE = 1e-4  # seconds between tries to open a file that another process is just making
_EXPLAINED = {
    errno.ELOOP: "is a symbolic link",
    errno.EISDIR: "is a directory",
    errno.EACCES: "another user lets nobody else open or make it",
    errno.ENXIO: "is not a regular file",
    errno.ENOLCK: "its file system has no locks to give",
    errno.ENOSYS: "its file system has no locks",
    errno.ENOSPC: "its file system is full",
    errno.EROFS: "its file system is read-only",
    errno.ESTALE: "its file system lost it",
}


_close = os.close
_exhaust = deque[None](maxlen=0).extend  # runs an iterator to its end inside one call


def close_all(numbers: deque[int]) -> None:
    """Close descriptors and take them out, each in one call of a C function: see :class:`LockFile`. Never raises."""
    while numbers:
        try:
            _exhaust(map(_close, starmap(numbers.popleft, repeat((), len(numbers)))))
        except (OSError, IndexError):
            continue  # closed all the same, or by a signal handler


def open_slowly(numbers: deque[int], path: str) -> None:
    """Open a lock file by making it, or after another process that just makes it has set its mode.

    Args:
        numbers: gets the descriptor.
        path: of the file.

    Raises:
        OSError: it cannot be made or opened; a RegistryError where that is the directory's fault.
    """
    for tries in range(_TRIES):
        try:
            _create(numbers, path)
        except FileExistsError:
            time.sleep(_PAUSE)
        try:
            if not numbers:
                numbers.extend(map(os.open, (path,), (FLAGS,)))
            return
        except (FileNotFoundError, PermissionError):
            if tries == _TRIES - 1:
                raise


def _create(numbers: deque[int], path: str) -> None:
    try:
        numbers.extend(map(os.open, (path,), (FLAGS | os.O_CREAT | os.O_EXCL,), (ACCESS,)))
        os.fchmod(numbers[0], ACCESS)
    except FileNotFoundError:
        # Somebody deleted the directory: all meet in a new one, and who holds a device learns that it is
        # lost.
        directory.prepare(os.path.dirname(path))


def make_fifo(numbers: deque[int], path: bytes, flags: int) -> None:
    """Make a FIFO where it is missing and open it. Where that fails, waiters look from time to time."""
    try:
        os.mkfifo(path, ACCESS)
    except OSError:
        pass
    try:
        numbers.extend(map(os.open, (path,), (flags,)))
        os.fchmod(numbers[-1], ACCESS)
    except OSError:
        pass


def full(path: str) -> RegistryError:
    """Make the error of a write that the file system cut short."""
    return RegistryError(path, _EXPLAINED[errno.ENOSPC])


def explained(path: str, problem: OSError) -> RegistryError:
    """Say in words what is wrong with a file."""
    if isinstance(problem, RegistryError):
        return problem
    return RegistryError(path, _EXPLAINED.get(problem.errno or 0) or problem.strerror or "cannot be used")
