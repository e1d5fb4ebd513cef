"""The timeline of an `*_ascend_pt` folder's text export, trace_view.json: a list of events, times in quotes."""

from __future__ import annotations

import re

from profwin.evidence.formats.ascend_contents import Contents
from profwin.evidence.formats.ascend_processes import HARDWARE, Process, Processes
from profwin.evidence.formats.busy import Busy
from profwin.evidence.formats.event import nanoseconds
from profwin.evidence.formats.stream import Trace
from profwin.evidence.formats.text import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.damage import Damage
    from profwin.evidence.formats.event import Event
    from profwin.evidence.model import Tally

__all__ = ["read_timeline"]

_OVERLAP = "Overlap Analysis"
_DERIVED = ("Computing", "Communication")
_STEP = re.compile(r"^ProfilerStep#(\d{1,15})$")
_TRACKS, _CATEGORIES, _STEPS = 1024, 10_000, 10_000
_INTERVALS = 2048


class _Track:
    """One row's busy time and counts; what it belongs to may only be known at the end of the file."""

    def __init__(self) -> None:
        self.busy = Busy(_INTERVALS)
        self.count = 0
        self.first = self.last = 0

    def add(self, start: int, end: int) -> None:
        self.first = min(self.first, start) if self.count else start
        self.last = max(self.last, end)
        self.count += 1
        self.busy.add(start, end)


def read_timeline(path: str, damage: Damage, tally: Tally) -> Contents:
    """Read it in one pass; names of processes may follow their events. The tasks of the steps are not counted here."""
    processes = Processes()
    tracks: dict[tuple[bytes, str], _Track] = {}
    found = Contents()
    steps: set[str] = set()
    text = Text(path, damage)
    for events in Trace(text.pieces(), damage, text.place).batches():
        for event in events:
            tally.events += 1
            if event.ph == "M":
                processes.describe(event)
            if event.ph != "X":
                continue
            if event.cat and (event.cat in tally.categories or len(tally.categories) < _CATEGORIES):
                tally.categories[event.cat] = tally.categories.get(event.cat, 0) + 1
            tally.slices += 1
            step = _STEP.match(event.name)
            if step and len(steps) < _STEPS:
                steps.add(step[1])
            if event.cat:
                continue  # host work has a category, device work none
            times = _times(event)
            if times is None:
                continue
            # Rows of the overlap analysis are told apart by the names of their events.
            key = (bytes(event.pid), event.name if event.name in (*_DERIVED, "Free") else "")
            if key in tracks or len(tracks) < _TRACKS:
                tracks.setdefault(key, _Track()).add(*times)
    found.steps = dict.fromkeys(sorted(steps, key=int), 0)
    _conclude(found, processes, tracks, tally)
    return found


def _times(event: Event) -> tuple[int, int] | None:
    try:
        start, length = nanoseconds(bytes(event.ts)), nanoseconds(bytes(event.dur))
    except (ValueError, OverflowError):
        return None
    return (start, start + length) if start >= 0 and length >= 0 else None


def _conclude(found: Contents, processes: Processes, tracks: dict[tuple[bytes, str], _Track], tally: Tally) -> None:
    """Sum up the tracks of each NPU: those of the hardware, else what the overlap analysis made of them."""
    hardware = [pair for pair in tracks if processes.get(pair[0], Process()).hardware]
    derived = [pair for pair in tracks if processes.get(pair[0], Process()).name == _OVERLAP and pair[1] in _DERIVED]
    for pair in hardware or derived:
        process, track = processes[pair[0]], tracks[pair]
        found.busy.setdefault(process.device, Busy()).update(track.busy)
        tally.device_slices += track.count
        first, last = found.extent or (track.first, track.last)
        found.extent = min(first, track.first), max(last, track.last)
    found.communicated = any(
        pair[1] == "Communication" or processes[pair[0]].name in HARDWARE[1:] for pair in [*hardware, *derived]
    )
