"""What is drawn of an `*_ascend_pt` folder's timeline: slices, arrows and counters, each on its row."""

from __future__ import annotations

import json

import pytest
from ascend_support import HARDWARE, HOST, START, group, microseconds, row
from perfetto_decoder import read as read_back

from profwin.evidence.formats import ascend_processes, text
from profwin.evidence.formats.ascend_processes import Processes
from profwin.evidence.formats.ascend_rows import timeline_slices
from profwin.evidence.formats.damage import Damage
from profwin.evidence.timeline import draw_timeline

QOS = 3_089_232_576
NAMES = [*group(HOST, "Python", "CPU"), *group(HARDWARE, "Ascend Hardware", "NPU 4"), *group(QOS, "QoS", "NPU 4")]


@pytest.fixture
def drawn(tmp_path):
    """Return a function that writes events and returns what is drawn of them."""

    def write(events, layout=None):
        path = tmp_path / "trace_view.json"
        path.write_text(events if isinstance(events, str) else json.dumps(events, indent=layout))
        return list(timeline_slices(str(path), Damage("")))

    return write


def point(phase, pid, time, category, number, name="arrow"):
    """Return an end of an arrow."""
    return {"ph": phase, "bp": "e", "name": name, "id": number, "pid": pid, "tid": 1, "ts": microseconds(time)} | (
        {"cat": category} if category else {}
    )


def counter(name, arguments, time=START, pid=QOS):
    """Return a value of a counter."""
    return {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": microseconds(time), "args": arguments}


ARROW = [
    row("Enqueue", HOST, START, cat="enqueue"),
    row("MatMul", HARDWARE, START + 9000),
    point("s", HOST, START, "async_npu", 1_736_405_443_876_953_510),
    point("f", HARDWARE, START + 9000, "async_npu", 1_736_405_443_876_953_510),
    point("s", HOST, START, "HostToDevice", "263", "HostToDevice263"),
    point("f", HARDWARE, START + 9000, "HostToDevice", "263", "HostToDevice263"),
]


def test_arrows_stand_on_the_rows_of_their_slices(drawn):
    """Each end has its time, the number that the other end has, and its name, which does not hold that number."""
    found = [each for each in drawn([*ARROW, *NAMES]) if each.kind != "slice"]
    host, device = f"Python {HOST}:1", f"Ascend Hardware NPU 4 {HARDWARE}:1"
    assert [(each.kind, each.start - START, each.track, each.on_device, each.category) for each in found] == [
        ("flow-start", 0, host, False, "async_npu"),
        ("flow-end", 9000, device, True, "async_npu"),
        ("flow-start", 0, host, False, "HostToDevice"),
        ("flow-end", 9000, device, True, "HostToDevice"),
    ]
    assert [each.flow for each in found] == ["1736405443876953510"] * 2 + ["263"] * 2
    assert [each.name for each in found] == ["arrow"] * 2 + ["HostToDevice"] * 2


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("APP/HBM", {"KB": 2160232.5}, [("QoS NPU 4 3089232576 APP/HBM KB", 2160232.5)]),
        ("QoS OTHERS", {"value": 1870}, [("QoS NPU 4 3089232576 QoS OTHERS", 1870)]),
        ("L2", {"L2": 3}, [("QoS NPU 4 3089232576 L2", 3)]),
        ("read_ost", {"value": 5, "acc_id": 7}, [("QoS NPU 4 3089232576 read_ost 7", 5)]),
        ("acc", {"acc_id": 7}, [("QoS NPU 4 3089232576 acc acc_id", 7)]),
        (
            "two", {"a": -1, "b": 2.5, "text": "3", "truth": True, "none": None, "list": [1]},
            [("QoS NPU 4 3089232576 two a", -1), ("QoS NPU 4 3089232576 two b", 2.5)],
        ),
        ("huge", {"value": 10**400}, []),
        ("empty", {}, []),
        ("none", None, []),
        ("list", [1], []),
    ],
)  # fmt: skip
def test_counters(drawn, name, arguments, expected):
    """A counter is named after its process, itself, the accelerator and what is measured; what is no number is none."""
    found = drawn([counter(name, arguments, START + 3), *NAMES])
    assert [(each.track, each.value) for each in found] == expected
    assert all((each.kind, each.start, each.end) == ("counter", START + 3, START + 3) for each in found)


def test_counters_and_arrows_in_the_file(tmp_path):
    """All that was read is in the file, each thing once: values on counters, arrows at their slices."""
    folder = tmp_path / "in/x_ascend_pt/ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    values = [counter("APP/HBM", {"KB": number}, START + number) for number in range(5)]
    (folder / "trace_view.json").write_text(json.dumps([*ARROW, *values, *NAMES]))
    timeline = draw_timeline(str(tmp_path / "in"), str(tmp_path / "out.pftrace"))
    assert (timeline.read, timeline.written) == (11, 11)
    tracks = read_back(tmp_path / "out.pftrace")
    (memory,) = (track for track in tracks.values() if track.counter)
    assert memory.values == [(START + number, float(number)) for number in range(5)]
    flows = sorted((phase, name) for track in tracks.values() for _at, phase, _number, name in track.flows)
    assert flows == [("f", "MatMul"), ("f", "MatMul"), ("s", "Enqueue"), ("s", "Enqueue")]
    assert len({number for track in tracks.values() for _at, _phase, number, _name in track.flows}) == 2


@pytest.mark.parametrize(
    "time", ["1780000000000000.5", 1780000000000000.5, "1780000000000000.5004", "1.7800000000000005e15"]
)
def test_times_that_are_written_otherwise(drawn, time):
    """Times without quotes, with more or fewer digits and with an exponent are the same times."""
    events = [{**row("a", HOST, START), "ts": time}, counter("c", {"value": 1}, START + 500)]
    assert [each.start - START for each in drawn(events)] == [500, 500]


@pytest.mark.parametrize(
    "change", [{"ts": "soon"}, {"ts": None}, {"ts": -5}, {"dur": -1}, {"dur": "x"}, {"ts": "9" * 30}]
)
def test_no_time(drawn, change):
    """An event without a time is left out, and those beside it are not."""
    assert [each.name for each in drawn([row("a", HOST, START), {**row("b", HOST, START), **change}])] == ["a"]


def test_odd_events(drawn):
    """Fields of other types than expected cost the event at most, and no other."""
    events = [{**row("a", HOST, START), "cat": 5}, {**counter("c", {"value": 1}), "cat": 5}, row("b", HOST, START)]
    assert [each.name for each in drawn([*events, counter("d", {"value": 1}), *NAMES])] == ["a", "b", "d"]


@pytest.mark.parametrize("piece", [50, 3000, 1 << 18])
@pytest.mark.parametrize("layout", [None, 4])
def test_names_are_found_wherever_they_stand(tmp_path, monkeypatch, piece, layout):
    """Last in the file, with the arguments first, over several lines, and split between two pieces of it."""
    monkeypatch.setattr(text, "PIECE", piece)
    names = [
        {"args": {"name": "Python", "x": "}{"}, "name": "process_name", "ph": "M", "pid": 1},
        *group(2, "NPU", "NPU 7"),
    ]
    texts = ('say "process_name"', "process_name")
    quoted = [{"ph": "X", "name": each, "pid": 3, "args": {"name": "wrong"}} for each in texts]
    events = [
        *[row(f"event {number}", 1, START) for number in range(100)],
        *names,
        *quoted * 50,
        *group(5, "last", "CPU"),
    ]
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(events, indent=layout))
    found = {pid: (process.name, process.label) for pid, process in Processes.search(str(path)).items()}
    assert found == {b"1": ("Python", ""), b"2": ("NPU", "NPU 7"), b"5": ("last", "CPU")}


@pytest.mark.parametrize(
    "content", ["", '"process_name"' * 500, '{"process_name"', '[{"ph": "M", "name": "process_name"', "{" * 9999]
)
def test_no_names(tmp_path, content):
    """Text that only looks like it gives none, and no error."""
    path = tmp_path / "trace_view.json"
    path.write_text(content)
    assert Processes.search(str(path)) == {}


def test_names_without_end(tmp_path, monkeypatch):
    """After very many the search is given up."""
    monkeypatch.setattr(ascend_processes, "_TRIES", 10)
    monkeypatch.setattr(text, "PIECE", 5000)
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps([each for number in range(1000) for each in group(number, "Python", "CPU")]))
    assert 5 <= len(Processes.search(str(path))) < 500
