"""Chrome's format as it is written: plain JSON, exact times, names as they are."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from profwin.evidence import chrome
from profwin.evidence.chrome import JsonWriter

WALL = 1_790_000_000_000_000_000


class Trace:
    """A writer with one lane inside a group inside another."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.writer = JsonWriter(self.parts.append, WALL)
        self.top = self.writer.group("devices of host", rank=-1)
        self.lane = self.writer.lane("card", self.writer.group("inside", self.top), 3)

    def read(self):
        """End the trace; return its events, numbers as text, those about names apart."""
        self.writer.close()
        events = json.loads(b"".join(self.parts), parse_float=str)["traceEvents"]
        names = [event for event in events if event["ph"] == "M"]
        return [event for event in events if event["ph"] != "M"], names


@given(st.integers(-(10**15), 10**18), st.integers(0, 10**15), st.text(), st.text())
def test_slices(start, length, name, category):
    """Every nanosecond and character is there, before the beginning of the timeline too."""
    trace = Trace()
    trace.writer.begin(trace.lane, WALL + start, WALL + start + length, name, category)
    trace.writer.end(trace.lane, WALL + start + length)
    ((event,), _names) = trace.read()
    assert (event["name"], event["cat"]) == (name, category)
    assert int(event["ts"].replace(".", "")) == start
    assert int(event["dur"].replace(".", "")) == length
    assert event["ts"][-4] == event["dur"][-4] == "."
    assert trace.writer.events == 1


def test_names_of_groups_and_lanes():
    """A group at the top is a process, one inside it is told by its lanes' names; both keep their order."""
    _events, names = Trace().read()
    said = [(each["pid"], each["tid"], each["name"], each["args"]) for each in names[1:]]
    assert said == [
        (1, 0, "process_name", {"name": "devices of host"}),
        (1, 0, "process_sort_index", {"sort_index": -1}),
        (1, 1, "thread_name", {"name": "inside: card"}),
        (1, 1, "thread_sort_index", {"sort_index": 3}),
    ]


def test_arrows_instants_and_data():
    """An arrow's ends have one id; an instant is its thread's; data are arguments."""
    trace = Trace()
    trace.writer.begin(trace.lane, WALL, WALL + 10, "a", "", {"step": 2, "x": "y"})
    trace.writer.flow(trace.lane, WALL + 1, "flow-start", 1 << 41 | 7, "ac2g", "c")
    trace.writer.flow(trace.lane, WALL + 2, "flow-end", 1 << 41 | 7, "ac2g", "c")
    trace.writer.instant(trace.lane, WALL + 3, "b", "", {"z": True})
    (first, begin, end, instant), _names = trace.read()
    assert first["args"] == {"step": 2, "x": "y"}
    assert (begin["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
    assert begin["id"] == end["id"] == "0x20000000007"
    assert (instant["ph"], instant["s"], instant["args"]) == ("i", "t", {"z": True})


def test_memory_for_names(monkeypatch):
    """Only so many names are remembered; the others are written all the same."""
    monkeypatch.setattr(chrome, "_MOST_NAMES", 3)
    trace = Trace()
    for number in range(20):
        trace.writer.instant(trace.lane, WALL, f"name {number}")
    events, _names = trace.read()
    assert [event["name"] for event in events] == [f"name {number}" for number in range(20)]
    assert len(trace.writer._texts) == 3


def test_names_that_are_not_unicode():
    """Half a pair of surrogates is escaped, and the file stays ASCII."""
    trace = Trace()
    trace.writer.instant(trace.lane, WALL, "a\udcff\u2028")
    events, _names = trace.read()
    assert events[0]["name"] == "a\udcff\u2028"
    assert b"".join(trace.parts).isascii()
