"""A plan over several processes: each is patched whole or not at all, and settings reach the children."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = str(Path(__file__).parents[2])
LIBRARY = """
class Trainer:
    step = 0
    config = {"steps": "2"}

    def fit(self, n):
        for self.step in range(1, n + 1):
            self.generate()
            self.update()
        return self.step

    def generate(self):
        return 1

    def update(self):
        return 2
"""
LATER = "def evaluate():\n    return 3\n"
PROGRAM = """
import multiprocessing
import os
import sys

import library


def child(method):
    process = multiprocessing.get_context(method).Process(target=library.Trainer().fit, args=(3,))
    process.start()
    process.join()
    return process.exitcode


if __name__ == "__main__":
    import later

    print(library.Trainer().fit(3), later.evaluate(), child("fork"), child("spawn"))
"""
PLAN = """
format = 1
name = "tests"
[configure]
target = "library:Trainer.fit"
[configure.settings]
steps = "self.config.steps"
[[patch]]
target = "library:Trainer.generate"
role = "window"
step = "self.step"
[[patch]]
target = "library:Trainer.update"
role = "stage"
[[patch]]
target = "later:evaluate"
role = "span"
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the program under a plan; it returns the process and what was recorded in each."""
    for name, text in (("library.py", LIBRARY), ("later.py", LATER), ("program.py", PROGRAM)):
        (tmp_path / name).write_text(text)

    def runs(plan, *options):
        (tmp_path / "plan.toml").write_text(plan)
        command = [sys.executable, "-m", "profwin", "run", "--plan", "plan.toml", "--devices", "pretend:0"]
        command += ["--output", "out", *options, "--", sys.executable, "program.py"]
        environment = {**os.environ, "PYTHONPATH": SOURCES}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        recorded = collections.Counter()
        for path in (tmp_path / "out").glob("*/journal/*.jsonl"):
            records = [json.loads(line) for line in path.read_text().splitlines()]
            recorded[tuple(each["name"] for each in records if each["kind"] == "enter" and "collection" in each)] += 1
        return done, recorded

    return runs


def test_settings_of_the_program_reach_its_children(run):
    """The steps stand in the program's configuration alone; parent, fork and spawn record the same."""
    done, recorded = run(PLAN)
    assert (done.returncode, done.stdout) == (0, "3 3 0 0\n"), done.stderr
    assert recorded == {("rollout", "update"): 3}


@pytest.mark.parametrize("wrong", ["library:Trainer.updat", "later:evaluat"])
def test_a_plan_that_does_not_fit_is_followed_nowhere(run, wrong):
    """The program runs as ever, one message names the nearest name, and no process records anything."""
    plan = PLAN + f'[[patch]]\ntarget = "{wrong}"\nrole = "pause"\n'
    done, recorded = run(plan, "--steps", "2")
    assert (done.returncode, done.stdout) == (0, "3 3 0 0\n"), done.stderr
    assert done.stderr.count(wrong) == 1
    assert not [names for names in recorded if names]


def test_a_plan_that_does_not_fit_stops_a_strict_run(run):
    """The import raises what the plan's message is."""
    done, recorded = run(PLAN + '[[patch]]\ntarget = "library:Trainer.updat"\nrole = "pause"\n', "--strict")
    assert done.returncode == 1
    assert "PlanError" in done.stderr
    assert "'update'" in done.stderr
    assert not recorded
