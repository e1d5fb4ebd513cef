"""Processes that a command starts under ``profwin run``, where the command itself records nothing, are of one run."""

from __future__ import annotations

import json
import sys

import pytest
from run_support import PLAN, run

STEPS = """
import sys, time
import profwin

for step in (1, 2):
    if sys.argv[1] == "rollout":
        with profwin.rollout_window(step):
            time.sleep(0.01)
    else:
        with profwin.training_step(step), profwin.training_stage("update"):
            time.sleep(0.01)
"""
SUBJECT = "def work(): pass\n"
PARENT = """
import subprocess, sys

for what in ("rollout", "update"):
    subprocess.run([sys.executable, "child.py", what], check=True)
"""
TWICE = """
import profwin

for turn in range(2):
    profwin.configure(steps="1")
    with profwin.training_step(1), profwin.training_stage("update"):
        pass
    profwin.shutdown()
"""


@pytest.fixture
def place(tmp_path):
    """Give a directory with the programs."""
    texts = {"child.py": STEPS, "parent.py": PARENT, "twice.py": TWICE, "subject.py": SUBJECT, "plan.toml": PLAN}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def runs(place):
    """Give the directories of the runs."""
    return sorted((place / "out").iterdir())


@pytest.mark.parametrize("command", [(sys.executable, "parent.py"), ("sh", "-c", f"{sys.executable} parent.py")])
def test_siblings_are_of_one_run(place, command):
    """Two children of a command without a session share a run; the first of them writes its manifest."""
    done = run(place, *command, options=("--steps", "1-2", "--output", "out"))
    assert done.returncode == 0, done.stderr
    (directory,) = runs(place)
    heads = [json.loads(path.read_text().splitlines()[0]) for path in (directory / "journal").glob("*.jsonl")]
    assert [head["attempt"] for head in heads] == [0, 0]
    assert sorted(head["root"] for head in heads) == [False, True]
    assert (directory / "manifest.json").exists()


def test_a_second_session_is_another_run(place):
    """A command that configures itself twice makes two runs, as it does without profwin run."""
    done = run(place, sys.executable, "twice.py", options=("--steps", "1", "--output", "out"))
    assert done.returncode == 0, done.stderr
    assert len(runs(place)) == 2
