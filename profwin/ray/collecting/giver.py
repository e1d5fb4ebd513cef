"""The giver: a node's source as seen from here. Each call has a time limit, and no answer is trusted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib import import_module

from profwin.ray.collecting.names import checked
from profwin.ray.collecting.source import digest_of
from profwin.ray.nodes import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Entry", "Giver", "LostError"]

SEGMENT = 64 << 20
"""Bytes of which one digest is asked for."""
PAGE = 2000
MOST_ENTRIES = 1_000_000
_LARGEST = 1 << 62


class LostError(Exception):
    """A node does not answer any more, or talks nonsense; its giver says so."""


@dataclass(frozen=True)
class Entry:
    """A file that a node has.

    Attributes:
        folder: on that node, that the path is relative to.
        path: as listed; `parts` are its parts.
        size: in bytes, when it was listed.
        mtime: in nanoseconds.
        key: device and inode.
    """

    folder: str
    path: str
    parts: tuple[str, ...]
    size: int
    mtime: int
    key: tuple[int, int]


class Giver:
    """Ask one node's source.

    Args:
        label: of the node, for readers.
        handle: of the actor.
        seconds: that each answer may take.

    Attributes:
        lost: why nothing more is asked of it; empty while it answers.
        host, boot, root, runs: see :meth:`profwin.ray.collecting.source.Source.describe`.
        bytes: that it has given.
    """

    def __init__(self, label: str, handle: Any, seconds: float) -> None:
        self.label, self.seconds = label, seconds
        self._handle = handle
        self.lost = ""
        self.host, self.boot, self.root = "", "", ""
        self.runs: dict[str, int] = {}
        self.bytes = 0

    def ask(self, method: str, *arguments: Any) -> Any:
        """Send a question; return what `take` awaits the answer of."""
        return getattr(self._handle, method).remote(*arguments)

    def take(self, reference: Any, deadline: float | None = None) -> Any:
        """Return an answer.

        Args:
            reference: of `ask`.
            deadline: on the monotonic clock; default: the giver's seconds from now.

        Raises:
            LostError: there is none.
        """
        if self.lost:
            raise LostError(self.lost)
        try:
            return self.wait(reference, self.seconds if deadline is None else max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise self.lose(f"it has not answered within {self.seconds:.3g} s") from None
        except ModuleNotFoundError as error:
            raise self.lose(f"profwin cannot be imported there: {error}") from None
        except Exception as error:
            raise self.lose(line(error)) from error

    def wait(self, reference: Any, seconds: float) -> Any:
        """Wait for an answer. Raises TimeoutError if there is none in time, and whatever the node's trouble is."""
        return import_module("ray").get(reference, timeout=seconds)

    def lose(self, why: str) -> LostError:
        """Ask nothing more of this node; return the error to be raised."""
        self.lost = self.lost or why
        return LostError(why)

    def described(self, answer: Any) -> None:
        """Take what the node says of itself.

        Raises:
            LostError: it is no such answer.
        """
        try:
            self.host, self.boot, self.root = (str(answer[name]) for name in ("host", "boot", "root"))
            runs = answer["runs"].items()
            if any(len(checked(name)) > 1 for name, _ in runs):
                raise ValueError("a run in a run")  # noqa: TRY301  # said like other nonsense
            self.runs = {name: int(newest) for name, newest in runs}
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise self.lose(f"it talks nonsense about itself: {error!r}"[:300]) from None

    def listing(self, folder: str) -> tuple[list[Entry], dict[str, str]]:
        """Return the files that the node lists, and what is left out with the reason. `begin` was answered before.

        Raises:
            LostError: it does not answer.
        """
        found: dict[tuple[str, ...], Entry] = {}
        left: dict[str, str] = {}
        while page := self.take(self.ask("page", PAGE)):
            if not isinstance(page, list) or len(page) > PAGE:
                raise self.lose("it talks nonsense about its files")
            for item in page:
                try:
                    entry = _entry(folder, item)
                    found.setdefault(entry.parts, entry)
                except ValueError as error:
                    left[repr(item[0] if isinstance(item, tuple) and item else item)[:300]] = str(error)
            if len(found) + len(left) > MOST_ENTRIES:
                left["…"] = f"more than {MOST_ENTRIES:,} files: the rest was not looked at"
                break
        return list(found.values()), left

    def digest(self, entry: Entry, offset: int, length: int) -> str:
        """Return a digest of a part of a file; empty where it cannot be read.

        Raises:
            LostError: it does not answer.
        """
        return str(self.take(self.ask("digest", entry.folder, entry.path, entry.key, offset, length)))

    def agreed(self, entry: Entry, descriptor: int, length: int) -> int:
        """Return with how many of the first bytes of an open file a file of the node begins, in whole segments.

        Args:
            entry: of the node.
            descriptor: of the open file.
            length: how many bytes are compared.

        Raises:
            LostError: it does not answer.
        """
        offset = 0
        while offset < length:
            size = min(SEGMENT, length - offset)
            if self.digest(entry, offset, size) != digest_of(descriptor, offset, size):
                break
            offset += size
        return offset

    def piece(self, answer: Any, entry: Entry, length: int) -> tuple[bytes | None, str]:
        """Return a piece that was read, or None and why there is none.

        Args:
            answer: to ``read``.
            entry: of the file.
            length: of the piece.
        """
        try:
            data, *rest = answer
            if data is None:
                return None, str(rest[0])[:300]
            size, mtime = rest
            if type(data) is not bytes or len(data) != length:
                return None, "it has become shorter" if len(data) < length else "more came than was asked for"
            if size < entry.size or (size == entry.size and mtime != entry.mtime):
                return None, "it was changed while it was read"
        except (TypeError, ValueError, IndexError):
            return None, "the answer is nonsense"
        self.bytes += length
        return data, ""


def _entry(folder: str, item: Any) -> Entry:
    """Return a listed file.

    Raises:
        ValueError: it is left out; in words.
    """
    if isinstance(item, tuple) and len(item) == 2:
        raise ValueError(str(item[1])[:300])
    if not isinstance(item, tuple) or len(item) != 5:
        raise ValueError("not an entry")
    path, *numbers = item
    parts = checked(path)
    if any(type(number) is not int or not 0 <= number < 1 << 64 for number in numbers) or max(numbers[:2]) > _LARGEST:
        raise ValueError("its size or its time cannot be")
    size, mtime, device, inode = numbers
    return Entry(folder, path, parts, size, mtime, (device, inode))
