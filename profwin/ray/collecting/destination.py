"""The destination: the folder that is collected into, of which no path is followed through a link."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat

from profwin.errors import SettingError
from profwin.ray.collecting.names import MARKER, PART

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

__all__ = ["Destination", "open_part", "open_whole", "status_of"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Destination:
    """A folder that one process collects into. Use it as a context manager.

    Args:
        directory: of the folder; made where it is not there.

    Raises:
        SettingError: another process collects into it.
        OSError: it cannot be used.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        self._descriptor = os.open(directory, _FOLDER)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise SettingError("directory", directory, "a folder that no other process collects into now") from None
        except OSError:
            pass  # some file systems over a network lock no folders

    def __enter__(self) -> Destination:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def folder(self, parts: Sequence[str]) -> int:
        """Return a descriptor of a folder below, which is made where it is not there. The caller closes it.

        Raises:
            OSError: something else has its name, as a link.
        """
        at = os.dup(self._descriptor)
        for part in parts:
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o777, dir_fd=at)
                below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise OSError(error.errno, f"{part!r} in {self.directory} is a link or a file") from None
                raise
            finally:
                os.close(at)
            at = below
        return at

    @contextlib.contextmanager
    def marked(self, parts: Sequence[str]) -> Iterator[str]:
        """Have a file in a folder below by which a process that sees it there knows that folder; give its name."""
        at = self.folder(parts)
        try:
            name = MARKER + os.urandom(8).hex()
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=at))
            try:
                yield name
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=at)
        finally:
            os.close(at)
            # Where nothing came of it, no empty folder stays.
            for depth in range(len(parts), 0, -1):
                with contextlib.suppress(OSError):
                    self._drop(parts[:depth])

    def _drop(self, parts: Sequence[str]) -> None:
        at = self.folder(parts[:-1])
        try:
            os.rmdir(parts[-1], dir_fd=at)
        finally:
            os.close(at)


def open_whole(folder: int, name: str) -> int:
    """Open a file of the folder to be read, without following a link or waiting for what is no file.

    Raises:
        OSError: there is none that can be opened.
    """
    return os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)


def open_part(folder: int, name: str) -> int:
    """Open what a file of the folder is written into until it is whole; made where it is not there.

    Raises:
        OSError: it cannot be, or it is no regular file, or one with another name, which would be changed with it.
    """
    part = os.open(name + PART, os.O_RDWR | os.O_CREAT | _FILE, 0o666, dir_fd=folder)
    status = os.fstat(part)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(part)
        raise OSError(f"{name + PART} is not this program's")
    return part


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return what has a name in the folder, itself if it is a link; None if nothing has."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
