"""The demo as a user runs it: real processes, real profilers, one pretend device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from demo_support import Demo, failed, rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

STAGES = ["old_log_prob", "ref_log_prob", "advantages", "actor_update"]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """The command in an empty directory."""
    return Demo(tmp_path)


def skipped(report: dict[str, Any], step: int, reason: str) -> list[str]:
    """Return the stages of a step that ran unrecorded for that reason."""
    found = [row["what"].split()[1] for row in rows(report, step) if row["what"].startswith("skipped")]
    assert all(row["reason"] == reason for row in rows(report, step) if row["what"].startswith("skipped"))
    return found


def test_the_default_run_learns_and_is_verified(demo: Demo) -> None:
    """The sync loop's reward rises visibly, and both profiled steps are whole, apart and named on disk."""
    report = demo.report()
    assert report["passed"], failed(report)
    rewards = [step["reward"] for step in report["steps"]]
    assert rewards[0] < 0.15
    assert rewards[-1] > 0.4
    for step in (2, 4):
        assert [row["what"] for row in rows(report, step)] == [
            "window rollout",
            "handover",
            *[f"stage {stage}" for stage in STAGES],
        ]
        # The batch arrives while the window is open: what keeps the first stage back is the device lock.
        first = next(row for row in rows(report, step) if row["what"] == "stage old_log_prob")
        assert first["waited"] > 0
        handover = next(row for row in rows(report, step) if row["what"] == "handover")
        assert 0 <= handover["seconds"] < 1
    assert len(report["traces"]) == 10
    assert all((demo.directory / report["directory"] / path).is_file() for path in report["traces"])
    assert report["notes"] == []
    assert demo.survivors() == []


def test_the_text_shows_table_traces_and_checks(demo: Demo) -> None:
    """Without --json: progress on stderr, the rest on stdout, and a second run leaves the first alone."""
    code, output, errors = demo.run("--steps", "2", "--profile", "2", "--seed", "7")
    assert code == 0
    assert [line.split("  ")[0] for line in errors.splitlines()] == ["step 1/2", "step 2/2"]
    for text in ("handover", "stage actor_update", "step_000002/train/actor_update/", "ok      traces: no rollout"):
        assert text in output
    demo.run("--steps", "1", "--profile", "1")
    assert len(list((demo.directory / "out").iterdir())) == 2


def test_without_the_lock_the_verification_fails(tmp_path: Path) -> None:
    """Negative control: where everyone has the lock at once, the journals and the traces both show the overlap."""
    report = Demo(tmp_path, without_lock=True).report("--steps", "2", "--profile", "2", code=1)
    assert not report["passed"]
    assert failed(report)[:2] == [
        "journals: no rollout collection overlaps a training collection of its device",
        "traces: no rollout trace overlaps a training trace of its device",
    ]


def test_a_stage_inside_the_window_is_skipped_by_name(demo: Demo) -> None:
    """Where the driver waits for its trainer inside the window, stages run unrecorded and name it; one wait a step."""
    report = demo.report("--misuse", "stage-in-window", "--steps", "3", "--profile", "2,3")
    assert report["passed"], failed(report)
    for step in (2, 3):
        assert skipped(report, step, "busy") == STAGES
        waits = [row["waited"] for row in rows(report, step) if row["what"].startswith("skipped")]
        assert waits[0] > 1.0
        assert max(waits[1:]) < 0.5
        assert all("rollout window 'rollout'" in row["why"] for row in rows(report, step) if "why" in row)


def test_a_window_that_is_never_closed_ends_with_its_step(demo: Demo) -> None:
    """A window without a stop is closed by the next step, and holds no generation but its own."""
    report = demo.report("--misuse", "no-stop", "--steps", "4", "--profile", "2,4")
    assert report["passed"], failed(report)
    closed = [row["closed"] for step in (2, 4) for row in rows(report, step) if row["what"] == "window rollout"]
    assert closed[0] == "stale"
    assert "end" not in closed
    assert skipped(report, 2, "busy") == STAGES


def test_a_second_profiler_is_left_alone(demo: Demo) -> None:
    """A profiler that training code runs itself keeps its data; the stage says why it was not recorded here."""
    report = demo.report("--misuse", "second-profiler", "--steps", "2", "--profile", "2")
    assert report["passed"], failed(report)
    assert skipped(report, 2, "foreign") == ["ref_log_prob"]
    assert report["checks"][-1]["what"] == "the training code's own profiler kept all its data"


def test_a_killed_engine_frees_the_device(demo: Demo) -> None:
    """An engine that is killed while it records costs its own trace, as the journal says; all stages are recorded."""
    report = demo.report("--misuse", "kill-engine")
    assert report["passed"], failed(report)
    for step in (2, 4):
        assert [row["what"] for row in rows(report, step)][-4:] == [f"stage {stage}" for stage in STAGES]
    assert sum("/rollout/" in path for path in report["traces"]) == 1
    assert any("engine-died" in note for note in report["notes"])
    assert demo.survivors() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--steps", "0"),
        ("--profile", "x"),
        ("--profile", "20", "--steps", "3"),
        ("--profile", "none", "--misuse", "no-stop"),
        ("--misuse", "no-stop", "--loop", "colocate"),
        ("--misuse", "no-stop", "--loop", "all"),
        ("--loop", "no_such_loop"),
    ],
)
def test_wrong_usage(demo: Demo, arguments: tuple[str, ...]) -> None:
    """Wrong usage gives the exit code 2 and a sentence, and starts nothing."""
    code, output, errors = demo.run(*arguments)
    assert code == 2
    assert output == ""
    assert "profwin demo: error: " in errors
    assert not (demo.directory / "out").exists()


def test_without_profiling_nothing_is_written(demo: Demo) -> None:
    """``--profile none`` runs the same loop with profwin off: same rewards, no files."""
    off = demo.report("--steps", "3", "--profile", "none")
    assert off["passed"]
    assert not (demo.directory / "out").exists()
    on = demo.report("--steps", "3", "--profile", "2")
    assert [step["reward"] for step in on["steps"]] == [step["reward"] for step in off["steps"]]
