"""The target: a file that is there whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import secrets
import signal
import stat
import tempfile
import threading
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, NoReturn

__all__ = ["Target"]

_LEVEL = 2
"""Of compression: the next ones cost more time than they save room (measured)."""
_OWN_FILES = "/proc/self/fd"


class Target:
    """Write a file without a name; give it its own when all is written, else leave nothing, even after a kill.

    Where the file system knows no files without a name it has a hidden one meanwhile: only a kill leaves it then.
    Use it as a context manager; what is written inside is there after `finish`.

    Args:
        path: of the file.
        force: whether a file that is there is replaced.
        packed: whether it is compressed; default: where its name ends in ``.gz``.

    Raises:
        FileExistsError: it is there and not to be replaced, or is no file.
        OSError: the directory cannot be written to.
    """

    def __init__(self, path: str, *, force: bool, packed: bool | None = None) -> None:
        self._path, self._force = path, force
        self._refuse()
        self.directory, self._name = os.path.split(os.path.abspath(path))
        packed = self._name.endswith(".gz") if packed is None else packed
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31) if packed else None
        self._nameless, self._temporary = False, ""
        self._handler: Any = None
        self._raw = io.FileIO(self._open(), "wb")
        self._file = io.BufferedWriter(self._raw, 1 << 18)
        self.size = 0

    def __enter__(self) -> Target:
        main = threading.current_thread() is threading.main_thread()
        if self._temporary and main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self._handler = signal.signal(signal.SIGTERM, _leave)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            # Nothing of it is wanted any more; what is still in its buffer may not fit on the disk.
            self._raw.close()
        except OSError:
            pass
        try:
            if self._temporary:
                os.unlink(self._temporary)
        except FileNotFoundError:
            pass  # it never came to be
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    def write(self, data: bytes) -> None:
        """Append to the file."""
        self._file.write(data if self._packer is None else self._packer.compress(data))

    def finish(self) -> None:
        """Write the rest and give the file its name.

        Raises:
            FileExistsError: somebody else has made one meanwhile.
            OSError: the disk is full, or the directory has gone.
        """
        if self._packer is not None:
            self._file.write(self._packer.flush())
        self._file.flush()
        mask = os.umask(0o077)
        os.umask(mask)
        os.fchmod(self._file.fileno(), 0o666 & ~mask)
        self.size = self._file.tell()
        if not self._nameless:
            self._file.close()  # some file systems say only now that the disk is full
        try:
            self._link(self._path)  # unlike a renaming, it never replaces
        except OSError:
            self._refuse()
            self._rename()
        self._file.close()

    def _open(self) -> int:
        try:
            descriptor = os.open(self.directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except (AttributeError, OSError):
            descriptor = -1  # the system or the file system has no files without a name, or none can be made here
        if descriptor >= 0:
            if os.path.exists(f"{_OWN_FILES}/{descriptor}"):
                self._nameless = True
                return descriptor
            os.close(descriptor)  # where /proc is not mounted it could never get a name
        descriptor, self._temporary = tempfile.mkstemp(".tmp", f".{self._name[:40]}.", self.directory)
        return descriptor

    def _link(self, path: str) -> None:
        if not self._nameless:
            os.link(self._temporary, path)
            return
        files = os.open(_OWN_FILES, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # With a folder's descriptor Python follows the link that stands for the file, as is needed here.
            os.link(str(self._file.fileno()), path, src_dir_fd=files, follow_symlinks=True)
        finally:
            os.close(files)

    def _rename(self) -> None:
        """Replace the file that is there, or do without links, which a file system may lack."""
        if self._nameless:
            self._temporary = os.path.join(self.directory, f".{self._name[:40]}.{secrets.token_hex(8)}.tmp")
            self._link(self._temporary)
        os.replace(self._temporary, self._path)
        self._temporary = ""

    def _refuse(self) -> None:
        try:
            mode = os.lstat(self._path).st_mode
        except FileNotFoundError:
            return
        if not self._force or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._path)


def _leave(number: int, _frame: object) -> NoReturn:
    """End as after Ctrl-C, so that the hidden file goes."""
    raise SystemExit(128 + number)
