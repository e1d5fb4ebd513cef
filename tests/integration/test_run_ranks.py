"""Ranks that torchrun starts under ``profwin run``: an all-reduce in each stage, on devices of their own and on one."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from check_support import codes, report
from core_support import Evidence
from run_support import bare, run

pytest.importorskip("torch", reason="torch is not installed: torchrun cannot be tried")

STRANGERS = Path(__file__).parents[1] / "clients" / "strangers"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "data_parallel.py")
SINGLE = {"OMP_NUM_THREADS": "1"}
STAGES = ("update_critic", "update_actor")


@pytest.fixture
def place(tmp_path):
    """Give a directory with the program and its plan."""
    return Path(shutil.copytree(STRANGERS, tmp_path / "strangers", ignore=shutil.ignore_patterns("__pycache__")))


def losses(done):
    """Give what both ranks printed, in any order."""
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def follow(place, *options):
    """Run both ranks with the plan; return what they printed, and what was recorded.

    The budget is longer than the patience of the test: if it were spent once, the test would fail.
    """
    options = ("--steps", "2-3", "--output", "out", "--wait-budget", "600", "--quiet", *options)
    done = run(place, sys.executable, *TORCHRUN, options=options, plan="data_parallel.toml", env=SINGLE)
    evidence = Evidence(place / "out")
    evidence.check()
    assert len(list((place / "out").iterdir())) == 1, "both ranks are of one run"
    assert {each["rank"] for each in evidence.of("process")} == {0, 1}
    assert not evidence.of("finding")
    return losses(done), evidence


def recorded(evidence):
    """Count the collections of each step, name and device."""
    return Counter((each["step"], each["name"], *each["devices"]) for each in evidence.collections())


@pytest.mark.slow
def test_devices_of_their_own(place):
    """The plan finds each rank's device; windows and stages of both are recorded, and the weights are the same."""
    printed, evidence = follow(place)
    assert printed == losses(bare(place, sys.executable, *TORCHRUN, env=SINGLE))
    names = ("rollout", *STAGES)
    assert recorded(evidence) == {
        (step, name, f"pretend-{rank}"): 1 for step in (2, 3) for name in names for rank in (0, 1)
    }
    assert not evidence.skips()
    found = report(place / "out")
    assert found["clean"], found["findings"]


@pytest.mark.slow
def test_one_device(place):
    """Nobody waits for the other's stage: one of the two is recorded, the other runs at once, as ``peer``.

    A window finds the device free, or in a stage of the other rank that is about to end.
    """
    printed, evidence = follow(place, "--devices", "pretend:0")
    assert printed == losses(bare(place, sys.executable, *TORCHRUN, env=SINGLE))
    counts, skips = recorded(evidence), Counter(evidence.skips())
    windows = sum(counts.pop((step, "rollout", "pretend-0")) for step in (2, 3))
    assert counts == {(step, name, "pretend-0"): 1 for step in (2, 3) for name in STAGES}
    assert windows + skips.pop(("rollout", "peer"), 0) == 4
    assert skips == dict.fromkeys([(name, "peer") for name in STAGES], 2)
    assert codes(place / "out") == {"skipped-peer"}
