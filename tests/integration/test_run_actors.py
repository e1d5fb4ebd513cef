"""A group of Ray actors under ``profwin run``: an importable class, one of ``__main__``, and the driver's windows."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from check_support import report
from core_support import Evidence
from run_support import bare, run

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

STRANGERS = Path(__file__).parents[1] / "clients" / "strangers"


@pytest.mark.slow
def test_group(tmp_path):
    """Driver and actors record in one run, in order on each device; what is printed is the same without profwin."""
    place = shutil.copytree(STRANGERS, tmp_path / "strangers", ignore=shutil.ignore_patterns("__pycache__"))
    temporary = tempfile.mkdtemp(prefix="r")  # short: Ray's sockets lie in it
    more = {"RAY_TMPDIR": temporary, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    options = ("--steps", "2-3", "--output", "out", "--run", "r", "--quiet")
    try:
        plain = bare(place, sys.executable, "actor_group.py", env=more)
        done = run(place, sys.executable, "actor_group.py", options=options, plan="actor_group.toml", env=more)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    assert (plain.returncode, plain.stdout.count("\n")) == (0, 5), plain.stderr
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    assert "profwin" not in done.stderr
    evidence = Evidence(place / "out")
    (driver,) = {each["pid"] for each in evidence.of("enter", what="window")}
    actors = {each["pid"] for each in evidence.of("enter", what="stage")}
    assert len(actors - {driver}) == 3
    assert {each["run"] for each in evidence.of("process")} == {"r"}
    evidence.check(killed=tuple(actors))  # Ray kills its workers
    found = sorted((each["step"], each["name"], *each["devices"]) for each in evidence.collections())
    assert found == [
        each
        for step in (2, 3)
        for each in (
            (step, "actor_update", "pretend-0"),
            (step, "actor_update", "pretend-1"),
            (step, "critic_update", "pretend-0"),
            (step, "rollout", "pretend-0", "pretend-1"),
        )
    ]
    roles = {each["name"]: each["role"] for each in evidence.of("enter") if each["what"] != "span"}
    assert roles == {"rollout": "rollout", "critic_update": "critic", "actor_update": "actor"}
    assert not evidence.skips()
    assert not evidence.of("finding")
    answer = report(place / "out")
    assert answer["clean"], answer["findings"]
