"""Perfetto's own format, written by hand: protocol buffers, one packet an event, names sent once.

Perfetto drops slices that overlap on one track where it reads JSON (measured: 3,551 of one trace); here the caller says
which track a slice is on, and every slice has its begin and its end. Numbers of messages and fields are those of
``perfetto_trace.proto``.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.evidence.tracks import Data, Value

__all__ = ["ProtobufWriter", "varint"]

_SEQUENCE = 1
_CLOCK = 6  # the boot clock: the one that Perfetto shows times on
_REALTIME = 1
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_PHASES = {"flow-start": b"\x10s", "flow-step": b"\x10t", "flow-end": b"\x10f"}
# Times and numbers within these bounds take a known number of bytes, so that packets of one kind have one length.
_EARLIEST, _LATEST = 1 << 56, (1 << 63) - 1  # nine bytes: 1972 to 2262
_FIRST_TRACK, _TRACK_BYTES = 1 << 21, 4
_FIRST_NAME, _MOST_NAMES = 1 << 14, 1 << 16
_FIRST_CATEGORY, _MOST_CATEGORIES = 1 << 7, 1 << 13
_MOST_NAME_BYTES = 16 << 20
_BUFFER = 1 << 12
_VALUE = struct.Struct("<d")


def varint(value: int) -> bytes:
    """Encode a whole number that is not negative."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _block(field, text.encode("utf-8", "replace"))


_PAIRS = [bytes((value & 0x7F | 0x80, value >> 7 | 0x80)) for value in range(1 << 14)]
"""14 bits of a varint that goes on."""


class ProtobufWriter:
    """Write a trace.

    Args:
        write: takes the bytes.
        origin: wall-clock nanoseconds at which the timeline begins, for the clock that Perfetto shows beside it.
    """

    def __init__(self, write: Callable[[bytes], object], origin: int) -> None:
        self._write = write
        self._parts: list[bytes] = []
        self._tracks = _FIRST_TRACK
        self._processes = 0
        self._names: dict[str, bytes] = {}
        self._categories: dict[str, bytes] = {"": b""}
        self._annotations: dict[str, bytes] = {}
        self._name_bytes = 0
        self._high: dict[int, bytes] = {}
        self.events = 0
        # Prefixes of packets whose length is known: the length of the whole, the timestamp's key.
        self._tail = _number(10, _SEQUENCE) + _number(13, 2)
        self._ends = self._prefix(len(_number(9, _END)) + 1 + _TRACK_BYTES)
        self._value_key = _number(9, _COUNTER) + varint(44 << 3 | 1)
        self._values = self._prefix(len(self._value_key) + _VALUE.size + 1 + _TRACK_BYTES)
        clocks = [_block(1, _number(1, clock) + _number(2, origin)) for clock in (_CLOCK, _REALTIME)]
        self._packet(_block(6, b"".join(clocks)))
        defaults = _block(59, _number(58, _CLOCK))
        self._packet(defaults + _number(10, _SEQUENCE) + _number(13, 1) + _number(41, 1) + _number(87, 1))

    def group(self, name: str, parent: int | None = None, rank: int = 0, *, process: bool = False) -> int:
        """Make a group of lanes, inside another or at the top, there perhaps as a process. Return its number."""
        number = self._next_track()
        descriptor = _number(1, number) + _text(2, name) + _number(11, 3) + _number(12, rank)
        if process:
            self._processes += 1
            descriptor += _block(3, _number(1, self._processes) + _text(6, name))
        elif parent is not None:
            descriptor += _number(5, parent)
        self._packet(_block(60, descriptor))
        return number

    def lane(self, name: str, parent: int, rank: int = 0) -> bytes:
        """Make a lane, on which slices nest and never overlap otherwise. Return what the methods below take for it."""
        number = self._next_track()
        # Never merged with one of the same name: their slices may overlap.
        descriptor = _number(1, number) + _text(2, name) + _number(5, parent) + _number(12, rank) + _number(15, 2)
        self._packet(_block(60, descriptor))
        return _number(11, number)

    def begin(
        self,
        lane: bytes,
        start: int,
        end: int,  # noqa: ARG002  # other formats write it here
        name: str,
        category: str = "",
        data: Data = None,
    ) -> None:
        """Begin a slice; `end` must follow, after all that begin inside it. Times in wall-clock nanoseconds."""
        self._event(_BEGIN, lane, start, name, category, data)

    def end(self, lane: bytes, end: int) -> None:
        """End the slice of the lane that began last."""
        self._parts += (self._ends[0], self._time(end), self._ends[1], b"\x48\x02", lane)
        if len(self._parts) >= _BUFFER:
            self.flush()

    def instant(self, lane: bytes, at: int, name: str, category: str = "", data: Data = None) -> None:
        """Write an event without a length."""
        self._event(_INSTANT, lane, at, name, category, data)

    def flow(self, lane: bytes, at: int, phase: str, flow: int, name: str, category: str = "") -> None:
        """Write an end of an arrow, at the slice of the lane that began last and has not ended."""
        number = varint(flow)
        legacy = b"".join((_PHASES[phase], b"\x40", number, b"\x30", number, b"\x60\x01"))
        self._event(0, lane, at, name, category, None, bytes((0x32, len(legacy))) + legacy)

    def counter(self, name: str, parent: int, rank: int = 0) -> bytes:
        """Make a counter, a row with a value at a time. Return what `value` takes for it."""
        number = self._next_track()
        descriptor = _number(1, number) + _text(2, name) + _number(5, parent) + _number(12, rank) + _number(15, 2)
        self._packet(_block(60, descriptor + _block(8, b"")))
        return _number(11, number)

    def value(self, counter: bytes, at: int, value: float) -> None:
        """Write what a counter has from then on."""
        self.events += 1
        before, after = self._values
        self._parts += (before, self._time(at), after, self._value_key, _VALUE.pack(value), counter)
        if len(self._parts) >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        """Hand over what was written so far."""
        self._write(b"".join(self._parts))
        self._parts.clear()

    def close(self) -> None:
        """Write the rest. A trace has no end mark."""
        self.flush()

    def _event(self, kind: int, lane: bytes, at: int, name: str, category: str, data: Data, more: bytes = b"") -> None:
        self.events += 1
        named = self._names.get(name) or self._intern_name(name)
        classed = self._categories.get(category)
        if classed is None:
            classed = self._intern_category(category)
        if data:
            more += b"".join(map(self._annotation, data, data.values()))
        content = len(lane) + len(named) + len(classed) + len(more) + 2
        kinds = b"\x48\x01" if kind == _BEGIN else b"\x48" + bytes((kind,))
        if content < 0x70:
            # The usual case. One byte for each length.
            self._parts += (
                bytes((0x0A, content + 2 + len(self._tail) + 10, 0x40)), self._time(at), self._tail,
                bytes((0x5A, content)), kinds, lane, named, classed, more,
            )  # fmt: skip
        else:
            event = b"".join((kinds, lane, named, classed, more))
            self._packet(b"\x40" + self._time(at) + self._tail + _block(11, event))
        if len(self._parts) >= _BUFFER:
            self.flush()

    def _prefix(self, content: int) -> tuple[bytes, bytes]:
        """Return what stands before and after the time in a packet whose event has this length, below 112."""
        length = 10 + len(self._tail) + 2 + content
        return bytes((0x0A, length, 0x40)), self._tail + bytes((0x5A, content))

    def _time(self, time: int) -> bytes:
        if not _EARLIEST <= time <= _LATEST:
            time = min(max(time, _EARLIEST), _LATEST)
        high = self._high.get(time >> 28)
        if high is None:
            if len(self._high) > 1 << 12:
                self._high.clear()
            high = self._high[time >> 28] = varint(time >> 28)
        return _PAIRS[time & 0x3FFF] + _PAIRS[time >> 14 & 0x3FFF] + high

    def _intern_name(self, name: str) -> bytes:
        encoded = name.encode("utf-8", "replace")
        self._name_bytes += len(encoded)
        if len(self._names) >= _MOST_NAMES or self._name_bytes > _MOST_NAME_BYTES:
            return _block(23, encoded)
        number = _FIRST_NAME + len(self._names)
        self._intern(2, number, encoded)
        self._names[name] = _number(10, number)
        return self._names[name]

    def _intern_category(self, category: str) -> bytes:
        encoded = category.encode("utf-8", "replace")
        if len(self._categories) >= _MOST_CATEGORIES or len(encoded) > 1000:
            return _block(22, encoded)
        number = _FIRST_CATEGORY + len(self._categories)
        self._intern(1, number, encoded)
        self._categories[category] = _number(3, number)
        return self._categories[category]

    def _annotation(self, key: str, value: Value) -> bytes:
        named = self._annotations.get(key)
        if named is None:
            named = self._annotations[key] = _number(1, len(self._annotations) + 1)
            self._intern(3, len(self._annotations), key.encode("utf-8", "replace"))
        if isinstance(value, bool):
            return _block(4, named + _number(2, value))
        if isinstance(value, int):
            return _block(4, named + _number(4, value))
        return _block(4, named + _text(6, value if isinstance(value, str) else repr(value)))

    def _intern(self, field: int, number: int, content: bytes) -> None:
        self._packet(self._tail + _block(12, _block(field, _number(1, number) + _block(2, content))))

    def _packet(self, content: bytes) -> None:
        self._parts.append(_block(1, content))

    def _next_track(self) -> int:
        self._tracks += 1
        return self._tracks
