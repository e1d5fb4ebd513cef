"""The files that an engine has written for one window: found by the name it was given, waited for, and moved.

What lies in an engine's directory is not trusted: only plain files of that directory itself are taken, links are never
followed, nothing is overwritten, and a file goes from its old place only after it is whole in the new one. Folders of
torch_npu stay where they are: it may still be analysing what is in them.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
import zlib
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bring", "whole"]

APPEAR = 1.0
"""Seconds that a first file may take to show after the stop was confirmed: what answers then has written it."""
COMPLETE = 30.0
"""Seconds that files may take to be complete after they have shown."""
MOST = 4096
"""Files of one window."""
_LARGEST = 64 << 20
"""Bytes up to which a compressed file is read to its end, to know whether it is whole; 0.2 s for 5 MB."""
_TURN, _STILL = 0.02, 0.5
_CHUNK = 1 << 20

_FOLDER = "_ascend_pt"
_TRACE = re.compile(rf"(?:\.(?:json|json\.gz|hatchet|hatchet_msgpack|pickle|chrome_trace)|{_FOLDER})\Z")
_EXTENSION = re.compile(r"(?:\.pt)?(?:\.trace)?\.\w+(?:\.gz)?\Z")
_TIME = re.compile(r"\.\d{10,20}(?=\.pt\.trace\.json)")
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")


def bring(source: str, token: str, directory: str, stem: str, since: int, *, every: bool = False) -> list[str]:
    """Move the files of one window from an engine's directory to the step's folder.

    Args:
        source: the engine's directory.
        token: what their names contain, and no other file's.
        directory: where they belong; made where it is not there.
        stem: what their new names begin with. What the engine has put around the token follows: which worker it is.
        since: wall clock in nanoseconds when the engine confirmed that it has stopped. What was last written before
            need not be waited for, where it has its end.
        every: whether all files there are belong to the window, whatever they are called.

    Returns:
        The paths of the traces; a text beside them, such as vLLM's ``profiler_out.txt``, is moved and not named.

    Raises:
        FileNotFoundError: there is none.
        OSError: the directory cannot be read, or a file can neither be moved nor copied; it is still in its old place.
    """
    with _folder(source) as folder:
        names = _ready(folder, "" if every else token, since)
        if not any(map(_TRACE.search, names)):
            raise FileNotFoundError(f"no trace of it in {source}")
        os.makedirs(directory, exist_ok=True)
        moved = {}
        for name in names:
            if name.endswith(_FOLDER):
                moved[name] = os.path.join(source, name)
            else:
                moved[name] = _move(folder, name, os.path.join(directory, stem + _rest(name, token)))
    return [path for name, path in moved.items() if _TRACE.search(name)]


@contextmanager
def _folder(path: str) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _ready(folder: int, token: str, since: int) -> list[str]:
    """Return the files' names when all are complete, or when they have had their time."""
    began = still = time.monotonic()
    before: dict[str, tuple[int, int]] = {}
    proven: dict[tuple[str, int, int], bool] = {}
    while True:
        found = _found(folder, token)
        now = time.monotonic()
        if found != before:
            before, still = found, now
        complete = bool(found)
        for name, (size, written) in found.items():
            state = (name, size, written)
            if state not in proven:
                proven[state] = name.endswith(_FOLDER) or whole(folder, name)
            # An end that is no checksum may also be one of a part.
            certain = (name.endswith(".gz") and size <= _LARGEST) or name.endswith(_FOLDER)
            certain = certain or written <= since or now - still >= _STILL
            complete = complete and proven[state] and certain
        if complete or now - began > (COMPLETE if found else APPEAR):
            return sorted(found)
        time.sleep(_TURN)


def _found(folder: int, token: str) -> dict[str, tuple[int, int]]:
    """Return size and time of the last writing of each plain file whose name has the token."""
    found: dict[str, tuple[int, int]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if token not in entry.name or not entry.name.isprintable() or len(found) >= MOST:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            folder_of_npu = stat.S_ISDIR(status.st_mode) and entry.name.endswith(_FOLDER)
            if (stat.S_ISREG(status.st_mode) and status.st_size) or folder_of_npu:
                found[entry.name] = status.st_size, status.st_mtime_ns
    return found


def whole(folder: int, name: str) -> bool:
    """Say whether a file has its end: of a compressed one the checksum, of JSON the last bracket.

    Args:
        folder: descriptor of its directory.
        name: in there; a link is not followed.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if name.endswith(".gz"):
            return size > _LARGEST or _inflates(file)
        if name.endswith(".json"):
            file.seek(max(0, size - 64))
            return file.read().rstrip().endswith((b"}", b"]"))
        return size > 0


def _inflates(file: object) -> bool:
    inflater = zlib.decompressobj(31)
    read = file.read  # type: ignore[attr-defined]  # a binary file, of which nothing else is used
    try:
        while piece := read(_CHUNK):
            while piece:
                inflater.decompress(piece, _CHUNK)
                piece = inflater.unconsumed_tail
            if inflater.eof:
                return True
    except zlib.error:
        return False
    return inflater.eof


def _rest(name: str, token: str) -> str:
    """Return what follows the stem in a file's new name."""
    before, _, after = name.rpartition(token)
    middle = ".".join(part for part in (before.strip("._-"), after.lstrip("._-")) if part)
    return "." + _ODD.sub("_", _TIME.sub("", middle))


def _move(folder: int, name: str, target: str) -> str:
    """Give a file its new place; return it, another one where that was taken."""
    base, number = target, 1
    while True:
        try:
            done = _place(folder, name, target)
        except FileExistsError:
            number += 1
            target = _EXTENSION.sub(rf".{number}\g<0>", base, count=1)
        else:
            break
    if done:
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:
            pass  # another user's: it may be read and copied, and stays where it was
    return target


def _place(folder: int, name: str, target: str) -> bool:
    """Let a file be in its new place too: by a second name where that can be, else by a copy.

    Returns:
        Whether nothing is lost if the old name goes.

    Raises:
        FileExistsError: something is there.
    """
    try:
        os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        complete = whole(folder, name)
        _copy(folder, name, target)
        return complete
    if not stat.S_ISREG(os.lstat(target).st_mode):
        os.unlink(target)  # a link has taken the file's place meanwhile
        raise OSError(f"{name} is no file any more")
    return True


def _copy(folder: int, name: str, target: str) -> None:
    if os.path.lexists(target):
        raise FileExistsError(target)
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    # As what writes traces here names a file that is not finished.
    hidden = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{os.urandom(4).hex()}.tmp")
    with open(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{name} is no file any more")
        try:
            with open(hidden, "xb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
            try:
                os.link(hidden, target)
            except OSError:
                if os.path.lexists(target):
                    raise FileExistsError(target) from None
                os.rename(hidden, target)  # a file system without links
        finally:
            try:
                os.unlink(hidden)
            except FileNotFoundError:
                pass
