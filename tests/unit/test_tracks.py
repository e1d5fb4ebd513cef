"""Tracks and the sorting before them: every slice is kept, and none overlaps another on its lane without nesting."""

from __future__ import annotations

import tempfile

from hypothesis import given
from hypothesis import strategies as st

from profwin.evidence import sorter, tracks
from profwin.evidence.sorter import Sorter
from profwin.evidence.tracks import DEEPEST, Track

TIMES = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple)


class Lanes:
    """A writer that holds what it is given to what it may expect."""

    def __init__(self) -> None:
        self.lanes: dict[str, list[tuple[int, int, str]]] = {}
        self.stacks: dict[str, list[int]] = {}
        self.instants: list[tuple[str, int, str, object]] = []
        self.flows: list[tuple[str, int, int]] = []
        self.events = 0
        self.deepest = 0
        self._at: dict[str, int] = {}

    def lane(self, name, parent, rank=0):
        """Make a lane."""
        assert name not in self.lanes
        self.lanes[name], self.stacks[name] = [], []
        return name

    def begin(self, lane, start, end, name, category="", data=None):
        """Take the begin of a slice."""
        stack = self.stacks[lane]
        assert not stack or (stack[-1] >= end and stack[-1] > start), "it overlaps what it is in"
        self._pass(lane, start)
        stack.append(end)
        self.deepest = max(self.deepest, len(stack))
        self.lanes[lane].append((start, end, name))

    def end(self, lane, end):
        """Take the end of a slice."""
        assert self.stacks[lane].pop() == end
        self._pass(lane, end)

    def instant(self, lane, at, name, category="", data=None):
        """Take an instant."""
        self.instants.append((lane, at, name, data))

    def flow(self, lane, at, phase, flow, name, category=""):
        """Take an end of an arrow."""
        assert self.stacks[lane][-1] >= at
        self.flows.append((lane, at, flow))

    def _pass(self, lane, at):
        assert at >= self._at.get(lane, at), "time goes back"
        self._at[lane] = at

    def all(self):
        """Return all slices, sorted."""
        assert not any(self.stacks.values()), "a slice is open"
        return sorted(each for lane in self.lanes.values() for each in lane)


def _drawn(times, batches=1):
    writer = Lanes()
    track = Track(writer, "row", 0)
    for batch in range(batches):
        mine = times[batch::batches]
        for number, (start, end) in enumerate(sorted(mine, key=lambda each: (each[0], -each[1]))):
            track.add(start, end, f"{batch}.{number}")
        track.finish()
    return writer


@given(st.lists(TIMES, max_size=40))
def test_every_slice_is_kept_and_nests(times):
    """No two slices of a lane overlap unless one holds the other, and all are there with their times."""
    writer = _drawn(times)
    assert [each[:2] for each in writer.all()] == sorted(times)


@given(st.lists(TIMES, max_size=40), st.integers(2, 4))
def test_files_one_after_the_other(times, batches):
    """What comes after `finish` may begin at any time, earlier too, and is kept apart from what is there."""
    assert [each[:2] for each in _drawn(times, batches).all()] == sorted(times)


def test_nesting_takes_one_lane():
    """Slices that nest, touch or have no length stay on the first lane."""
    assert set(_drawn([(0, 10), (0, 10), (2, 4), (4, 6), (10, 10), (10, 12), (6, 10), (0, 0)]).lanes) == {"row"}


def test_overlap_takes_a_second_lane():
    """A slice that begins inside another and outlives it gets a lane of its own, with a number."""
    assert _drawn([(0, 10), (5, 15), (12, 20)]).lanes == {
        "row": [(0, 10, "0.0"), (12, 20, "0.2")],
        "row (2)": [(5, 15, "0.1")],
    }


def test_deep_nesting():
    """What is nested deeper than Perfetto counts goes on on another lane."""
    writer = _drawn([(number, 2000 - number) for number in range(2 * DEEPEST + 1)])
    assert len(writer.all()) == 2 * DEEPEST + 1
    assert writer.deepest == DEEPEST
    assert len(writer.lanes) == 3


def test_more_at_a_time_than_lanes(monkeypatch):
    """Where all lanes are taken a slice becomes an instant that says its length: memory is bounded, nothing is lost."""
    monkeypatch.setattr(tracks, "MOST_LANES", 3)
    writer = _drawn([(number, 100 + number) for number in range(10)])
    assert len(writer.lanes) == 3
    assert [(at, data) for _lane, at, _name, data in writer.instants] == [
        (number, {"nanoseconds": 100}) for number in range(3, 10)
    ]


def test_arrows_find_their_slices():
    """An arrow's end goes to the lane that has a slice there, one without a slice becomes an instant."""
    writer = Lanes()
    track = Track(writer, "row", 0)
    track.add(0, 10, "a")
    track.add(5, 15, "b")
    track.flow(10, "flow-start", 1, "arrow")
    track.flow(12, "flow-start", 2, "arrow")
    track.flow(20, "flow-start", 3, "arrow")
    track.finish()
    assert writer.flows == [("row", 10, 1), ("row (2)", 12, 2)]
    assert writer.instants == [("row", 20, "arrow", {"flow": 3})]


NUMBERS = st.tuples(
    st.integers(0, 3), st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 4), st.integers(0, 1 << 40),
    st.integers(0, 99), st.integers(0, (1 << 64) - 1),
)  # fmt: skip


@given(st.lists(NUMBERS, max_size=200), st.integers(1, 9))
def test_sorting(records, piece):
    """However little fits into memory, all comes back by track, start, the longer first, and slices before the rest."""
    expected = sorted(records, key=lambda each: (each[0], each[1], -each[2], *each[3:]))
    with tempfile.TemporaryDirectory() as directory:
        found = Sorter(directory, piece)
        for each in records:
            found.put(*each)
        assert list(found) == expected


def test_sorting_leaves_no_file_and_merges_few(tmp_path, monkeypatch):
    """Pieces are unnamed files, and however many there are, few are open at a time."""
    monkeypatch.setattr(sorter, "FAN", 4)
    monkeypatch.setattr(sorter, "_BLOCK", 8)
    found = Sorter(str(tmp_path), 10)
    for number in range(3000):
        found.put(0, number * 7919 % 3000, 3000, 0, 0, 0, 0)
        assert sum(map(len, found._levels)) <= 4 * 5
    assert [each[1] for each in found] == list(range(3000))
    assert not list(tmp_path.iterdir())
