"""Where a JSON value ends, found in text that comes in pieces, without decoding it and without recursion."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BLANK", "Buffer", "Nesting"]

_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,1000}', re.DOTALL)
_QUOTE, _BACKSLASH = b'"\\'
BLANK = re.compile(rb"[ \t\r\n]*")


class Nesting:
    """Follows one object, array or text to its end; it may be split anywhere.

    Attributes:
        depth: of brackets that are open.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._quoted = False
        self._escaped = False

    def advance(self, data: bytes, start: int) -> int:
        """Return the position after the value's end, or -1 if it goes on after `data`."""
        position, size = start, len(data)
        while position < size:
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            match = (_INSIDE if self._quoted else _OUTSIDE).search(data, position)
            if match is None:
                return -1
            position = match.end()
            if self._quoted:
                if position == size:
                    return -1
                byte = data[position]
                position += 1
                self._escaped = byte == _BACKSLASH  # at the end of `data`, or after very many others
                if self._escaped:
                    continue
                self._quoted = False
            else:
                byte = data[position - 1]
                if byte == _QUOTE:
                    self._quoted = True
                    continue
                self.depth += 1 if byte in b"{[" else -1
            if self.depth <= 0:
                return position
        return -1


class Buffer:
    """The part of a text that is looked at now.

    Args:
        pieces: the text.

    Attributes:
        data: the part.
        at: where in `data` to go on; what comes before may be dropped.
        ended: whether nothing follows `data`.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._before = 0
        self.data = b""
        self.at = 0
        self.ended = False

    def position(self, index: int | None = None) -> int:
        """Return the position in the text of an index of `data`, of `at` without one."""
        return self._before + (self.at if index is None else index)

    def more(self) -> bool:
        """Drop what is done and add a piece; false at the end of the text. Indices of `data` change."""
        if self.ended:
            return False
        piece = next(self._pieces, b"")
        if not piece:
            self.ended = True
            return False
        self._before += self.at
        self.data = b"".join((memoryview(self.data)[self.at :], piece)) if self.at < len(self.data) else piece
        self.at = 0
        return True

    def left(self) -> int:
        """Return how many bytes wait."""
        return len(self.data) - self.at

    def peek(self) -> bytes:
        """Skip blanks and return the next byte, without taking it; empty at the end of the text."""
        while True:
            blank = BLANK.match(self.data, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < len(self.data):
                return self.data[self.at : self.at + 1]
            if not self.more():
                return b""
