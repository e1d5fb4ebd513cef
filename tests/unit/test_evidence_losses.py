"""Losses and layout: each code of what was skipped, ended early or lies where nothing is decorated, and a near twin."""

from __future__ import annotations

from typing import Any

import pytest
from journal_builder import JournalBuilder, write_trace
from presence_support import codes, found, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_is_decorated(tmp_path: Path) -> None:
    """Windows alone, and stages alone, are said of the run as a whole."""
    steps(JournalBuilder(tmp_path / "windows"), 2, 4, stages=())
    assert codes(tmp_path / "windows") == {"no-stages": 1}
    assert not codes(tmp_path / "windows", roles="act*")
    journal = JournalBuilder(tmp_path / "stages", settings={"steps": "2"})
    journal.stage(2, 1, 2)
    journal.save()
    assert codes(tmp_path / "stages") == {"no-windows": 1}


def layout(directory: Path, windows: tuple[str, ...], stages: tuple[str, ...], step: int = 2) -> JournalBuilder:
    """Write a driver's windows on some devices and a trainer's stages on others."""
    driver = JournalBuilder(directory, "driver", pid=1, settings={"steps": "2,4"})
    trainer = JournalBuilder(directory, "trainer", pid=2, settings={"steps": "2,4"})
    for each in (2, 4):
        driver.window(each, each * 10, each * 10 + 1, devices=windows)
        for place, device in enumerate(stages):
            at = each * 10 + 2 + place
            trainer.stage(each, at, at + 0.5, devices=(device,), occurrence=place + 1)
    trainer.save()
    return driver


def test_a_device_whose_siblings_have_stages(tmp_path: Path) -> None:
    """One of two devices of a window without stages is said; devices for rollout alone are not."""
    layout(tmp_path, ("a", "b"), ("a", "b")).save()
    assert not codes(tmp_path)
    layout(tmp_path, ("a", "b"), ("c", "d")).save()
    assert not codes(tmp_path)
    layout(tmp_path, ("a", "b"), ("a",)).save()
    assert codes(tmp_path) == {"window-without-stages": 1}


def test_a_stage_that_no_window_precedes(tmp_path: Path) -> None:
    """A device that lacks the window of its siblings in a step is said; devices that are never lent are not."""
    driver = layout(tmp_path, ("a",), ("a", "b", "c"))
    driver.window(2, 21, 21.5, "hybrid", devices=("b",))
    driver.save()
    (finding,) = found(tmp_path)
    assert (finding.code.name, finding.data["device"], finding.data["step"]) == ("stage-without-window", "b", 4)
    driver.window(4, 41, 41.5, "hybrid", devices=("b",))
    driver.save()
    assert not codes(tmp_path)


def test_a_window_after_the_stages_of_its_step(tmp_path: Path) -> None:
    """A window that begins after the first stage of its step does not precede it."""
    journal = JournalBuilder(tmp_path, settings={"steps": "2"})
    journal.stage(2, 1, 2)
    journal.window(2, 3, 4)
    journal.save()
    assert codes(tmp_path) == {"stage-without-window": 1}


@pytest.mark.parametrize(
    ("reason", "code", "severity"),
    [
        ("busy", "skipped-busy", "error"),
        ("peer", "skipped-peer", "warning"),
        ("unknown", "skipped-unknown", "error"),
        ("self", "skipped-thread", "error"),
        ("thread", "skipped-thread", "error"),
        ("foreign", "skipped-foreign", "error"),
        ("registry", "skipped-failed", "error"),
        ("backend", "skipped-failed", "error"),
        ("engine", "skipped-failed", "error"),
        ("paused", "skipped-paused", "remark"),
        ("ended", "skipped-paused", "remark"),
    ],
)
def test_every_skip_has_its_reason_and_holder(tmp_path: Path, reason: str, code: str, severity: str) -> None:
    """A skip is said with why and by whom, as severely as its reason is."""
    journal = JournalBuilder(tmp_path)
    steps(journal, 2, 4)
    journal.skipped("stage", "update", 4, 48, 49, reason, device="gpu-0", holder="the engine", waited=1.5, detail="so")
    journal.save()
    (finding,) = [each for each in found(tmp_path) if each.code.name != "fewer-occurrences"]
    assert (finding.code.name, finding.code.severity) == (code, severity)
    assert finding.data == {
        "reason": reason, "device": "gpu-0", "holder": "the engine", "step": 4, "stage": "update", "rank": 0,
    }  # fmt: skip
    assert "held by the engine, after a wait of 1.500 s: so" in finding.detail


def test_neither_recorded_nor_skipped(tmp_path: Path) -> None:
    """A stage without a recording and without a reason has lost a record; a span needs neither."""
    journal = JournalBuilder(tmp_path)
    journal.write("enter", 22.1, id=99, what="span", name="inner", step=2, occurrence=1)
    journal.write("exit", 22.2, id=99, status="ok")
    steps(journal, 2, 4)
    assert not codes(tmp_path)
    journal.write("enter", 48, id=98, what="stage", name="update", step=4, occurrence=2)
    journal.save()
    assert codes(tmp_path) == {"unrecorded": 1}


@pytest.mark.parametrize(
    ("reason", "closed", "expected"),
    [
        ("end", None, {}),
        ("cut", 48.5, {"cut-short": 1}),
        ("exit", 48.5, {"closed-early": 1}),
        ("shutdown", 48.5, {"closed-early": 1}),
        ("step", 48.5, {"closed-early": 1}),
        ("window", 48.5, {"closed-early": 1}),
        ("paused", 48.5, {"closed-early": 1}),
        ("step", 49.5, {}),
        ("window", 49.5, {}),
        ("asked", 49.5, {}),
    ],
)
def test_early_closes(tmp_path: Path, reason: str, closed: float | None, expected: dict[str, int]) -> None:
    """What ends before its body is said with its reason; what ends after it is whole whatever the reason is."""
    journal = JournalBuilder(tmp_path)
    steps(journal, 2, 4)
    journal.stage(4, 48, 49, occurrence=2, reason=reason, closed=closed)
    journal.save()
    assert codes(tmp_path) == expected


@pytest.mark.parametrize("reason", ["paused", "split"])
def test_what_continues_is_a_remark(tmp_path: Path, reason: str) -> None:
    """A window that is recorded on after a pause or a split lost nothing that was wanted."""
    journal = JournalBuilder(tmp_path)
    steps(journal, 2, 4)
    interval, _ = journal.window(4, 48, 60, occurrence=2, reason=reason, closed=49, status=None)
    again = {"collection": 99, "purpose": "rollout", "name": "rollout", "step": 4, "segment": 2}
    journal.write("open", 50, **again).write("join", 50, id=interval, collection=99)
    journal.write("exit", 51, id=interval, status="ok").write("close", 52, collection=99, reason="end").save()
    (finding,) = found(tmp_path)
    assert (finding.code.name, finding.code.severity) == ("continued", "remark")


def test_failures(tmp_path: Path) -> None:
    """A body that raised and a profiler that failed are told apart."""
    journal = JournalBuilder(tmp_path)
    steps(journal, 2, 4)
    journal.stage(4, 48, 49, occurrence=2, status="error", reason="failure")
    journal.save()
    assert codes(tmp_path) == {"failed-body": 1}
    journal.stage(4, 50, 51, occurrence=3, reason="failure", close={"error": "it broke"})
    journal.save()
    assert codes(tmp_path) == {"failed-body": 1, "profiler-failed": 1}


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ({"path": "a.json", "bytes": 3}, {}),
        ({"path": "a.json", "bytes": 4}, {"trace-size": 1}),
        ({"path": "b.json", "bytes": 4}, {"trace-missing": 1}),
        ({"path": "../c.json", "bytes": 4}, {"trace-elsewhere": 1}),
        ({"error": "No space left on device"}, {"export-failed": 1}),
        (None, {"not-exported": 1}),
    ],
)
def test_exports(tmp_path: Path, export: dict[str, Any] | None, expected: dict[str, int]) -> None:
    """A trace is there with its size, or it is said what is wrong."""
    journal = JournalBuilder(tmp_path)
    write_trace(tmp_path, "a.json", 3)
    _, collection = journal.stage(4, 45, 46, "score", backends=("torch", "nvtx"))
    if export is not None:
        journal.write("export", 46.5, collection=collection, backend="torch", seconds=0.1, **export)
    steps(journal, 2, 4, stages=("update",))
    assert {name: count for name, count in codes(tmp_path).items() if name != "uneven-stage"} == expected


def test_what_was_never_closed_is_no_missing_export(tmp_path: Path) -> None:
    """A recording whose process died, or whose profiler failed, is said elsewhere."""
    journal = JournalBuilder(tmp_path)
    steps(journal, 2, 4)
    journal.stage(4, 48, 49, backends=("torch",), occurrence=2, close={"error": "it broke"})
    journal.stage(4, 50, 51, backends=("torch",), occurrence=3, reason=None)
    journal.save()
    assert codes(tmp_path) == {"profiler-failed": 1}


def test_notes_and_lost_records_are_passed_on(tmp_path: Path) -> None:
    """What a process noted, and how many records it could not write, is said once."""
    journal = JournalBuilder(tmp_path)
    journal.write("finding", 1, code="no-board", detail="read-only")
    journal.write("finding", 1, code="no-stages", detail="said under a code of its own")
    steps(journal, 2, 4)
    assert codes(tmp_path) == {"noted": 1}
    journal.lines.pop()
    journal.write("end", 99, reason="exit", dropped=3).save()
    assert codes(tmp_path) == {"noted": 1, "dropped-records": 1}


def test_findings_about_plans_have_codes_of_their_own(tmp_path: Path) -> None:
    """What a process wrote about its plan is said under the same code, with its own words."""
    journal = JournalBuilder(tmp_path)
    for code in ("plan-target", "plan-path", "plan-note"):
        journal.write("finding", 1, code=code, detail=f"words of {code}")
    steps(journal, 2, 4)
    journal.save()
    assert codes(tmp_path) == {"plan-target": 1, "plan-path": 1, "plan-note": 1}
    severities = {each.code.name: each.code.severity for each in found(tmp_path)}
    assert severities == {"plan-target": "error", "plan-path": "error", "plan-note": "remark"}
