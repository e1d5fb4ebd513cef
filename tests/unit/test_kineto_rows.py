"""What a timeline gets of a Kineto trace: slices, arrows, instants, and ranges written as begin and end."""

from __future__ import annotations

import json

from profwin.evidence.formats import kineto

BASE = 1_790_000_000_000_000_000


def _slices(tmp_path, events):
    content = {"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": events}
    (tmp_path / "a.json").write_text(json.dumps(content))
    return [
        (
            each.kind,
            each.name,
            each.start - BASE,
            each.end - BASE,
            each.track,
            each.flow,
        )
        for each in kineto.slices(str(tmp_path), "a.json")
    ]


def _event(phase, name, ts, pid=1, tid=1, **more):
    return {
        "ph": phase,
        "name": name,
        "ts": ts,
        "pid": pid,
        "tid": tid,
        "cat": "",
        **more,
    }


def test_arrows_go_to_the_rows_of_their_slices(tmp_path):
    """The end at a kernel is on the stream's row, though its category is not a device's."""
    found = _slices(tmp_path, [
        _event("X", "launch", 1, cat="cuda_runtime", dur=1), _event("s", "ac2g", 1, cat="ac2g", id=5),
        _event("X", "kernel", 4, 0, 7, cat="kernel", dur=1), _event("f", "ac2g", 4, 0, 7, cat="ac2g", id=5, bp="e"),
    ])  # fmt: skip
    assert found[1] == ("flow-start", "ac2g", 1000, 1000, "process 1 thread 1", "5")
    assert found[3] == ("flow-end", "ac2g", 4000, 4000, "device 0 stream 7", "5")


def test_instants_and_asynchronous_ranges(tmp_path):
    """Instants are kept; asynchronous ranges of one name are told apart by their ids and may overlap."""
    found = _slices(tmp_path, [
        _event("i", "mark", 1), _event("b", "request", 2, cat="serve", id="0x1"),
        _event("b", "request", 3, cat="serve", id="0x2"), _event("e", "request", 4, cat="serve", id="0x1"),
        _event("e", "request", 6, cat="serve", id="0x2"), _event("e", "stray", 7, cat="serve", id="0x3"),
    ])  # fmt: skip
    assert [each[:5] for each in found] == [
        ("instant", "mark", 1000, 1000, "process 1 thread 1"),
        ("slice", "request", 2000, 4000, "process 1 serve"),
        ("slice", "request", 3000, 6000, "process 1 serve"),
    ]


def test_threads_have_their_names(tmp_path):
    """A name that the trace gives a thread before its first event is that of its row."""
    name = {
        "ph": "M",
        "name": "thread_name",
        "pid": 1,
        "tid": 9,
        "args": {"name": "thread 9 (pt_autograd_0)"},
    }
    assert _slices(tmp_path, [name, _event("X", "mm", 1, tid=9, dur=1)])[0][4] == "process 1 thread 9 (pt_autograd_0)"
