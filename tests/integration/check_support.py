"""Runs `profwin check` for tests, in this process, and makes small runs for it to look at."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from profwin.cli import main

ROOT = Path(__file__).parents[2]

_PROGRAM = """
import sys
import torch
import profwin

profwin.configure(
    steps="2-3", backend="torch", output=sys.argv[1], run="small", devices="pretend:card", role="actor", rank=0
)
for step in range(1, 4):
    with profwin.rollout_window(step, weight_version=step - 1):
        torch.ones(4).sum()
    with profwin.training_stage("actor_update"):
        torch.ones(4).mul(2)
"""


def small_run(directory: Path) -> Path:
    """Record two steps of a window and a stage with torch, in a process of their own; return the run's directory."""
    locks = directory / "locks"
    locks.mkdir(parents=True)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
    subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(directory / "out")], check=True, timeout=100,
        env={**bare, "PYTHONPATH": str(ROOT), "PROFWIN_LOCK_DIR": str(locks)},
    )  # fmt: skip
    return directory / "out" / "small"


def run_check(directory: Path | str, *arguments: str) -> tuple[int, str, str]:
    """Run the command; return its exit status and what it printed on both streams."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = main(["check", os.fspath(directory), *arguments])
        except SystemExit as left:
            status = int(left.code or 0)
    return status, output.getvalue(), errors.getvalue()


def only_progress(errors: str) -> bool:
    """Say whether nothing was said on the error output but, on a slow machine, how far the check has come."""
    return all(line.startswith("profwin check: ") for line in errors.splitlines())


def report(directory: Path | str, *arguments: str) -> dict[str, Any]:
    """Run the command with ``--json`` and return the object; its verdict and the exit status agree."""
    status, output, errors = run_check(directory, "--json", *arguments)
    assert only_progress(errors)
    value: dict[str, Any] = json.loads(output)
    assert status == (not value["clean"])
    return value


def codes(directory: Path | str, *arguments: str, mildest: str = "warning") -> set[str]:
    """Return the codes of the findings of some severity or a graver one."""
    severities = ("error", "warning", "remark")
    wanted = severities[: severities.index(mildest) + 1]
    return {each["code"] for each in report(directory, *arguments)["findings"] if each["severity"] in wanted}


def copy(run: Path, target: Path) -> Path:
    """Copy a run, to damage the copy."""
    shutil.copytree(run, target, symlinks=True)
    return target


def traces(run: Path) -> list[Path]:
    """Return a run's trace files."""
    return sorted(run.glob("step_*/**/*.pt.trace.json.gz"))
