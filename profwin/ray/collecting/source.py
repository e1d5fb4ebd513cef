"""The source: what a process on a node tells of the files there, and reads of them. It changes nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from itertools import islice

from profwin.ray.collecting.names import DEEPEST, MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["Source", "digest_of", "open_below"]

_MOST_RUNS = 100_000
_BLOCK = 1 << 20


class Source:
    """Answer for the files of one node; the class of an actor there.

    Answers are plain values. What is wrong with a file is one, too: an exception is trouble with the node.
    """

    def __init__(self) -> None:
        self._walk: Iterator[tuple[Any, ...]] = iter(())

    def describe(self, given: str | None, default: str) -> dict[str, Any]:
        """Say which host this is, and which runs are in its output directory.

        Args:
            given: the directory, in which ``~`` and ``$NAME`` are this process's; None: that of this process's
                settings, if it has any.
            default: the directory where it has none.

        Returns:
            ``host``, ``boot``, ``root``, and ``runs``: names with the time of their newest journal or manifest.
        """
        from profwin.registry.host import host_name, known_boot_id

        root = given or os.environ.get("PROFWIN_OUTPUT") or default
        root = os.path.abspath(os.path.expandvars(os.path.expanduser(root)))
        return {"host": host_name(), "boot": known_boot_id(), "root": root, "runs": dict(_runs(root))}

    def begin(self, folder: str, marker: str) -> bool:
        """Begin to list a folder. Say whether it is the one that has the marker, so the one that is collected into."""
        self._walk = _walk(folder, "", 0)
        return os.path.lexists(os.path.join(folder, marker))

    def page(self, most: int) -> list[tuple[Any, ...]]:
        """Return the next entries: ``(path, size, mtime, device, inode)``, or ``(path, why)`` for what is left out."""
        return list(islice(self._walk, most))

    def read(self, folder: str, path: str, key: tuple[int, int], offset: int, length: int) -> tuple[Any, ...]:
        """Return a piece of a file, with the file's size and mtime now; or None and why it cannot be read.

        Args:
            folder: that was listed.
            path: as it was listed.
            key: device and inode of the file that was listed.
            offset: where the piece begins.
            length: of the piece.
        """
        try:
            descriptor, status = open_below(folder, path, key)
            try:
                data = os.pread(descriptor, length, offset)
                while len(data) < length and (more := os.pread(descriptor, length - len(data), offset + len(data))):
                    data += more
            finally:
                os.close(descriptor)
        except OSError as error:
            return None, error.strerror or str(error)
        return data, status.st_size, status.st_mtime_ns

    def digest(self, folder: str, path: str, key: tuple[int, int], offset: int, length: int) -> str:
        """Return the digest of a part of a file; empty if it cannot be read. Arguments as for `read`."""
        try:
            descriptor, _status = open_below(folder, path, key)
            try:
                return digest_of(descriptor, offset, length)
            finally:
                os.close(descriptor)
        except OSError:
            return ""


def open_below(folder: str, path: str, key: tuple[int, int] | None = None) -> tuple[int, os.stat_result]:
    """Open a regular file below a folder to read it, through no link. Never blocks.

    Args:
        folder: followed, if it is a link.
        path: below it.
        key: device and inode that it must have.

    Raises:
        OSError: it is something else, or another file, or cannot be opened.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    *folders, name = path.split("/")
    if ".." in folders or name in ("", ".."):
        raise OSError("the name leaves the folder")
    at = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for each in folders:
            below = os.open(each, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        descriptor = os.open(name, flags | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or (key is not None and (status.st_dev, status.st_ino) != tuple(key)):
        os.close(descriptor)
        raise OSError("another file has taken its place since it was listed")
    return descriptor, status


def digest_of(descriptor: int, offset: int, length: int) -> str:
    """Return the digest of a part of an open file; of what is there, if it is shorter."""
    found = hashlib.blake2b(digest_size=32)
    while length and (data := os.pread(descriptor, min(length, _BLOCK), offset)):
        found.update(data)
        offset, length = offset + len(data), length - len(data)
    return found.hexdigest()


def _runs(root: str) -> Iterator[tuple[str, int]]:
    """Yield the runs in an output directory, each with when it was last written to."""
    try:
        with os.scandir(root) as entries:
            names = [entry.name for entry in islice(entries, _MOST_RUNS) if _folder(entry)]
    except OSError:
        return
    for name in sorted(names):
        times = []
        for path in ("manifest.json", "journal"):
            whole = os.path.join(root, name, path)
            try:
                times.append(os.lstat(whole).st_mtime_ns)
                if path == "journal":
                    with os.scandir(whole) as files:
                        times += [each.stat(follow_symlinks=False).st_mtime_ns for each in files]
            except OSError:
                continue
        if times:
            yield name, max(times)


def _folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _walk(folder: str, prefix: str, depth: int) -> Iterator[tuple[Any, ...]]:
    try:
        with os.scandir(os.path.join(folder, prefix)) as entries:
            found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except FileNotFoundError:
        return
    except OSError as error:
        yield prefix, error.strerror
        return
    for entry in found:
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        if entry.name.startswith(MARKER):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            yield path, error.strerror
            continue
        if stat.S_ISDIR(status.st_mode):
            if depth + 1 < DEEPEST:
                yield from _walk(folder, path, depth + 1)
            else:
                yield path, f"{DEEPEST} folders deep"
        elif stat.S_ISREG(status.st_mode):
            yield path, status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
        else:
            yield path, "a link, which is not followed" if stat.S_ISLNK(status.st_mode) else "not a regular file"
