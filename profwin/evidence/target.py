"""The target: a file that is there whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Target"]

_LEVEL = 2
"""Of compression: the next ones cost more time than they save room (measured)."""
_TEMPORARY = (".", ".tmp")


class Target:
    """Write a file under a hidden name beside it; give it its own when all is written, else leave nothing.

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
        directory, name = os.path.split(os.path.abspath(path))
        self.directory = directory
        packed = name.endswith(".gz") if packed is None else packed
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31) if packed else None
        descriptor, self._temporary = tempfile.mkstemp(_TEMPORARY[1], f"{_TEMPORARY[0]}{name[:100]}.", directory)
        self._raw = io.FileIO(descriptor, "wb")
        self._file = io.BufferedWriter(self._raw, 1 << 18)
        self.size = 0

    def __enter__(self) -> Target:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            # Nothing of it is wanted any more; what is still in its buffer may not fit on the disk.
            self._raw.close()
        except OSError:
            pass
        if self._temporary:
            os.unlink(self._temporary)
            self._temporary = ""

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
        self._file.close()
        if self._force:
            self._refuse()
            os.replace(self._temporary, self._path)
        else:
            self._name_it()
        self._temporary = ""

    def _name_it(self) -> None:
        try:
            os.link(self._temporary, self._path)  # unlike a renaming, it never replaces
        except OSError:
            self._refuse()  # it is there; else this is a file system without links
            os.rename(self._temporary, self._path)
        else:
            os.unlink(self._temporary)

    def _refuse(self) -> None:
        try:
            mode = os.lstat(self._path).st_mode
        except FileNotFoundError:
            return
        if not self._force or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._path)
