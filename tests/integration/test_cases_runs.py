"""Reported failures that are about runs and their timelines: what `profwin check` says, and that a near twin is clean.

The numbers are those under which the failures were collected, as in other tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from check_support import codes, report
from core_support import PRELUDE
from journal_builder import BOOT, SECOND, WALL, JournalBuilder
from kineto_support import BASE, kernel, operator, pairs, trace
from perfetto_decoder import slices
from timeline_support import draw, event, named, paths, write_trace

import profwin
from profwin import rollout_window, training_stage

RUN = """
import torch
from torch.profiler import profile

{before}
profwin.configure(steps="1", backend="torch", output=sys.argv[1], run="r", devices="pretend:card", role="a", rank=0)
with rollout_window(1) as window:
    torch.ones(3).sin()
    recorded = window.recorded
with training_stage("update"):
    torch.ones(3).cos()
say("recorded" if recorded else "unrecorded")
{after}
"""


def run(directory: Path, before: str = "", after: str = "") -> tuple[int, str]:
    """Run a window and a stage with torch in a process of their own; return its status and what it said."""
    pytest.importorskip("torch")
    script = f"{PRELUDE}\nsys.argv.append({str(directory)!r})\n" + RUN.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    return done.returncode, done.stdout.split()[0]


@pytest.mark.slow
def test_case_5_another_profiler_has_the_device(tmp_path):
    """Case 5: where torch's profiler cannot start, training goes on, the lock is free again, and check says so."""
    busy = 'def start(self):\n    raise RuntimeError("CUPTI error 39: multiple subscribers")\nprofile.start = start'
    assert run(tmp_path / "bad", before=busy) == (0, "unrecorded")
    found = report(tmp_path / "bad")["findings"]
    failed = [each for each in found if each["code"] == "skipped-failed"]
    assert len(failed) == 2
    assert all("multiple subscribers" in each["detail"] for each in failed)
    assert run(tmp_path / "good") == (0, "recorded")
    assert codes(tmp_path / "good") == set()


@pytest.mark.slow
def test_case_8_the_end_of_a_process_and_its_traces(tmp_path):
    """Case 8: a process that ends right after its window waits for the trace; one killed in its export is named."""
    assert run(tmp_path / "exit", after="sys.exit(0)") == (0, "recorded")
    assert codes(tmp_path / "exit") == set()
    killed = """
import profwin.backends.torch as backend
def export(self):
    say("exporting")
    os.kill(os.getpid(), signal.SIGKILL)
backend.TorchRecording.export = export
"""
    status, _said = run(tmp_path / "killed", before=killed)
    assert status == -9
    assert "not-exported" in codes(tmp_path / "killed")


def test_case_8_a_trace_that_was_cut_after_it_was_written(tmp_path):
    """Case 8: a trace that the journal calls complete, and that is gone or short, is an error."""
    text = trace([operator()])
    for name, content, code in (("gone", None, "trace-missing"), ("short", text[:300], "trace-size")):
        journal = JournalBuilder(tmp_path / name)
        journal.window(2, 1, 2, trace=("a.json", len(text)))
        journal.stage(2, 3, 4)
        journal.step(3, 5, selected=False)
        journal.step(4, 6)
        journal.end().save()
        if content is not None:
            (tmp_path / name / "a.json").write_text(content)
        assert code in codes(tmp_path / name, mildest="error")


@pytest.mark.parametrize("decorated", [True, False])
def test_case_11_nothing_is_decorated(tmp_path, decorated):
    """Case 11: windows without one stage are a warning that names both counts; with stages the run is clean."""
    profwin.configure(steps="1-2", backend="record", output=str(tmp_path), run="r", devices="pretend:card")

    def update() -> None:
        """Train."""

    for step in (1, 2):
        with rollout_window(step):
            pass
        (training_stage(update) if decorated else update)()
    profwin.shutdown()
    found = [each for each in report(tmp_path)["findings"] if each["severity"] != "remark"]
    assert [each["code"] for each in found] == ([] if decorated else ["no-stages"])
    assert decorated or "2 windows on 1 devices, 0 stages" in found[0]["detail"]


def test_case_46_bases_are_reckoned_in(tmp_path):
    """Case 46: equal times on bases a second apart are drawn a second apart, and absolute times of old files fit in."""
    folder = tmp_path / "traces"
    write_trace(folder, "a.pt.trace.json.gz", [event("first", 10, 1)], base=WALL)
    write_trace(folder, "b.pt.trace.json.gz", [event("second", 10, 1)], base=WALL + SECOND)
    write_trace(folder, "c.pt.trace.json.gz", [event("third", (WALL + 2 * SECOND) // 1000 + 10, 1)], base=None)
    _timeline, tracks = draw(folder)
    found = {name: start for start, _end, name in slices(tracks)}
    assert found["second"] - found["first"] == SECOND
    assert found["third"] - found["second"] == SECOND


def test_case_46_what_has_no_base_stands_apart(tmp_path):
    """Case 46: times of which nothing says what they count from are drawn after the rest, marked, and noted."""
    folder = tmp_path / "traces"
    write_trace(folder, "a.pt.trace.json.gz", [event("first", 10, 1)])
    write_trace(folder, "b.pt.trace.json.gz", [event("apart", 10, 1)], base=None)
    timeline, tracks = draw(folder)
    found = {name: start for start, _end, name in slices(tracks)}
    assert found["apart"] > found["first"] + SECOND // 2
    assert any("b.pt.trace.json.gz" in note and "clock" in note for note in timeline.notes)
    assert "no-clock" in codes(folder)


@pytest.mark.parametrize(("boot", "expected"), [("another-boot", set()), (BOOT, {"overlap"})])
def test_case_46_no_verdict_across_hosts(tmp_path, boot, expected):
    """Case 46: times on clocks of two hosts give no overlap; the same times on one host's do."""
    driver = JournalBuilder(tmp_path, "driver", pid=1)
    driver.window(2, 1, 2.2)
    trainer = JournalBuilder(tmp_path, "trainer", pid=2, boot=boot, host=boot)
    trainer.stage(2, 2, 3)
    for journal in (driver, trainer):
        journal.end().save()
    assert codes(tmp_path) & {"overlap", "shared-device"} == expected


@pytest.mark.parametrize("training", [BASE, BASE + 10 * SECOND])
def test_case_46_traces_that_cannot_be_compared(tmp_path, training):
    """Case 46: without a host and a device's identity nothing is claimed, but that it cannot be told, and why."""
    for name, base in (("rollout", BASE), ("train_update", training)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text(trace(pairs(1, 2), baseTimeNanoseconds=base))
    found = [each for each in report(tmp_path)["findings"] if each["code"] in ("cannot-tell", "overlap")]
    assert {each["code"] for each in found} <= {"cannot-tell"}
    assert all("identity of the device" in each["detail"] or "hosts" in each["detail"] for each in found)


def test_case_48_equal_numbers_do_not_meet(tmp_path):
    """Case 48: ranks with one pid, thread and flow number, and pids that are texts, stay apart; none is lost."""
    folder = tmp_path / "traces"

    def events(pid: Any) -> list[dict[str, Any]]:
        ends = [("s", 10), ("f", 30)]
        flows = [{"ph": ph, "id": 7, "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": 1, "ts": at} for ph, at in ends]
        return [
            {**event("call", 10, 5), "pid": pid}, {**event("work", 30, 5), "pid": pid}, *flows,
            {**kernel(1), "pid": 0},
        ]  # fmt: skip

    for number, pid in enumerate([0, 0, 10001, "Spans"]):
        write_trace(folder, f"rank{number}.pt.trace.json.gz", events(pid))
    timeline, tracks = draw(folder)
    assert len({path[0] for path in paths(tracks)}) == 4
    assert timeline.read == timeline.written == 20
    kernels = [track.path for track in tracks.values() if any(each[2] == "kernel_1" for each in track.slices)]
    assert len(set(kernels)) == 4
    flows = [{flow for _at, _kind, flow, _name in track.flows} for track in tracks.values() if track.flows]
    assert len(flows) == len(set(map(frozenset, flows))) == 4


def test_case_49_overlaps_and_lone_ends(tmp_path):
    """Case 49: a lone begin, a lone end and a negative length are said; slices that overlap get rows of their own."""
    slices_ = [event("A", 3, 3.776), event("B", 5, 2)]
    lone = [
        {"ph": "B", "name": "rollout", "pid": 7, "tid": 1, "ts": 10},
        {"ph": "E", "pid": 7, "tid": 2, "ts": 9},
        event("n", 1, -1),
    ]
    folder = tmp_path / "bad"
    write_trace(folder, "a.pt.trace.json.gz", [*slices_, *lone])
    found = report(folder)["findings"]
    assert {"unfinished-slice", "bad-duration"} <= {each["code"] for each in found}
    (unfinished,) = [each["detail"] for each in found if each["code"] == "unfinished-slice"]
    assert "1" in unfinished
    good = tmp_path / "good"
    ends = [{"ph": "B", "name": "rollout", "pid": 7, "tid": 1, "ts": 10}, {"ph": "E", "pid": 7, "tid": 1, "ts": 12}]
    write_trace(good, "a.pt.trace.json.gz", [*slices_, *ends, event("n", 1, 1)])
    assert codes(good) & {"unfinished-slice", "bad-duration"} == set()
    _timeline, tracks = draw(good)
    rows = {each[2]: track.path for track in tracks.values() for each in track.slices}
    assert rows["A"] != rows["B"]
    assert {"A", "B", "n", "rollout"} <= rows.keys()


def test_case_49_a_window_that_only_began(tmp_path):
    """Case 49: a process that died inside a window leaves it begun, which is said; one that ended it is clean."""
    died = JournalBuilder(tmp_path / "died")
    died.window(2, 1, 2, reason=None, status=None)
    died.save()
    assert "died-recording" in codes(tmp_path / "died")
    _timeline, tracks = draw(tmp_path / "died")
    assert [each[2] for each in named(tracks, "actor (rank 0, pid 100)", "windows").slices] == ["rollout (never ended)"]
    whole = JournalBuilder(tmp_path / "whole")
    whole.window(2, 1, 2)
    whole.end().save()
    assert "died-recording" not in codes(tmp_path / "whole")
