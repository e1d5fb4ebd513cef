"""Perfetto's format as it is written, read again by a decoder that shares nothing with the writer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from perfetto_decoder import decode, fields, slices

from profwin.evidence import perfetto
from profwin.evidence.perfetto import ProtobufWriter, varint

WALL = 1_764_480_000_000_000_000


class Trace:
    """A writer, one lane, and what was written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.writer = ProtobufWriter(self.parts.append, WALL)
        self.group = self.writer.group("actor", process=True)
        self.lane = self.writer.lane("thread 1", self.group)

    def tracks(self):
        """End the trace and return its tracks."""
        self.writer.close()
        return decode(b"".join(self.parts))

    def slice(self, start, end, name, category="", data=None):
        """Write a slice."""
        self.writer.begin(self.lane, start, end, name, category, data)
        self.writer.end(self.lane, end)


@given(st.integers(0, (1 << 64) - 1))
def test_varint(value):
    """A number is read again as it was."""
    (found,) = fields(b"\x08" + varint(value))
    assert found == (1, value)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**15), st.integers(0, 10**12), st.text(max_size=200), st.text(max_size=30),
            st.dictionaries(st.text(max_size=5), st.integers(-5, 5) | st.text(max_size=9) | st.booleans(), max_size=3),
        )
    )
)  # fmt: skip
def test_slices_are_read_again(wanted):
    """Times to the nanosecond, names, categories and data of every slice are in the trace, whatever the text."""
    trace = Trace()
    lanes = [trace.writer.lane(str(number), trace.group) for number in range(len(wanted))]
    for lane, (start, length, name, category, data) in zip(lanes, wanted, strict=True):
        trace.writer.begin(lane, WALL + start, WALL + start + length, name, category, data)
        trace.writer.end(lane, WALL + start + length)
    tracks = [track for track in trace.tracks().values() if track.slices]
    found = [each for track in tracks for each in track.slices]
    assert len(found) == len(wanted) == trace.writer.events
    for (start, length, name, category, data), each in zip(wanted, found, strict=True):
        data = {key: value if isinstance(value, str) else value % (1 << 64) for key, value in data.items()}
        assert each == (WALL + start, WALL + start + length, name, category, data)


def test_groups_and_lanes():
    """Lanes lie in groups, groups in groups; only what is said to be one is a process, with a number of its own."""
    trace = Trace()
    other = trace.writer.group("critic", process=True)
    inner = trace.writer.group("inside", other)
    lane = trace.writer.lane("stream", inner, 5)
    trace.writer.instant(lane, WALL, "mark")
    tracks = trace.tracks()
    paths = {track.path: track for track in tracks.values()}
    assert set(paths) == {
        ("actor",), ("actor", "thread 1"), ("critic",), ("critic", "inside"), ("critic", "inside", "stream")
    }  # fmt: skip
    assert [track.process for track in tracks.values()] == [1, None, 2, None, None]
    assert paths["critic", "inside", "stream"].rank == 5


def test_a_name_is_sent_once():
    """The second slice of a name takes a few bytes."""
    trace = Trace()
    trace.slice(WALL, WALL + 1, "x" * 5000)
    trace.writer.flush()
    before = sum(map(len, trace.parts))
    trace.slice(WALL + 2, WALL + 3, "x" * 5000)
    trace.writer.flush()
    assert sum(map(len, trace.parts)) - before < 70


def test_more_names_than_memory(monkeypatch):
    """Names and categories beyond what is remembered are written out each time, and are the same."""
    monkeypatch.setattr(perfetto, "_MOST_NAMES", 3)
    monkeypatch.setattr(perfetto, "_MOST_CATEGORIES", 3)
    trace = Trace()
    for number in range(20):
        trace.slice(WALL + number, WALL + number + 1, f"name {number % 7}", f"category {number % 6}")
    found = [each for track in trace.tracks().values() for each in track.slices]
    assert [each[2:4] for each in found] == [(f"name {n % 7}", f"category {n % 6}") for n in range(20)]
    assert len(trace.writer._names) == 3


def test_arrows_and_instants():
    """An arrow's ends are bound to the slices that they stand in; an instant needs none."""
    trace = Trace()
    trace.writer.begin(trace.lane, WALL, WALL + 10, "launch")
    trace.writer.flow(trace.lane, WALL + 3, "flow-start", 77, "ac2g", "ac2g")
    trace.writer.end(trace.lane, WALL + 10)
    trace.writer.begin(trace.lane, WALL + 20, WALL + 30, "kernel")
    trace.writer.flow(trace.lane, WALL + 20, "flow-end", 77, "ac2g", "ac2g")
    trace.writer.end(trace.lane, WALL + 30)
    trace.writer.instant(trace.lane, WALL + 40, "done", "", {"step": 3})
    (track,) = (track for track in trace.tracks().values() if track.slices)
    assert track.flows == [(WALL + 3, "s", 77, "launch"), (WALL + 20, "f", 77, "kernel")]
    assert track.instants == [(WALL + 40, "done", {"step": 3})]


def test_times_beyond_all_bounds():
    """Times before 1972 and after 2262 are moved to these; nothing breaks."""
    trace = Trace()
    trace.slice(-5, 1 << 70, "for ever")
    ((start, end, name),) = slices(trace.tracks())
    assert (start, end, name) == (1 << 56, (1 << 63) - 1, "for ever")


def test_names_that_are_not_unicode():
    """Half a pair of surrogates, as names of files have them, does not end the writing."""
    trace = Trace()
    trace.slice(WALL, WALL + 1, "a\udcff", "b\udcff", {"c": "d\udcff"})
    ((_start, _end, name, _category, data),) = (each for track in trace.tracks().values() for each in track.slices)
    assert (name, data) == ("a?", {"c": "d?"})
