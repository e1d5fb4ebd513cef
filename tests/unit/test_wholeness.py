"""Traces beside journals: each is the one that a journal names, and lies in its collection's time."""

from __future__ import annotations

import pytest

from profwin.evidence.finding import Code, Finding
from profwin.evidence.model import Clock, Recording
from profwin.evidence.run import Collection, Export, Process, Run
from profwin.evidence.wholeness import CLOCK_TOLERANCE, check_traces, unnamed

START = 1_796_000_000_000_000_000
SECOND = 1_000_000_000
PATH = "step_000002/rollout/a.json.gz"
SAID = {
    "run": "nightly", "attempt": 0, "purpose": "rollout", "step": 2, "name": "rollout", "occurrence": 1, "segment": 1,
    "collection": 7,
}  # fmt: skip


def _run(prefix: str = "nightly", path: str | None = PATH, found: int | None = 10) -> Run:
    process = Process(
        journal="j.jsonl", run="nightly", attempt=0, pid=1, start=None, host="h", boot="b", uid=0, role="actor", rank=0,
        world=None, root=True, schema=1, settings={}, clock=Clock("monotonic", "h", "b"), offset=0, begin=0, last=0,
    )  # fmt: skip
    collection = Collection(
        process=process, identifier=7, purpose="rollout", name="rollout", step=2, occurrence=1, segment=1,
        backends=("torch",), devices=("card",), open=START, close=START + SECOND,
    )  # fmt: skip
    collection.exports.append(Export("torch", path, 10, 0.1, None, START + SECOND, found))
    return Run("out/nightly", prefix, processes=[process], collections=[collection])


def _recording(path: str = f"nightly/{PATH}", early: int = 0, late: int = 0, **said: object) -> Recording:
    window = (START - early, START + SECOND + late)
    return Recording("kineto", path, Clock("wall"), window=window, metadata={"profwin": {**SAID, **said}})


def _codes(run: Run, *recordings: Recording) -> list[str]:
    return [each.code.name for each in check_traces(run, {each.path: each for each in recordings})]


@pytest.mark.parametrize("prefix", ["nightly", "", "a/b"])
def test_a_trace_as_it_was_written(prefix):
    """A trace that says what its journal says is no finding, wherever the run lies below what is checked."""
    assert _codes(_run(prefix), _recording(f"{prefix}/{PATH}".removeprefix("/"))) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step", 3), ("name", "update"), ("purpose", "training"), ("occurrence", 2), ("segment", 2), ("run", "x"),
        ("attempt", 1), ("collection", 8), ("step", None), ("step", [2]),
    ],
)  # fmt: skip
def test_a_trace_of_another_collection(field, value):
    """A trace that says something else of itself than its journal is named, with what differs."""
    (finding,) = check_traces(_run(), {f"nightly/{PATH}": _recording(**{field: value})})
    assert finding.code.name == "trace-of-another"
    assert finding.detail == f"it says {field} {value!r}, not {SAID[field]!r}"


@pytest.mark.parametrize("metadata", [{}, {"profwin": None}, {"profwin": [1]}, {"profwin": {}}, {"profwin": {"x": 1}}])
def test_a_trace_that_says_nothing_of_the_run(metadata):
    """An engine's trace need not know the run."""
    recording = _recording()
    recording.metadata = metadata
    assert _codes(_run(), recording) == []


@pytest.mark.parametrize("side", ["early", "late"])
def test_a_trace_outside_its_collection(side):
    """A trace sticks out of its collection by no more than two clocks may differ."""
    assert _codes(_run(), _recording(**{side: CLOCK_TOLERANCE})) == []
    assert _codes(_run(), _recording(**{side: CLOCK_TOLERANCE + 1})) == ["trace-outside-collection"]


def test_times_that_cannot_be_compared():
    """A collection without an end, a trace without a window, and one on another clock are not judged by time."""
    run = _run()
    run.collections[0].close = None
    assert _codes(run, _recording(late=50 * SECOND)) == []
    recording = _recording(early=50 * SECOND)
    recording.clock = Clock("unknown")
    assert _codes(_run(), recording) == []
    recording = _recording(early=50 * SECOND)
    recording.window = None
    assert _codes(_run(), recording) == []


@pytest.mark.parametrize(("found", "codes"), [(10, ["trace-unreadable"]), (-1, []), (None, [])])
def test_a_named_file_that_is_no_recording(found, codes):
    """A file that is there and is no recording is named here; one that is not there, by the run's presence."""
    assert _codes(_run(found=found)) == codes
    assert list(check_traces(_run(found=found), {}, unread={f"nightly/{PATH}"})) == []


def test_what_is_said_of_the_file_is_not_said_twice():
    """An empty or unreadable file has its own finding, and this one beside it: a journal called it complete."""
    known = Finding(Code("empty-file", "error", "M.", "R."), "0 bytes", f"nightly/{PATH}")
    assert _codes(_run(found=0)) == ["trace-unreadable"]
    recording = _recording()
    recording.findings.append(known)
    assert _codes(_run(), recording) == []


def test_a_recording_that_no_journal_names():
    """What lies in the run's directory without a name in a journal is a remark; what lies beside it, nothing."""
    run = _run()
    inside, beside = _recording("nightly/x.json"), _recording("nightly2/x.json")
    assert _codes(run, _recording(), inside, beside) == ["trace-not-in-journal"]
    assert unnamed([run], [_recording(), inside, beside]) == [inside, beside]


@pytest.mark.parametrize("path", ["./step_000002//rollout/a.json.gz", "step_000002/x/../rollout/a.json.gz"])
def test_paths_are_compared_as_paths(path):
    """However a journal writes a path, it is the same file."""
    assert _codes(_run(path=path), _recording()) == []
