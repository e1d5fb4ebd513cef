"""The events of a trace in batches, split between events however the text is laid out, and past what is damaged."""

from __future__ import annotations

import re

import msgspec

from profwin.evidence import codes_files as codes
from profwin.evidence.formats.event import DECODER, Event, lenient
from profwin.evidence.formats.faults import byte_of, kind_of, said
from profwin.evidence.formats.nesting import BLANK, Nesting
from profwin.evidence.formats.resuming import resume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from profwin.evidence.finding import Code
    from profwin.evidence.formats.damage import Damage
    from profwin.evidence.formats.nesting import Buffer

__all__ = ["LARGEST", "Splitter"]

BATCH = 1 << 18
"""Bytes of text that are decoded at once."""
LARGEST = 8 << 20
"""Bytes of the largest event that is read; a larger one is passed over."""
BESIDE = 64
"""Events before damage whose process is looked at."""
MOST = 20_000
"""Breaks that are passed over before reading is given up."""
TRIES = 3
"""How many ends of a batch are tried before its events are looked for one by one."""

_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_HALF = re.compile(rb"(?:[-+.\deE]+|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|\\u?[0-9a-fA-F]{0,4})\Z")
"""Half a number, word or escape at the end of a piece: it looks wrong until the rest is there."""
_START, _COMMA, _EVENT = range(3)
_WRITES = frozenset({"cpu_op", "cuda_runtime", "cuda_driver", "python_function", "user_annotation"})


class Splitter:
    """Reads the events between ``[`` and ``]`` from a buffer.

    Args:
        buffer: stands after the ``[``.
        damage: takes what is wrong.
        place: says a position as findings do.
        decoder: of a list of events.

    Attributes:
        open: whether the array did not end yet.
        writers: processes whose events stand beside damage; several have written if there are several.
        second: whether a second head was met.
        given_up: whether there is too much damage to read on.
    """

    def __init__(
        self, buffer: Buffer, damage: Damage, place: Callable[[int], str],
        decoder: msgspec.json.Decoder[list[Event]] = DECODER,
    ) -> None:  # fmt: skip
        self._buffer = buffer
        self._damage = damage
        self._place = place
        self._decoder = decoder
        self._before = _START
        self._broken = 0
        self._latest: list[Event] = []
        self.open = True
        self.writers: set[bytes] = set()
        self.second = False
        self.given_up = False

    def batches(self) -> Iterator[list[Event]]:
        """Yield all complete events, in order; end after the array or at the end of the text."""
        buffer = self._buffer
        while self.open:
            while buffer.left() < BATCH and buffer.more():
                pass
            batch = None if self._before == _EVENT else self._fast()
            if batch is None:
                batch = self._slow()
            if self._broken:
                self._witness(self._latest)
                self._witness(batch)
            self._latest = batch[-BESIDE:]
            if batch:
                yield batch
            if buffer.ended and not buffer.left():
                return

    def _witness(self, events: list[Event]) -> None:
        for event in events:
            if event.cat in _WRITES and len(self.writers) < 16:
                self.writers.add(bytes(event.pid))

    def _fast(self) -> list[Event] | None:
        """Decode up to the last event that ends in the buffer; None if the end found is not one, or on damage."""
        buffer = self._buffer
        data = buffer.data
        for end, after in self._ends():
            following = after
            text = b"".join((b"[", memoryview(data)[buffer.at : end], b"]"))  # one copy instead of three
            try:
                events = self._decoder.decode(text)
            except msgspec.ValidationError:
                return None
            except msgspec.DecodeError as error:
                if "trailing characters" not in str(error):
                    continue
                closed = text.rindex(b"]", 0, byte_of(error) - 1)  # the byte after the one that is too many
                following = buffer.at + closed  # one byte stands before the text, and one is the bracket itself
                self.open = False
                text = text[: closed + 1]
                events = self._decoder.decode(text)
            except RecursionError:
                return None
            if not text.isascii():
                self._check_utf8(text)
            if following < len(data):
                self._before = _COMMA
            elif events:
                self._before = _EVENT
            buffer.at = following
            return events
        return None

    def _ends(self) -> Iterator[tuple[int, int]]:
        """Yield likely ends of the last event and where the next one starts, the last ones first."""
        data, at = self._buffer.data, self._buffer.at
        start, tries = len(data), 0
        step = 1 << 12
        while start > at and tries < TRIES:
            end, start = start, max(at, start - step)
            step *= 8
            found = [match.span() for match in _BETWEEN.finditer(data, start, min(len(data), end + 64))]
            for first, last in reversed(found[-TRIES:]):
                yield first + 1, last - 1
                tries += 1
        if not tries or self._buffer.ended:
            yield len(data), len(data)

    def _check_utf8(self, text: bytes) -> None:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            self._damage.add(codes.NOT_UTF8, error.reason, self._place(self._buffer.position() + error.start - 1))

    def _slow(self) -> list[Event]:
        """Take the events that are in the buffer one by one."""
        buffer, events = self._buffer, list[Event]()
        while True:
            byte = self._next_here() if events else buffer.peek()
            if not byte or self.given_up:
                return events
            if byte == b"]":
                if self._before == _COMMA:
                    self._note(codes.MALFORMED, "a comma stands before the end of the events", buffer.at)
                buffer.at += 1
                self.open = False
                return events
            if byte == b"," and self._before == _EVENT:
                buffer.at += 1
                self._before = _COMMA
                continue
            if byte != b"{":
                self._damaged(codes.MALFORMED, "an event is expected here", buffer.at)
                continue
            end = Nesting().advance(buffer.data, buffer.at)
            if end >= 0:
                if self._before == _EVENT:
                    self._note(codes.MALFORMED, "a comma is missing between two events", buffer.at)
                self._single(end, events)
            elif events or not self._whole():
                return events

    def _next_here(self) -> bytes:
        """Return the next byte that is in the buffer and not blank, without reading on."""
        blank = BLANK.match(self._buffer.data, self._buffer.at)
        self._buffer.at = blank.end() if blank else self._buffer.at
        return self._buffer.data[self._buffer.at : self._buffer.at + 1]

    def _whole(self) -> bool:
        """Read on until the event at hand is whole; false if it never is, and then it is passed over."""
        buffer = self._buffer
        nesting, seen = Nesting(), 0
        while True:
            if nesting.advance(buffer.data, buffer.at + seen) >= 0:
                return True
            seen = buffer.left()
            if fault := self._fault(buffer.data[buffer.at :]):
                self._damaged(*fault)
                return True
            if seen > LARGEST:
                self._pass_over(nesting)
                return True
            wanted = seen * 2
            while buffer.left() < wanted and buffer.more():
                pass
            if buffer.left() == seen:
                buffer.at = len(buffer.data)
                return False

    def _fault(self, text: bytes) -> tuple[Code, str, int] | None:
        """Say what is wrong with an event that does not end; None if it only is not whole."""
        try:
            DECODER.decode(b"[" + text)
        except msgspec.ValidationError:
            return None
        except msgspec.DecodeError as error:
            if "malformed" in str(error):
                index = byte_of(error) - 1
                half = _HALF.search(text, max(0, len(text) - 64))
                if half and index >= half.start():
                    return None
                return kind_of(str(error), text, index), said(error), self._buffer.at + index
        except RecursionError:
            return codes.NESTED_TOO_DEEP, "an event", self._buffer.at
        return None

    def _pass_over(self, nesting: Nesting) -> None:
        """Skip the rest of an event that is too large, in fixed memory."""
        buffer = self._buffer
        self._damage.add(codes.TOO_LARGE, f"an event of more than {LARGEST} bytes", self._place(buffer.position()))
        self._before = _EVENT
        while True:
            buffer.at = len(buffer.data)
            if not buffer.more():
                return
            end = nesting.advance(buffer.data, 0)
            if end >= 0:
                buffer.at = end
                return

    def _single(self, end: int, events: list[Event]) -> None:
        buffer = self._buffer
        text = buffer.data[buffer.at : end]
        self._before = _EVENT
        event = None
        try:
            event = self._decoded(text)
        except msgspec.DecodeError as error:
            index = max(byte_of(error) - 1, 0)
            fault = kind_of(str(error), text, index)
            if fault is codes.MALFORMED:  # then its end may not be where it seems to be
                self._damaged(fault, said(error), buffer.at + index)
                return
            self._note(fault, said(error), buffer.at + index)
        except RecursionError:
            self._note(codes.NESTED_TOO_DEEP, "an event", buffer.at)
        if not text.isascii():
            self._check_utf8(b"[" + text)
        buffer.at = end
        if event is not None:
            events.append(event)

    def _decoded(self, text: bytes) -> Event | None:
        try:
            return self._decoder.decode(b"[" + text + b"]")[0]
        except msgspec.ValidationError as error:
            self._damage.add(codes.ODD_EVENT, str(error), self._place(self._buffer.position()))
            return lenient(text)

    def _note(self, code: Code, detail: str, index: int) -> None:
        self._damage.add(code, detail, self._place(self._buffer.position(index)))

    def _damaged(self, code: Code, detail: str, index: int) -> None:
        """Note damage and go to the next event after it."""
        buffer = self._buffer
        self._note(code, detail, index)
        self._broken += 1
        if self._broken > MOST:
            self._note(codes.NOT_JUDGED, "the damage has no end; reading was given up", index)
            self.open, self.given_up = False, True
            return
        found, head = resume(buffer, max(index, buffer.at))
        self._before = _EVENT if found == "end" else _COMMA
        self.second = self.second or head
