"""The demo on a Ray cluster of its own: all loops on two nodes, and that nothing is left however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from check_support import run_check
from demo_support import Demo, failed, interrupt, rows, wait_for_line

from profwin.journal import read

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

STAGES = ["stage old_log_prob", "stage ref_log_prob", "stage advantages", "stage actor_update"]
ENDLESS = ("--ray", "--nodes", "1", "--steps", "500", "--profile", "1-500")


class RayDemo(Demo):
    """The command, with a directory for temporary files of its own, whose path is short."""

    def __init__(self, directory: Path, *, without_lock: bool = False) -> None:
        super().__init__(directory, without_lock=without_lock)
        self.temporary = tempfile.mkdtemp(prefix="d", dir="/tmp")
        self.environment["TMPDIR"] = self.temporary
        # Of a cluster that is not the demo's.
        self.environment["RAY_ADDRESS"] = "192.0.2.1:6379"

    def left(self) -> list[object]:
        """Return what is still there: processes, the cluster's directories, and device locks."""
        directories = [name for name in os.listdir(self.temporary) if name.startswith(("pw-", "profwin", "ray"))]
        locks = [path for path in self.directory.rglob("*") if "locks" in path.name and path.name != "locks"]
        return [*self.survivors(), *directories, *locks, *(self.directory / "locks").iterdir()]

    def actor(self, kind: str) -> int:
        """Return the process of an actor of a class."""
        for pid in self.processes():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"ray::{kind}".encode()):
                    return pid
        raise AssertionError(f"no {kind} is there")


def make(directory: Path, **options: Any) -> Iterator[RayDemo]:
    """Give the command in a directory."""
    demo = RayDemo(directory, **options)
    yield demo
    shutil.rmtree(demo.temporary)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[RayDemo]:
    """The command in an empty directory."""
    yield from make(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path, str]]:
    """One run of all loops on two nodes: the loops' reports by name, where their files are, and the progress."""
    for demo in make(tmp_path_factory.mktemp("demo")):
        arguments = ("--ray", "--loop", "all", "--steps", "3", "--profile", "2", "--json")
        code, output, errors = demo.run(*arguments, patience=480)
        found = json.loads(output)
        assert demo.left() == []
        assert (code, found["passed"]) == (0, True), [failed(each) for each in found["loops"]] + [errors]
        yield {each["loop"]: each for each in found["loops"]}, demo.directory / "out", errors


def test_all_loops_are_verified(whole: tuple[dict[str, Any], Path, str]) -> None:
    """Each loop passes its verification on two nodes, with nothing beside the ordinary in the journals."""
    reports, _directory, errors = whole
    assert list(reports) == ["sync", "colocate", "separate", "fully_async"]
    for report in reports.values():
        assert report["passed"], failed(report)
        assert (report["notes"], report["nodes"]) == ([], 2)
    lines = errors.splitlines()
    assert lines[:3] == ["node1 of 2 is up", "node2 of 2 is up", "sync: 4 actors are up"]
    assert sum(line.startswith("collected ") for line in lines) == 4


@pytest.mark.parametrize("loop", ["sync", "colocate"])
def test_both_nodes_take_turns(whole: tuple[dict[str, Any], Path, str], loop: str) -> None:
    """On each node's device, the window ends and all stages follow."""
    found = rows(whole[0][loop], 2)
    for node in ("node1", "node2"):
        mine = [row["what"] for row in found if row["device"] == node]
        assert mine == ["window rollout", "handover", *STAGES]


def test_a_node_is_lent(whole: tuple[dict[str, Any], Path, str]) -> None:
    """In separate, the second node's engine records before its trainer; the first node has windows alone."""
    found = [(row["what"], row["device"]) for row in rows(whole[0]["separate"], 2)]
    stages = [(stage, "node2") for stage in STAGES]
    assert sorted(found[:2]) == [("window rollout", "node1"), ("window rollout_hybrid", "node2")]
    assert found[2:] == [("handover", "node2"), *stages]


@pytest.mark.parametrize("loop", ["separate", "fully_async"])
def test_rollout_and_training_are_on_two_nodes(whole: tuple[dict[str, Any], Path, str], loop: str) -> None:
    """In the pipelined loops the first node generates while the second trains."""
    (overlap, *_) = [each for each in whole[0][loop]["wanted_overlap"] if each["device"] == "node1"]
    assert overlap["others"] == ["node2"]
    assert overlap["share"] > 0


def test_the_nodes_are_hosts(whole: tuple[dict[str, Any], Path, str]) -> None:
    """The journals that were collected are of two hosts, each with a boot id of its own, and all have their end."""
    reports, directory, _errors = whole
    for report in reports.values():
        boots: dict[str, set[str]] = {}
        for path in (directory / os.path.basename(report["directory"]) / "journal").iterdir():
            first, *_, last = read(str(path))
            boots.setdefault(first["host"], set()).add(first["boot"])
            assert last["kind"] == "end", path
        assert sorted(boots) == ["node1", "node2"]
        assert len(set.union(*boots.values())) == 2


def test_check_finds_all_loops_clean(whole: tuple[dict[str, Any], Path, str]) -> None:
    """``profwin check`` over everything that was collected finds nothing that counts."""
    status, output, _errors = run_check(whole[1])
    assert status == 0, output


def test_without_the_lock_the_verification_fails(tmp_path: Path) -> None:
    """Negative control: where everyone has the lock at once, journals, traces and check show the overlap."""
    for demo in make(tmp_path, without_lock=True):
        report = demo.report("--ray", "--nodes", "1", "--steps", "2", "--profile", "2", code=1)
        assert failed(report) == [
            "journals: no rollout collection overlaps a training collection of its device",
            "traces: no rollout trace overlaps a training trace of its device",
            "training waited for the engine's stop on each device that they share",
            "profwin check finds nothing in what was collected",
        ]
        assert demo.left() == []


def started(demo: RayDemo, *more: str, until: str = "step   1/500") -> subprocess.Popen[str]:
    """Start a run that would take long; return it when it has come so far."""
    process = demo.start(*ENDLESS, *more)
    wait_for_line(process, until)
    return process


@pytest.mark.parametrize(
    ("loop", "until"), [("fully_async", "step   1/500"), ("sync", "node1 of 1 is up")], ids=["loop", "start"]
)
def test_ctrl_c_leaves_nothing(demo: RayDemo, loop: str, until: str) -> None:
    """Ctrl-C gives the exit code 130, and no raylet, worker, directory or lock is left."""
    process = started(demo, "--loop", loop, until=until)
    assert interrupt(process) == 130
    assert demo.left() == []


def test_a_killed_driver_leaves_nothing(demo: RayDemo) -> None:
    """Where the command itself is killed, the cluster ends by itself, and takes all that it has written with it."""
    process = started(demo)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=100)
    assert demo.left() == []


def test_a_killed_actor_is_named(demo: RayDemo) -> None:
    """Where an engine's actor is killed, the error says which, and nothing is left."""
    process = started(demo)
    os.kill(demo.actor("EngineActor"), signal.SIGKILL)
    _output, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    assert errors.splitlines()[-1].startswith("profwin: the demo's engine on node1 process: has ended")
    assert demo.left() == []


@pytest.mark.parametrize(
    "arguments",
    [("--nodes", "2"), ("--ray", "--nodes", "0"), ("--ray", "--nodes", "9"), ("--ray", "--misuse", "no-stop")],
    ids=" ".join,
)
def test_wrong_usage(demo: RayDemo, arguments: tuple[str, ...]) -> None:
    """Wrong usage gives the exit code 2 and a sentence, and starts nothing."""
    code, output, errors = demo.run(*arguments)
    assert (code, output) == (2, "")
    assert "profwin demo: error: " in errors
    assert not (demo.directory / "out").exists()
