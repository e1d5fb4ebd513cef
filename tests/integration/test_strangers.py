"""Programs that know nothing of profwin, in ``tests/clients/strangers``, followed by a plan: recorded and unchanged."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from check_support import report
from core_support import Evidence
from run_support import bare, run
from torch_support import names, traces

STRANGERS = Path(__file__).parents[1] / "clients" / "strangers"
PROGRAMS = {
    "globals_script": ["rollout", "old_log_probs", "update", "update"],
    "hooks_main": ["rollout", "actor_update"],
    "asyncio_program": ["rollout", "update"],
}
"""What each program does in a step, in order."""
OPERATORS = {"rollout": "aten::softmax", "old_log_probs": "aten::softmax"}
"""What the policy runs there when torch is installed; ``aten::add`` in all others, and in these not."""

program = pytest.mark.parametrize("program", PROGRAMS)


@pytest.fixture
def place(tmp_path):
    """Give a directory with the programs and their plans."""
    return Path(shutil.copytree(STRANGERS, tmp_path / "strangers", ignore=shutil.ignore_patterns("__pycache__")))


def follow(place, program, *options, steps="2-3"):
    """Run a program with its plan; return what it printed."""
    options = ("--steps", steps, "--devices", "pretend:0", "--output", "out", "--run", "r", "--quiet", *options)
    done = run(place, sys.executable, f"{program}.py", options=options, plan=f"{program}.toml")
    assert done.returncode == 0, done.stderr
    assert "profwin" not in done.stderr
    return done.stdout


def unprofiled(place, program):
    """Run a program as it is; return what it printed."""
    done = bare(place, sys.executable, f"{program}.py")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@program
def test_recorded(place, program):
    """Each selected step has its rollout and stages, in order; nothing else is recorded, and the output is the same."""
    assert follow(place, program) == unprofiled(place, program)
    evidence = Evidence(place / "out")
    evidence.check()
    found = [(each["step"], each["name"]) for each in evidence.collections()]
    assert found == [(step, name) for step in (2, 3) for name in PROGRAMS[program]]
    begun = [each["step"] for each in evidence.of("step", side="training")]
    assert begun == ([1, 2, 3, 4] if program == "hooks_main" else []), "only the hooks tell of training steps"
    assert not evidence.of("finding")
    assert not evidence.skips()
    assert all(each["devices"] == ["pretend-0"] for each in evidence.collections())


@program
def test_traces(place, program):
    """With torch there is one trace for each, which holds the operators that ran there; the check is clean."""
    pytest.importorskip("torch", reason="torch is not installed: no traces can be recorded")
    assert follow(place, program, "--backend", "torch") == unprofiled(place, program)
    found = report(place / "out")
    assert found["clean"], found["findings"]
    expected = PROGRAMS[program]
    assert len(traces(place / "out")) == 2 * len(expected)
    for name in set(expected):
        folder = "rollout" if name == "rollout" else f"train/{name}"
        made = traces(place / "out", folder)
        assert len(made) == 2 * expected.count(name)
        wanted = OPERATORS.get(name, "aten::add")
        for trace in made:
            assert wanted in names(trace)
            assert ("aten::add" in names(trace)) == (wanted == "aten::add")


@program
def test_off(place, program):
    """With the plan and without steps, the output is the same, and no file is made."""
    options = ("--quiet", "--output", "out")
    done = run(place, sys.executable, f"{program}.py", options=options, plan=f"{program}.toml")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", unprofiled(place, program))
    assert not (place / "out").exists()
