"""The demo's four loops one after the other, and what happens to the pipelined ones when a process ends.

What ``profwin check`` and ``profwin report`` say of the loops stands here too: they are run once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest
from check_support import only_progress, run_check
from check_support import report as checked
from demo_support import ROOT, Demo, failed, interrupt, rows, wait_for_line

from profwin.cli import main
from profwin.journal import read

sys.path.append(str(ROOT / "tests/unit"))
from report_support import Page

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STAGES = ["stage old_log_prob", "stage ref_log_prob", "stage advantages", "stage actor_update"]
PIPELINED = ["separate", "fully_async"]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """The command in an empty directory."""
    return Demo(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """One run of all loops: its report, and where its files are."""
    demo = Demo(tmp_path_factory.mktemp("demo"))
    code, output, errors = demo.run("--loop", "all", "--steps", "5", "--profile", "2,3", "--json")
    found = json.loads(output)
    assert demo.survivors() == []
    assert (code, found["passed"]) == (0, True), [failed(each) for each in found["loops"]] + [errors]
    return found, demo.directory / "out"


@pytest.fixture(scope="module")
def loops(whole: tuple[dict[str, Any], Path]) -> dict[str, dict[str, Any]]:
    """The reports of the loops, by name."""
    return {each["loop"]: each for each in whole[0]["loops"]}


def steps_of(report: dict[str, Any], step: int) -> list[tuple[str, str]]:
    """Return what was recorded in a step, and on which device."""
    return [(row["what"], row["device"]) for row in rows(report, step)]


def test_all_loops_are_verified(loops: dict[str, dict[str, Any]]) -> None:
    """Each of the four loops passes its verification, with nothing beside the ordinary in the journals."""
    assert list(loops) == ["sync", "colocate", "separate", "fully_async"]
    for report in loops.values():
        assert report["passed"], failed(report)
        assert report["notes"] == []


def test_check_finds_all_loops_clean(whole: tuple[dict[str, Any], Path]) -> None:
    """All four, checked at once and each alone: no finding that counts, and every stage in sight."""
    _report, directory = whole
    status, output, errors = run_check(directory)
    assert status == 0, output
    assert only_progress(errors)
    for run in sorted(directory.iterdir()):
        value = checked(run)
        assert value["clean"]
        assert {row["name"] for row in value["summary"]} >= {"rollout", "old_log_prob", "actor_update"}
        assert sum(row["recorded"] for row in value["summary"]) == len(value["recordings"])
    found = sorted(run["name"].partition("-")[0] for run in checked(directory)["runs"])
    assert found == ["colocate", "fully_async", "separate", "sync"]


def test_report_has_all_loops(
    whole: tuple[dict[str, Any], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All loops stand in one table and one page; overlap is where devices are apart; every device adds up."""
    _report, directory = whole
    page = tmp_path / "report.html"
    assert main(["report", str(directory), "-o", str(page)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("2 profiled steps") == 4
    assert "STALENESS" in printed
    assert "error" not in printed.splitlines()[-1]
    assert Page(page.read_text()).tags
    assert main(["report", str(directory), "--json"]) == 0
    colocate, fully_async, separate, sync = json.loads(capsys.readouterr().out)["runs"]
    for run in (fully_async, separate):
        assert run["seconds"]["sync_at_most"] == 0
        for step in run["steps"]:
            assert 0 < step["overlap"]["share"] <= 1
            own, others = syncs(directory / run["directory"], step["step"])
            assert own.keys() == {device["device"] for device in step["devices"]}
            for device in step["devices"]:
                # The end of the one before may lie in the step, too.
                took, least = device["seconds"]["sync"], own[device["device"]]
                assert least - 1e-6 <= took <= least + others.get(device["device"], 0) + 1e-6
    for run in (sync, colocate):
        assert [step["overlap"]["seconds"] for step in run["steps"]] == [0, 0]
    assert sync["seconds"]["sync"] == 0  # it has no event for that
    for run in (colocate, fully_async, separate, sync):
        for step in run["steps"]:
            stages = [f"stage {ranks['name']}" for ranks in step["ranks"] if ranks["kind"] == "training"]
            assert stages == STAGES
            for device in step["devices"]:
                assert sum(device["seconds"].values()) == pytest.approx(step["seconds"])
            assert step["profiling"]["share"] > 0
            assert step["staleness"] in (0, 1, 2)


def syncs(directory: Path, version: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return what the bodies of a version's sync took on each device, in seconds, by the journals; and all others'."""
    own: dict[str, float] = {}
    others: dict[str, float] = {}
    for path in directory.glob("journal/*.jsonl"):
        records = list(read(str(path)))
        ends = {record["id"]: record["t"] for record in records if record["kind"] == "synced"}
        for record in records:
            if record["kind"] == "sync":
                took = (ends[record["id"]] - record["t"]) / 1e9
                for device in record["devices"]:
                    times = own if record["version"] == version else others
                    times[device] = times.get(device, 0) + took
    return own, others


def test_all_loops_learn(loops: dict[str, dict[str, Any]]) -> None:
    """The reward of each loop rises already within its first steps."""
    for loop, report in loops.items():
        rewards = [step["reward"] for step in report["steps"]]
        assert rewards[-1] > 1.2 * rewards[0], loop


def test_colocate_carries_partial_rollouts(loops: dict[str, dict[str, Any]]) -> None:
    """The colocate loop keeps unfinished groups from step to step, and trains on them a version later."""
    report = loops["colocate"]
    assert all(step["carried_groups"] > 0 for step in report["steps"])
    assert [step["generated_with"] for step in report["steps"]] == [[0], [0, 1], [1, 2], [2, 3], [3, 4]]


def test_separate_lends_a_device_and_runs_a_step_ahead(loops: dict[str, dict[str, Any]]) -> None:
    """In a step in which the trainer's device is lent, its part of the rollout ends before the stages begin."""
    report = loops["separate"]
    own, shared = "demo-a", "demo-b"
    stages = [(stage, shared) for stage in STAGES]
    lent = steps_of(report, 2)
    assert lent == [("window rollout", own), ("window rollout_hybrid", shared), ("handover", shared), *stages]
    assert steps_of(report, 3) == [("window rollout", own), *stages]
    first = next(row for row in rows(report, 2) if row["what"] == STAGES[0])
    assert first["waited"] > 0
    # A version behind, but for what the hybrid engine adds in the steps 2 and 5.
    assert [step["generated_with"] for step in report["steps"]] == [[0], [0, 1], [1], [2], [3, 4]]


def test_fully_async_runs_freely(loops: dict[str, dict[str, Any]]) -> None:
    """Windows are on the rollouter's device alone, and no sample is more than two versions behind."""
    report = loops["fully_async"]
    for step in (2, 3):
        assert steps_of(report, step) == [("window rollout", "demo-a"), *[(stage, "demo-b") for stage in STAGES]]
    for step in report["steps"]:
        assert step["step"] - 3 <= min(step["generated_with"]) <= max(step["generated_with"]) < step["step"]


@pytest.mark.parametrize("loop", PIPELINED)
def test_the_wanted_overlap_is_told_apart(loops: dict[str, dict[str, Any]], loop: str) -> None:
    """Rollout beside training on the other device is measured for each profiled step, and only there."""
    told = [(each["step"], each["device"], each["others"]) for each in loops[loop]["wanted_overlap"]]
    assert told == [(2, "demo-a", ["demo-b"]), (3, "demo-a", ["demo-b"])]
    assert all(0 < each["share"] <= 1 for each in loops[loop]["wanted_overlap"])
    assert loops["sync"]["wanted_overlap"] == loops["colocate"]["wanted_overlap"] == []


def test_without_the_lock_separate_fails(tmp_path: Path) -> None:
    """Negative control: without the lock, training overlaps the rollout on the lent device, as both sources show."""
    demo = Demo(tmp_path, without_lock=True)
    report = demo.report("--loop", "separate", "--steps", "2", "--profile", "2", code=1)
    assert failed(report)[:2] == [
        "journals: no rollout collection overlaps a training collection of its device",
        "traces: no rollout trace overlaps a training trace of its device",
    ]
    problems = [problem for check in report["checks"][:2] for problem in check["problems"]]
    assert all("rollout_hybrid" in problem for problem in problems)


@pytest.mark.parametrize("loop", PIPELINED)
def test_ctrl_c_ends_everything(demo: Demo, loop: str) -> None:
    """Ctrl-C in the middle of the loop gives the exit code 130 and leaves no process."""
    process = demo.start("--loop", loop, "--steps", "500", "--profile", "2-500")
    wait_for_line(process, "step   2/500")
    assert interrupt(process) == 130
    assert demo.survivors() == []


def test_ctrl_c_at_the_start_ends_everything(demo: Demo) -> None:
    """Ctrl-C while the children are starting gives the exit code 130 and leaves no process."""
    process = demo.start("--loop", "all")
    while len(demo.processes()) < 3:
        assert process.poll() is None
    assert interrupt(process) == 130
    assert demo.survivors() == []


@pytest.mark.parametrize("loop", PIPELINED)
def test_a_killed_driver_leaves_no_process(demo: Demo, loop: str) -> None:
    """The children end by themselves when the driver is killed."""
    process = demo.start("--loop", loop, "--steps", "500", "--profile", "2-500")
    wait_for_line(process, "step   1/500")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=100)
    assert demo.survivors() == []


@pytest.mark.parametrize(("module", "name"), [("rollouter", "rollouter"), ("async_trainer", "trainer")])
def test_a_killed_child_is_named(demo: Demo, module: str, name: str) -> None:
    """Where one of two processes that run freely is killed, the error says which, and nothing is left."""
    process = demo.start("--loop", "fully_async", "--steps", "500", "--profile", "2-500")
    wait_for_line(process, "step   1/500")
    os.kill(demo.child(module), signal.SIGKILL)
    _output, errors = process.communicate(timeout=100)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == f"profwin: the demo's {name} process: has ended (signal SIGKILL)"
    assert demo.survivors() == []
