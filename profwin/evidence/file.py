"""Files that are read and never trusted: opened without waiting, whatever lies there."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["open_regular", "size_in", "why"]


def open_regular(path: str | Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file to read its bytes. Never blocks.

    Args:
        path: of the file.
        buffering: as for `open`.

    Raises:
        OSError: it is something else (a FIFO, a device, a folder), or cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(descriptor, "rb", buffering)


def size_in(directory: str, path: str) -> int | None:
    """Return the size of a file of the run; -1 if there is no such file; None if it is outside the run."""
    if "\0" in path:
        return -1
    inside = os.path.normpath(path)
    if os.path.isabs(inside) or inside.split(os.sep, 1)[0] == os.pardir:
        return None
    try:
        found = os.lstat(os.path.join(directory, inside))
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) else -1


def why(error: Exception) -> str:
    """Return what went wrong in words, without the path and the number that the system's errors have."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
