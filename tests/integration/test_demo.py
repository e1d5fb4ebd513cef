"""The demo as a user runs it: real processes, real profilers, a pretend device; and what check says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from check_support import codes, run_check
from check_support import report as checked
from demo_support import Demo, failed, rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STAGES = ["old_log_prob", "ref_log_prob", "advantages", "actor_update"]


MISUSES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "stage-in-window": (("--steps", "3", "--profile", "2,3"), {"handover-order", "skipped-busy"}),
    "no-stop": (("--steps", "4", "--profile", "2,4"), {"stale-window", "skipped-busy"}),
    "second-profiler": (("--steps", "2", "--profile", "2"), {"skipped-foreign"}),
    "kill-engine": ((), {"engine-died", "export-failed"}),
}
"""How each is run, and what ``profwin check`` must find in it."""


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """The command in an empty directory."""
    return Demo(tmp_path)


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> tuple[Demo, dict[str, Any]]:
    """The default run: the command in its directory, and its report."""
    demo = Demo(tmp_path_factory.mktemp("default"))
    report = demo.report()
    assert demo.survivors() == []
    return demo, report


class Misuses:
    """The demo with each misuse, run when it is first asked for: its report, and where its files are."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._done: dict[str, tuple[dict[str, Any], Path]] = {}

    def __call__(self, name: str) -> tuple[dict[str, Any], Path]:
        """Return one that is over, and passed its own verification."""
        if name not in self._done:
            demo = Demo(self._factory.mktemp(name))
            found = demo.report("--misuse", name, *MISUSES[name][0])
            assert demo.survivors() == []
            self._done[name] = found, demo.directory / "out"
        found, output = self._done[name]
        assert found["passed"], failed(found)
        return found, output


@pytest.fixture(scope="module")
def misuses(tmp_path_factory: pytest.TempPathFactory) -> Misuses:
    """Return the runs."""
    return Misuses(tmp_path_factory)


def skipped(report: dict[str, Any], step: int, reason: str) -> list[str]:
    """Return the stages of a step that ran unrecorded for that reason."""
    found = [row["what"].split()[1] for row in rows(report, step) if row["what"].startswith("skipped")]
    assert all(row["reason"] == reason for row in rows(report, step) if row["what"].startswith("skipped"))
    return found


def test_the_default_run_learns_and_is_verified(default: tuple[Demo, dict[str, Any]]) -> None:
    """The sync loop's reward rises visibly, and both profiled steps are whole, apart and named on disk."""
    demo, report = default
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
        assert handover["seconds"] >= 0
    assert len(report["traces"]) == 10
    assert all((demo.directory / report["directory"] / path).is_file() for path in report["traces"])
    assert report["notes"] == []


def test_the_text_shows_table_traces_and_checks(default: tuple[Demo, dict[str, Any]]) -> None:
    """Without --json: progress on stderr, the rest on stdout, and a second run leaves the first alone."""
    demo, report = default
    code, output, errors = demo.run("--steps", "2", "--profile", "2", "--seed", "7")
    assert code == 0
    assert [line.split("  ")[0] for line in errors.splitlines()] == ["step 1/2", "step 2/2"]
    for text in ("handover", "stage actor_update", "step_000002/train/actor_update/", "ok      traces: no rollout"):
        assert text in output
    assert len(list((demo.directory / "out").iterdir())) == 2
    assert all((demo.directory / report["directory"] / path).is_file() for path in report["traces"])


def test_without_the_lock_the_verification_fails(tmp_path: Path) -> None:
    """Negative control: where everyone has the lock at once, the journals and the traces both show the overlap."""
    report = Demo(tmp_path, without_lock=True).report("--steps", "2", "--profile", "2", code=1)
    assert not report["passed"]
    assert failed(report)[:2] == [
        "journals: no rollout collection overlaps a training collection of its device",
        "traces: no rollout trace overlaps a training trace of its device",
    ]


def test_a_stage_inside_the_window_is_skipped_by_name(misuses: Misuses) -> None:
    """Where the driver waits for its trainer inside the window, stages run unrecorded and name it; one wait a step."""
    report, _output = misuses("stage-in-window")
    for step in (2, 3):
        assert skipped(report, step, "busy") == STAGES
        waits = [row["waited"] for row in rows(report, step) if row["what"].startswith("skipped")]
        assert max(waits[1:]) < 1.0 < waits[0], "one budget of a second"
        assert all("rollout window 'rollout'" in row["why"] for row in rows(report, step) if "why" in row)


def test_a_window_that_is_never_closed_ends_with_its_step(misuses: Misuses) -> None:
    """A window without a stop is closed by the next step, and holds no generation but its own."""
    report, _output = misuses("no-stop")
    closed = [row["closed"] for step in (2, 4) for row in rows(report, step) if row["what"] == "window rollout"]
    assert closed[0] == "stale"
    assert "end" not in closed
    assert skipped(report, 2, "busy") == STAGES


def test_a_second_profiler_is_left_alone(misuses: Misuses) -> None:
    """A profiler that training code runs itself keeps its data; the stage says why it was not recorded here."""
    report, _output = misuses("second-profiler")
    assert skipped(report, 2, "foreign") == ["ref_log_prob"]
    assert report["checks"][-1]["what"] == "the training code's own profiler kept all its data"


def test_a_killed_engine_frees_the_device(misuses: Misuses) -> None:
    """An engine that is killed while it records costs its own trace, as the journal says; all stages are recorded."""
    report, _output = misuses("kill-engine")
    for step in (2, 4):
        assert [row["what"] for row in rows(report, step)][-4:] == [f"stage {stage}" for stage in STAGES]
    assert sum("/rollout/" in path for path in report["traces"]) == 1
    assert any("engine-died" in note for note in report["notes"])


@pytest.mark.parametrize("misuse", MISUSES)
def test_check_finds_a_misuse_with_its_code(misuses: Misuses, misuse: str) -> None:
    """Each of the four commonest mistakes is found, in the run's own words, with the exit status 1."""
    _report, output = misuses(misuse)
    assert MISUSES[misuse][1] <= codes(output)
    assert run_check(output)[0] == 1


def test_check_finds_the_same_with_and_without_processes(misuses: Misuses, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find what one finds."""
    from profwin.evidence import workers

    _report, output = misuses("kill-engine")
    alone = checked(output)
    monkeypatch.setattr(workers, "WORTH", 0)
    several = checked(output)
    assert alone["findings"] == several["findings"]
    assert alone["recordings"] == several["recordings"]


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


def test_without_profiling_nothing_is_written(demo: Demo, default: tuple[Demo, dict[str, Any]]) -> None:
    """``--profile none`` runs the same loop with profwin off: same rewards, no files."""
    off = demo.report("--steps", "3", "--profile", "none")
    assert off["passed"]
    assert not (demo.directory / "out").exists()
    rewards = [step["reward"] for step in default[1]["steps"]]
    assert rewards[:3] == [step["reward"] for step in off["steps"]]
