"""Traces: the events of profilers' own files on a timeline, in fixed memory, each on the tracks of its file."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass, field
from hashlib import blake2b

from profwin.evidence.sorter import KINDS, Sorter
from profwin.evidence.tracks import Track

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO, Any

    from profwin.evidence.model import Slice
    from profwin.evidence.tracks import Writer

__all__ = ["Drawing", "Group"]

_LIMIT = 1 << 62
_MOST_NAMES, _MOST_NAME_BYTES = 1 << 17, 16 << 20
_MOST_CATEGORIES = 1 << 12
_MOST_TRACKS = 1 << 13
_FURTHER = "further tracks"
_KINDS = {kind: number for number, kind in enumerate(KINDS)}
_COUNTER = _KINDS["counter"]
_VALUE = struct.Struct(">d")
_LONGEST_TRACK = 300
_FLOW_BITS = 40
_FLOW_DIGITS = 13
_HOST = 1 << 16
"""Rank from which the host's tracks stand, below the device's."""
PROGRESS = 1 << 16
"""Events between two calls of the progress function."""


@dataclass
class Group:
    """Where the tracks of a file lie: a group of the writer, and the tracks and counters that are there, by name.

    Files of one process share a group, so that a thread has one row in all of them.
    """

    number: int
    tracks: dict[str, Track]
    counters: dict[str, Any] = field(default_factory=dict)


class Drawing:
    """Draw the slices of one file.

    Args:
        directory: for what does not fit into memory; see `Sorter`.
        number: of the file, so that its arrows' numbers are no other file's.
        progress: called now and then with how many events have been read.

    Attributes:
        read: how many events were read.
        begin, end: of what was read, on the file's clock.
    """

    def __init__(self, directory: str, number: int, progress: Callable[[int], None] | None = None) -> None:
        self._sorter = Sorter(directory)
        self._names = _Names(directory)
        self._categories: dict[str, int] = {}
        self._tracks: dict[str, int] = {}
        self._on_device: list[bool] = []
        self._number = number
        self._progress = progress
        self.read = 0
        self.begin, self.end = _LIMIT, -_LIMIT

    def take(self, slices: Iterable[Slice]) -> None:
        """Read all slices."""
        put, tracks, categories, kinds = self._sorter.put, self._tracks, self._categories, _KINDS
        names, new_name = self._names.numbers, self._names.add
        begin, last = self.begin, self.end
        for read, each in enumerate(slices, self.read + 1):
            track = tracks.get(each.track)
            if track is None:
                track = self._new_track(each)
            name = names.get(each.name)
            if name is None:
                name = new_name(each.name)
            category = categories.get(each.category)
            if category is None:
                category = self._new_category(each.category)
            start, end = each.start, each.end
            if not -_LIMIT < start <= end < _LIMIT:
                start = min(max(start, -_LIMIT), _LIMIT)
                end = max(min(end, _LIMIT), start)
            if start < begin:
                begin = self.begin = start
            if end > last:
                last = self.end = end
            kind = each.kind
            if kind == "slice":
                put(track, start, end, 0, name, category, 0)
            elif kind == "counter":
                put(track, start, end, _COUNTER, name, category, int.from_bytes(_VALUE.pack(each.value), "big"))
            else:
                put(track, start, end, kinds[kind], name, category, self._flow(each.flow) if each.flow else 0)
            self.read = read
            if not read % PROGRESS and self._progress is not None:
                self._progress(read)

    def draw(self, writer: Writer, group: Group, shift: int) -> None:
        """Draw what was read, each time moved by ``shift``. Once."""
        names, categories, finished = self._names, list(self._categories), []
        labels = list(self._tracks)
        current, track = -1, None
        for number, start, end, kind, name, category, more in self._sorter:
            if kind == _COUNTER and labels[number] != _FURTHER:
                counter = self._counter(writer, group, labels[number])
                writer.value(counter, start + shift, _VALUE.unpack(more.to_bytes(8, "big"))[0])
                continue
            if number != current or track is None:
                current = number
                track = self._track(writer, group, labels[number], on_device=self._on_device[number])
                finished.append(track)
            if kind == 0:
                track.add(start + shift, end + shift, names[name], categories[category])
            elif kind == 1:
                track.instant(start + shift, names[name], categories[category])
            elif kind == _COUNTER:
                data = {"value": _VALUE.unpack(more.to_bytes(8, "big"))[0]}
                track.instant(start + shift, names[name], categories[category], data)
            else:
                track.flow(start + shift, KINDS[kind], more, names[name], categories[category])
        for each in finished:
            each.finish()

    def close(self) -> None:
        """Give back memory and files."""
        self._sorter.close()
        self._names.close()

    def _track(self, writer: Writer, group: Group, label: str, *, on_device: bool) -> Track:
        found = group.tracks.get(label)
        if found is None:
            rank = len(group.tracks) + (0 if on_device else _HOST)
            found = group.tracks[label] = Track(writer, label, group.number, rank)
        return found

    def _counter(self, writer: Writer, group: Group, label: str) -> Any:
        found = group.counters.get(label)
        if found is None:
            found = group.counters[label] = writer.counter(label, group.number, len(group.counters) + 2 * _HOST)
        return found

    def _new_track(self, first: Slice) -> int:
        label = first.track[:_LONGEST_TRACK] or "events"
        if len(self._tracks) >= _MOST_TRACKS:
            label = _FURTHER  # there each slice gets the lane that it needs
        elif first.track != label:
            label = f"{label} #{len(self._tracks)}"
        if label not in self._tracks:
            self._tracks[label] = len(self._tracks)
            self._on_device.append(first.on_device)
        return self._tracks[label]

    def _new_category(self, category: str) -> int:
        if len(self._categories) >= _MOST_CATEGORIES:
            category = "other"
        return self._categories.setdefault(category, len(self._categories))

    def _flow(self, flow: int | str) -> int:
        if isinstance(flow, str) and len(flow) < _FLOW_DIGITS and flow.isdecimal() and flow[0] != "0":
            flow = int(flow)
        if not isinstance(flow, int) or not 0 <= flow < 1 << _FLOW_BITS:
            text = str(flow).encode("utf-8", "replace")
            flow = int.from_bytes(blake2b(text, digest_size=_FLOW_BITS // 8).digest(), "big")
        return self._number << _FLOW_BITS | flow


class _Names:
    """Numbers for names. Those beyond what memory is meant to hold are kept in an unnamed file."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._texts: list[str] = []
        self._bytes = 0
        self.numbers: dict[str, int] = {}

    def add(self, name: str) -> int:
        """Return the number of a name that has none yet."""
        self._bytes += len(name)
        if len(self._texts) < _MOST_NAMES and self._bytes < _MOST_NAME_BYTES:
            self._texts.append(name)
            return self.numbers.setdefault(name, len(self._texts) - 1)
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115  # closed by `close`
        at = self._file.seek(0, 2)
        encoded = name.encode("utf-8", "surrogatepass")
        self._file.write(struct.pack(">I", len(encoded)) + encoded)
        return _MOST_NAMES + at

    def __getitem__(self, number: int) -> str:
        if number < len(self._texts):
            return self._texts[number]
        assert self._file is not None
        self._file.seek(number - _MOST_NAMES)
        (size,) = struct.unpack(">I", self._file.read(4))
        return self._file.read(size).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
