"""Tracks: slices that overlap and do not nest are put on lanes of their own, so that no viewer drops or bends them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol, TypeAlias

    Value: TypeAlias = str | int | float | bool
    Data: TypeAlias = Mapping[str, Value] | None

    class Writer(Protocol):
        """What writes a format. Times are wall-clock nanoseconds.

        A lane is whatever `lane` returns. ``begin`` and ``end`` of a lane come in the order of their times, and every
        ``begin`` has its ``end``, that of the one that began last first. What `counter` returns is for `value` alone.
        """

        events: int

        def group(self, name: str, parent: int | None = None, rank: int = 0, *, process: bool = False) -> int: ...
        def lane(self, name: str, parent: int, rank: int = 0) -> Any: ...
        def begin(self, lane: Any, start: int, end: int, name: str, category: str = "", data: Data = None) -> None: ...
        def end(self, lane: Any, end: int) -> None: ...
        def instant(self, lane: Any, at: int, name: str, category: str = "", data: Data = None) -> None: ...
        def flow(self, lane: Any, at: int, phase: str, flow: int, name: str, category: str = "") -> None: ...
        def counter(self, name: str, parent: int, rank: int = 0) -> Any: ...
        def value(self, counter: Any, at: int, value: float) -> None: ...
        def close(self) -> None: ...


__all__ = ["DEEPEST", "MOST_LANES", "Track"]

DEEPEST = 200
"""Perfetto counts depths in one byte and drops what is deeper."""
MOST_LANES = 200
"""Lanes of one track. With `DEEPEST` it bounds how many slices may be open at a time."""


class Track:
    """What belongs in one row: a thread, a stream, a device's lock. It has one lane, and more where slices overlap.

    Args:
        writer: of the format.
        name: of the first lane; the others have a number behind it.
        group: of the writer, in which the lanes lie.
        rank: the order among what is in the group.
    """

    def __init__(self, writer: Writer, name: str, group: int, rank: int = 0) -> None:
        self._writer, self._name, self._group, self._rank = writer, name, group, rank
        self._lanes: list[_Lane] = []

    def add(self, start: int, end: int, name: str, category: str = "", data: Data = None) -> None:
        """Draw a slice. They come in the order of their starts, the longer first; after `finish` in any order."""
        end = max(start, end)
        for lane in self._lanes:
            ends = lane.ends
            while ends and ends[-1] <= start:
                self._writer.end(lane.handle, ends.pop())
            if ends:
                if ends[-1] >= end and len(ends) < DEEPEST:
                    break
            elif start >= lane.free:
                break
        else:
            if len(self._lanes) == MOST_LANES:
                # More at a time than any viewer can show: its length becomes words, and it is there.
                self.instant(start, name, category, {**(data or {}), "nanoseconds": end - start})
                return
            lane = self._new_lane()
        lane.ends.append(end)
        lane.free = max(lane.free, end)
        self._writer.begin(lane.handle, start, end, name, category, data)

    def instant(self, at: int, name: str, category: str = "", data: Data = None) -> None:
        """Draw an event without a length."""
        lane = self._lanes[0] if self._lanes else self._new_lane()
        self._writer.instant(lane.handle, at, name, category, data)

    def flow(self, at: int, phase: str, flow: int, name: str, category: str = "") -> None:
        """Draw an end of an arrow, at the innermost slice that is there at that time; without one, as an instant."""
        for lane in self._lanes:
            while lane.ends and lane.ends[-1] < at:
                self._writer.end(lane.handle, lane.ends.pop())
            if lane.ends:
                self._writer.flow(lane.handle, at, phase, flow, name, category)
                return
        self.instant(at, name, category, {"flow": flow})

    def finish(self) -> None:
        """End every slice. What comes next may begin at any time, and is kept apart from what is there."""
        for lane in self._lanes:
            while lane.ends:
                self._writer.end(lane.handle, lane.ends.pop())

    def _new_lane(self) -> _Lane:
        number = len(self._lanes) + 1
        name = self._name if number == 1 else f"{self._name} ({number})"
        self._lanes.append(_Lane(self._writer.lane(name, self._group, self._rank)))
        return self._lanes[-1]


class _Lane:
    """Slices that nest: ``ends`` of those that are open, the innermost last; from ``free`` on there is none."""

    __slots__ = ("ends", "free", "handle")

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.ends: list[int] = []
        self.free = -(1 << 63)
