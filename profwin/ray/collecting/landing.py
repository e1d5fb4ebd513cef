"""The landing of one file: under which name, from which byte on, and how it gets that name when it is whole."""

from __future__ import annotations

import contextlib
import os
import stat

from profwin.ray.collecting.destination import open_part, open_whole, status_of
from profwin.ray.collecting.names import PART, beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from profwin.ray.collecting.destination import Destination

    Agreed = Callable[[int, int], int]

__all__ = ["Landing"]

_BLOCK = 1 << 20


class Landing:
    """Write one file: into ``NAME.part``, which gets the name when all is there.

    A file of the name whose bytes the source begins with is continued; any other stays as it is, and this one gets a
    name beside it.

    Args:
        destination: the folder.
        parts: of the path below it.
        size: of the file.
        mtime: when it was last changed, in nanoseconds; it keeps that.
        tag: what is put into the name where that is taken.
        rival: whether a different file has the same path, so that size and time say nothing.

    Attributes:
        offset: what comes next.
        name: that the file gets, or has.
        whole: whether it is there.
    """

    def __init__(
        self, destination: Destination, parts: Sequence[str], size: int, mtime: int, tag: str, *, rival: bool = False
    ) -> None:
        *folders, self.name = parts
        self.size, self.offset, self.whole = size, 0, False
        self._mtime, self._tag, self._rival = mtime, tag, rival
        self._there: os.stat_result | None = None
        self._part = -1
        self._folder = destination.folder(folders)

    def prepare(self, agreed: Agreed) -> None:
        """Find the name and the byte to go on from; the file may be whole then.

        Args:
            agreed: says of an open file, of which the first ``length`` bytes are meant, with how many of them the
                source begins.

        Raises:
            OSError: it cannot be written.
        """
        for name in beside(self.name, self._tag):
            self._there = status = status_of(self._folder, name)
            if status is None or self._continues(name, status, agreed):
                self.name = name
                break
        self._forget_part()
        if self.whole:
            return
        self._part = open_part(self._folder, self.name)
        have = os.fstat(self._part).st_size
        self.offset = agreed(self._part, min(have, self.size)) if have else 0
        if self._there is not None and self._there.st_size > self.offset:
            self._copy(self._there.st_size)
        os.ftruncate(self._part, self.offset)

    def write(self, data: bytes) -> None:
        """Write the next piece.

        Raises:
            OSError: as on a full disk; the next start goes on from what is there.
        """
        view = memoryview(data)
        while view:
            written = os.pwrite(self._part, view, self.offset)
            self.offset, view = self.offset + written, view[written:]

    def finish(self) -> None:
        """Give the file its name.

        Raises:
            OSError: something has taken the name meanwhile, or the disk is full.
        """
        os.utime(self._part, ns=(self._mtime, self._mtime))
        os.fsync(self._part)
        part = self.name + PART
        if self._there is None:
            self._link(part, self.name)
        else:
            now = status_of(self._folder, self.name)
            before = self._there
            if now is None or (now.st_ino, now.st_size, now.st_mtime_ns) != (
                before.st_ino, before.st_size, before.st_mtime_ns
            ):  # fmt: skip
                raise FileExistsError(f"{self.name} has been changed meanwhile")
            os.replace(part, self.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
        self.whole = True

    def close(self) -> None:
        """Let the files go; what is unfinished stays."""
        for descriptor in (self._part, self._folder):
            if descriptor >= 0:
                os.close(descriptor)
        self._part = self._folder = -1

    def _continues(self, name: str, status: os.stat_result, agreed: Agreed) -> bool:
        """Say whether the file that has the name is this one, or its beginning."""
        if not stat.S_ISREG(status.st_mode):
            return False
        # A time to the microsecond tells one file from another; a coarse one, as of some file systems, does not.
        telling = not self._rival and self._mtime % 1_000_000
        if telling and (status.st_size, status.st_mtime_ns) == (self.size, self._mtime):
            self.whole = True
            return True
        descriptor = open_whole(self._folder, name)
        try:
            shorter = min(status.st_size, self.size)
            if agreed(descriptor, shorter) == shorter:
                # One that is longer has all that the source had when it was looked at.
                self.whole = status.st_size >= self.size
                return True
        finally:
            os.close(descriptor)
        return False

    def _copy(self, length: int) -> None:
        """Begin with what is there under the name."""
        descriptor = open_whole(self._folder, self.name)
        try:
            os.ftruncate(self._part, 0)
            self.offset = 0
            while self.offset < length and (data := os.pread(descriptor, _BLOCK, self.offset)):
                self.write(data[: length - self.offset])
        finally:
            os.close(descriptor)

    def _link(self, part: str, name: str) -> None:
        try:
            # Unlike a renaming it never replaces.
            os.link(part, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            if status_of(self._folder, name) is not None:
                raise
            os.rename(part, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)  # no links in this file system
            return
        os.unlink(part, dir_fd=self._folder)

    def _forget_part(self) -> None:
        """Remove what a program that was killed right after `_link` has left."""
        part, whole = status_of(self._folder, self.name + PART), status_of(self._folder, self.name)
        if part is not None and whole is not None and os.path.samestat(part, whole):
            with contextlib.suppress(OSError):
                os.unlink(self.name + PART, dir_fd=self._folder)
