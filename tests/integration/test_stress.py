"""A short stress run: real processes, real SIGKILL, two judges that share no code with profwin, and the control."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _storm(target: Path, *options: str) -> tuple[int, dict]:
    shape = ["--processes", "4", "--rounds", "150", "--kill-every", "0.02", "--limit", "60", "--json", str(target)]
    command = [sys.executable, "-m", "benchmarks.stress", *shape, *options]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100, check=False)
    assert target.exists(), process.stdout + process.stderr
    return process.returncode, json.loads(target.read_text())


def test_processes_that_are_killed_at_random_never_overlap_and_lose_no_lock(tmp_path):
    """Under random SIGKILL neither judge sees an overlap or a broken record, and every device can be taken after."""
    status, result = _storm(tmp_path / "result.json")
    assert result["problems"] == []
    assert status == 0
    assert result["rounds"] == 4 * 150
    assert result["kills"] > 0
    assert result["overlaps_in_journals"] == result["overlaps_seen_by_witness"] == result["undecodable"] == 0
    assert result["recorded"]["rollout"] > 0
    assert result["recorded"]["training"] > 0
    assert all(taken is not None for taken in result["milliseconds_to_acquire_after"].values())


def test_without_the_lock_both_judges_see_overlaps(tmp_path):
    """With the acquisition replaced by a no-op the same run fails, and each judge by itself sees why."""
    status, result = _storm(tmp_path / "result.json", "--no-lock")
    assert status == 1
    assert result["overlaps_in_journals"] > 0
    assert result["overlaps_seen_by_witness"] > 0
