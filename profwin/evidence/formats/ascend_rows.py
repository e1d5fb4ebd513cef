"""Rows of an `*_ascend_pt` folder's timeline: slices, arrows and counters, each on its row."""

from __future__ import annotations

import re
from typing import Any  # msgspec needs it when it runs

import msgspec

from profwin.evidence.formats.ascend_processes import Process, Processes
from profwin.evidence.formats.event import Event, nanoseconds, plain
from profwin.evidence.formats.stream import Trace
from profwin.evidence.formats.text import Text
from profwin.evidence.model import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.damage import Damage

__all__ = ["timeline_slices"]

_ROWS = 1 << 12
_USUAL = re.compile(rb'(?:"[0-3]?\d{1,15}\.\d{3}"\n)*')
"""Times of this century, in quotes."""
_POINTS = {"s": "flow-start", "t": "flow-step", "f": "flow-end", "i": "instant", "I": "instant"}
_DRAWN = frozenset("XCstfiI")
_UNIT = "acc_id"
"""Beside a counter's value it says which accelerator has it."""


class _Event(Event, gc=False):
    """An event whose arguments stay text: those of a counter have names of any kind."""

    args: msgspec.Raw = msgspec.Raw(b"")  # type: ignore[assignment]  # decoded again where it is a counter's


_LARGEST = 1 << 1000
_EVENTS: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[_Event])
_VALUES = msgspec.json.Decoder(dict[str, Any])


def timeline_slices(path: str, damage: Damage) -> Iterator[Slice]:
    """Yield all that can be drawn, that of the overlap analysis too, which is made of the others."""
    rows = _Rows(Processes.search(path))
    known = rows.known
    text = Text(path, damage)
    for batch in Trace(text.pieces(), damage, text.place, _EVENTS).batches():
        events = [event for event in batch if event.ph in _DRAWN]
        for event, start in zip(events, _starts(events), strict=True):
            if start < 0:
                continue
            phase = event.ph
            if phase == "X":
                try:
                    length = nanoseconds(bytes(event.dur))
                except (ValueError, OverflowError):
                    continue
                if length >= 0:
                    key = bytes(event.pid), bytes(event.tid)
                    name, on_device = known.get(key) or rows.row(key)
                    yield Slice(event.name, start, start + length, name, on_device, event.cat)
            elif phase == "C":
                yield from rows.values(event, start)
            else:
                name, on_device = rows.row((bytes(event.pid), bytes(event.tid)))
                flow = "" if phase in "iI" else plain(bytes(event.id)) or "?"
                # Some are named after their number: kept, each would be a name that nothing else has.
                word = event.name.removesuffix(flow) or event.name
                yield Slice(word, start, start, name, on_device, event.cat, _POINTS[phase], flow)


def _starts(events: list[Event]) -> list[int]:
    """Return their times, -1 for what is none. As a rule all are written in one way: then they are read together."""
    joined = b"\n".join([*[event.ts for event in events], b""])
    if _USUAL.fullmatch(joined):
        return [int(number) for number in joined.translate(None, b'".').split()]
    starts = []
    for event in events:
        try:
            starts.append(nanoseconds(bytes(event.ts)))
        except (ValueError, OverflowError):
            starts.append(-1)
    return starts


class _Rows:
    """The rows of one file.

    Attributes:
        known: by process and thread: what `row` has returned.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._counters: dict[tuple[bytes, str, str, str], str] = {}
        self.known: dict[tuple[bytes, bytes], tuple[str, bool]] = {}

    def row(self, key: tuple[bytes, bytes]) -> tuple[str, bool]:
        """Return the name of a row, and whether it is the hardware's."""
        found = self.known.get(key)
        if found is None:
            process = self._process(key[0])
            found = f"{process.title} {plain(key[0])}:{plain(key[1])}", process.hardware
            if len(self.known) < _ROWS:
                self.known[key] = found
        return found

    def values(self, event: Event, at: int) -> list[Slice]:
        """Return the values of a counter: as a rule there is one."""
        try:
            arguments = _VALUES.decode(event.args) if isinstance(event, _Event) else {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return []
        unit = str(arguments.pop(_UNIT, ""))[:20] if len(arguments) > 1 else ""
        pid, found = bytes(event.pid), []
        for name, value in arguments.items():
            if type(value) is float or (type(value) is int and abs(value) < _LARGEST):
                counter = self._counters.get((pid, event.name, name, unit)) or self._counter(
                    pid, event.name, name, unit
                )
                found.append(Slice(event.name, at, at, counter, True, event.cat, "counter", value=value))
        return found

    def _counter(self, pid: bytes, name: str, series: str, unit: str) -> str:
        # What is measured is part of its name where it is more than "value".
        parts = [self._process(pid).title, plain(pid), name, unit, "" if series in ("value", name) else series]
        label = " ".join(part for part in parts if part)
        if len(self._counters) < _ROWS:
            self._counters[pid, name, series, unit] = label
        return label

    def _process(self, pid: bytes) -> Process:
        found = self._processes.get(pid, Process())
        return found if found.name else Process(f"process {plain(pid)}", found.label)
