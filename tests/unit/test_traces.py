"""Events of traces that readers hand over: whatever they say, each is drawn once, and no two files are mixed up."""

from __future__ import annotations

import pytest
from perfetto_decoder import decode

from profwin.evidence import traces
from profwin.evidence.model import Slice
from profwin.evidence.perfetto import ProtobufWriter
from profwin.evidence.traces import Drawing, Group

WALL = 1_790_000_000_000_000_000


def _drawn(tmp_path, *files, shift=0, same_group=False):
    """Draw files, each a list of events; return the numbers of events read, and the tracks."""
    parts: list[bytes] = []
    writer = ProtobufWriter(parts.append, WALL)
    groups = [Group(writer.group(f"file {number}", process=True), {}) for number in range(len(files))]
    counts = []
    for number, events in enumerate(files):
        drawing = Drawing(str(tmp_path), number + 1)
        drawing.take(events)
        drawing.draw(writer, groups[0 if same_group else number], shift)
        drawing.close()
        counts.append(drawing.read)
    writer.close()
    assert writer.events == sum(counts)
    return counts, decode(b"".join(parts))


def _arrow(flow, start=0):
    return [
        Slice("kernel", WALL + start + 50, WALL + start + 60, "stream", True, "kernel"),
        Slice("ac2g", WALL + start + 50, WALL + start + 50, "stream", True, "ac2g", "flow-end", flow),
        Slice("launch", WALL + start, WALL + start + 10, "thread", False, "cuda_runtime"),
        Slice("ac2g", WALL + start, WALL + start, "thread", False, "ac2g", "flow-start", flow),
    ]


@pytest.mark.parametrize("flow", [7, "7", "0x7f", 1 << 70, -3])
def test_arrows_of_files_are_not_mixed_up(tmp_path, flow):
    """An arrow has one number at both ends, and another one in each file, though the files have the same."""
    _counts, tracks = _drawn(tmp_path, _arrow(flow), _arrow(flow))
    flows = [each for track in tracks.values() for each in track.flows]
    assert [(phase, name) for _at, phase, _number, name in flows] == [("f", "kernel"), ("s", "launch")] * 2
    numbers = [number for _at, _phase, number, _name in flows]
    assert numbers[0] == numbers[1]
    assert numbers[2] == numbers[3]
    assert numbers[0] != numbers[2]


def test_an_arrow_without_a_slice(tmp_path):
    """It becomes an instant: nothing is lost, and no viewer complains."""
    _counts, tracks = _drawn(tmp_path, [_arrow(7)[1]])
    (track,) = (track for track in tracks.values() if track.instants)
    assert track.instants[0][:2] == (WALL + 50, "ac2g")


def test_instants(tmp_path):
    """An event without a length is an instant on its track."""
    _counts, tracks = _drawn(tmp_path, [Slice("mark", WALL + 5, WALL + 5, "thread", False, "", "instant")])
    (track,) = (track for track in tracks.values() if track.instants)
    assert (track.path, track.instants[0][:2]) == (("file 0", "thread"), (WALL + 5, "mark"))


def _value(value, start=0, track="memory", name="bytes"):
    return Slice(name, WALL + start, WALL + start, track, True, "", "counter", value=value)


def test_counters(tmp_path):
    """A counter has its values in the order of their times, whole or not, and files of one process share it."""
    first, second = [_value(2.5, 10), _value(-3, 5), _value(7, 5, "other")], [_value(1 << 40, 20), _value(0, 30)]
    counts, tracks = _drawn(tmp_path, first, second, same_group=True)
    assert counts == [3, 2]
    found = {track.name: track.values for track in tracks.values() if track.counter}
    assert found == {
        "memory": [(WALL + 5, -3.0), (WALL + 10, 2.5), (WALL + 20, float(1 << 40)), (WALL + 30, 0.0)],
        "other": [(WALL + 5, 7.0)],
    }


def test_a_counter_and_a_thread_of_one_name(tmp_path):
    """They are two rows."""
    events = [_value(1, 0, "same"), Slice("a", WALL, WALL + 9, "thread", False), _value(2, 5, "same")]
    _counts, tracks = _drawn(tmp_path, events)
    assert sorted((track.name, track.counter) for track in tracks.values() if track.parent) == [
        ("same", True), ("thread", False)
    ]  # fmt: skip


def test_more_counters_than_rows(tmp_path, monkeypatch):
    """Those that get no row of their own are not taken for one: each value is there, as an instant with a number."""
    monkeypatch.setattr(traces, "_MOST_TRACKS", 2)
    _counts, tracks = _drawn(tmp_path, [_value(number, number, f"counter {number}") for number in range(5)])
    assert [track.values for track in tracks.values() if track.counter] == [[(WALL, 0.0)], [(WALL + 1, 1.0)]]
    (further,) = (track for track in tracks.values() if track.instants)
    assert [(at - WALL, float(data["value"])) for at, _name, data in further.instants] == [(2, 2), (3, 3), (4, 4)]


def test_any_order(tmp_path):
    """What is inside may come before what holds it, and the last before the first."""
    events = [
        Slice("inside", WALL + 2, WALL + 3, "t", False),
        Slice("later", WALL + 20, WALL + 30, "t", False),
        Slice("outside", WALL, WALL + 10, "t", False),
        Slice("next", WALL + 10, WALL + 20, "t", False),
    ]
    _counts, tracks = _drawn(tmp_path, events)
    (track,) = (track for track in tracks.values() if track.slices)
    assert sorted(each[:3] for each in track.slices) == [
        (WALL, WALL + 10, "outside"), (WALL + 2, WALL + 3, "inside"), (WALL + 10, WALL + 20, "next"),
        (WALL + 20, WALL + 30, "later"),
    ]  # fmt: skip


def test_absurd_times(tmp_path):
    """Times that no clock has, and ends before beginnings, are drawn as near as can be."""
    events = [
        Slice("huge", WALL, 1 << 200, "a", False),
        Slice("tiny", -(1 << 200), WALL, "b", False),
        Slice("back", WALL + 10, WALL + 5, "c", False),
    ]
    counts, tracks = _drawn(tmp_path, events)
    assert counts == [3]
    found = {each[2]: each[:2] for track in tracks.values() for each in track.slices}
    assert found["huge"][0] == WALL
    assert found["tiny"][1] == WALL
    assert found["back"] == (WALL + 10, WALL + 10)


def test_odd_names(tmp_path):
    """Empty, long and broken names of events and tracks are kept, or shortened where they would fill memory."""
    names = ["", "x" * 100_000, "a\udcff", "\0", "same"]
    events = [
        Slice(name, WALL + number, WALL + number + 1, "t" * 1000 + str(number), False)
        for number, name in enumerate(names)
    ]
    _counts, tracks = _drawn(tmp_path, events)
    found = [each[2] for track in tracks.values() for each in track.slices]
    assert found == ["", "x" * 100_000, "a?", "\0", "same"]
    assert len({track.path for track in tracks.values()}) == 1 + 5
    assert max(len(track.name) for track in tracks.values()) < 400


def test_names_beyond_memory(tmp_path, monkeypatch):
    """Names that are many or long together go through a file, which leaves nothing."""
    monkeypatch.setattr(traces, "_MOST_NAME_BYTES", 1000)
    names = [f"name {number} é\udcff" for number in range(500)]
    events = [Slice(name, WALL + number, WALL + number + 1, "t", False) for number, name in enumerate(names)]
    _counts, tracks = _drawn(tmp_path, events)
    assert [each[2] for track in tracks.values() for each in track.slices] == [
        name.replace("\udcff", "?") for name in names
    ]
    assert list(tmp_path.iterdir()) == []


def test_shift(tmp_path):
    """All times are moved by the same."""
    value = Slice("c", 6, 6, "c", True, "", "counter", value=1)
    _counts, tracks = _drawn(tmp_path, [Slice("a", 5, 7, "t", False), value], shift=WALL)
    assert [track.values for track in tracks.values() if track.counter] == [[(WALL + 6, 1.0)]]
    ((start, end, *_),) = (each for track in tracks.values() for each in track.slices)
    assert (start, end) == (WALL + 5, WALL + 7)
