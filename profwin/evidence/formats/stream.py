"""A JSON trace from beginning to end: its events in batches, and what stands before and after them."""

from __future__ import annotations

import re

import msgspec

from profwin.evidence import codes_files as codes
from profwin.evidence.formats.event import DECODER
from profwin.evidence.formats.faults import byte_of, kind_of, said
from profwin.evidence.formats.nesting import Buffer, Nesting
from profwin.evidence.formats.splitting import Splitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from profwin.evidence.formats.damage import Damage
    from profwin.evidence.formats.event import Event

__all__ = ["Trace"]

LARGEST = 2 << 20
"""Bytes of one value beside the events that is read; all of them together may have four times as many."""
KEYS = 1000
DEEPEST = 1000

_SCALAR_END = re.compile(rb"[,}\]\s]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Ends(Exception):  # noqa: N818 - no error: how reading ends early
    """The text ends, or cannot be followed."""


class Trace:
    """Reads one trace.

    Args:
        pieces: its text.
        damage: takes what is wrong with it.
        place: says a position as findings do.
        decoder: of a list of events.

    Attributes:
        metadata: what stands beside the events, complete once `batches` has ended; larger values are left out.
        layout: ``"object"``, ``"list"`` (the events alone), or empty for neither.
        size: bytes of text that were read.
    """

    def __init__(
        self, pieces: Iterator[bytes], damage: Damage,
        place: Callable[[int], str] = lambda position: f"byte {position}",
        decoder: msgspec.json.Decoder[list[Event]] = DECODER,
    ) -> None:  # fmt: skip
        self._buffer = Buffer(pieces)
        self._damage = damage
        self._place = place
        self._decoder = decoder
        self._kept = 0
        self.metadata: dict[str, Any] = {}
        self.layout = ""

    @property
    def size(self) -> int:
        """How far the text was read."""
        return self._buffer.position()

    def batches(self) -> Iterator[list[Event]]:
        """Yield the events; raises nothing for what is in the text."""
        try:
            yield from self._document()
        except _Ends:
            pass
        buffer = self._buffer
        while buffer.more():  # whatever follows is still to be unpacked, since only then its checksum shows
            buffer.at = len(buffer.data)

    def _document(self) -> Iterator[list[Event]]:
        buffer = self._buffer
        buffer.more()
        if buffer.data[:3] == _BYTE_ORDER_MARK:
            buffer.at = 3
        first = buffer.peek()
        if not first:
            if not self._damage.has(codes.TRUNCATED, codes.BAD_COMPRESSION):
                self._damage.add(codes.EMPTY_FILE, f"{buffer.position()} bytes", "")
            return
        if first not in (b"{", b"["):
            self._damage.add(codes.MALFORMED, "a trace begins with { or [", self._place(buffer.position()))
            raise _Ends
        buffer.at += 1
        if first == b"[":
            self.layout = "list"
            yield from self._events()
        else:
            self.layout = "object"
            yield from self._object()
        self._trailing()

    def _events(self) -> Iterator[list[Event]]:
        splitter = Splitter(self._buffer, self._damage, self._place, self._decoder)
        yield from splitter.batches()
        if splitter.second or (self._damage.has(codes.MALFORMED) and len(splitter.writers) > 1):
            self._damage.add(codes.INTERLEAVED, "events of two processes stand around a broken one")
        if splitter.given_up:
            raise _Ends
        if splitter.open:
            self._truncated()

    def _truncated(self) -> None:
        if not self._damage.has(codes.TRUNCATED, codes.BAD_COMPRESSION, codes.INFLATES_TOO_FAR):
            place = self._place(self._buffer.position(len(self._buffer.data)))
            self._damage.add(codes.TRUNCATED, "the text ends within the trace", place)
        raise _Ends

    def _object(self) -> Iterator[list[Event]]:
        buffer = self._buffer
        first = True
        while True:
            byte = buffer.peek()
            if byte == b"}":
                buffer.at += 1
                return
            if byte == b"," and not first:
                buffer.at += 1
                byte = buffer.peek()
            if byte != b'"':
                self._unexpected(byte, "a key")
            first = False
            key = self._key()
            if (byte := buffer.peek()) != b":":
                self._unexpected(byte, "a colon")
            buffer.at += 1
            byte = buffer.peek()
            if key == "traceEvents" and byte == b"[":
                buffer.at += 1
                yield from self._events()
            else:
                self._metadata(key, byte)

    def _unexpected(self, byte: bytes, wanted: str) -> None:
        if not byte:
            self._truncated()
        self._damage.add(codes.MALFORMED, f"{wanted} is expected here", self._place(self._buffer.position()))
        raise _Ends

    def _key(self) -> str:
        text = self._value(b'"')
        if text is None:
            return ""
        try:
            return str(msgspec.json.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._fault(error, text)
            return ""

    def _metadata(self, key: str, byte: bytes) -> None:
        text = self._value(byte)
        if text is None or self._kept + len(text) > 4 * LARGEST or len(self.metadata) >= KEYS:
            self._damage.add(codes.TOO_LARGE, f"the value of {key[:80]!r}", self._place(self._buffer.position()))
            return
        self._kept += len(text)
        try:
            self.metadata[key] = msgspec.json.decode(text)
        except RecursionError:
            self._damage.add(codes.NESTED_TOO_DEEP, f"the value of {key[:80]!r}", self._place(self._buffer.position()))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._fault(error, text)

    def _fault(self, error: Exception, text: bytes) -> None:
        index = max(byte_of(error), 0)
        start = self._buffer.position() - len(text)
        self._damage.add(kind_of(str(error), text, index), said(error), self._place(start + index))

    def _value(self, byte: bytes) -> bytes | None:
        """Take the text of the value that begins here; None if it is too large, and then it is passed over."""
        buffer = self._buffer
        if not byte:
            self._truncated()
        if byte not in (b'"', b"{", b"["):
            return self._scalar()
        nesting, seen, parts = Nesting(), 0, list[bytes]()
        while True:
            end = nesting.advance(buffer.data, buffer.at)
            part = buffer.data[buffer.at : end if end >= 0 else len(buffer.data)]
            seen += len(part)
            parts = [*parts, part] if seen <= LARGEST else []
            buffer.at += len(part)
            if end >= 0:
                return b"".join(parts) if seen <= LARGEST else None
            if nesting.depth > DEEPEST:
                self._damage.add(codes.NESTED_TOO_DEEP, "beside the events", self._place(buffer.position()))
                raise _Ends
            if not buffer.more():
                self._truncated()

    def _scalar(self) -> bytes:
        buffer = self._buffer
        while True:
            match = _SCALAR_END.search(buffer.data, buffer.at)
            if match or buffer.left() > 4096:
                end = match.start() if match else buffer.at + 4096
                text = buffer.data[buffer.at : end]
                if not text:
                    self._unexpected(buffer.data[buffer.at : buffer.at + 1], "a value")
                buffer.at = end
                return text
            if not buffer.more():
                self._truncated()

    def _trailing(self) -> None:
        buffer = self._buffer
        if not buffer.peek():
            return
        place = self._place(buffer.position())
        while buffer.left() < 1 << 16 and buffer.more():
            pass
        following = buffer.data[buffer.at : buffer.at + (1 << 16)]
        if b'"ph"' in following or b'"traceEvents"' in following or b'"schemaVersion"' in following:
            self._damage.add(codes.INTERLEAVED, "more events follow the end of the trace", place)
        else:
            self._damage.add(codes.TRAILING_GARBAGE, f"{len(following)} bytes or more follow the end", place)
