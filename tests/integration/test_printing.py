"""What all commands that print results have in common: closed pipes, full disks, plain terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from journal_builder import make_run

from profwin.cli import printing

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "check": ["check", "run"],
    "check-json": ["check", "run", "--json"],
    "codes": ["check", "--list-codes"],
    "report": ["report", "run"],
    "report-json": ["report", "run", "--json"],
    "timeline": ["timeline", "run", "-o", "out.pftrace"],
    "timeline-json": ["timeline", "run", "-o", "out.pftrace", "--json"],
    "locks": ["locks"],
    "locks-json": ["locks", "--json"],
}


def start(directory: Path, *arguments: str, **more) -> subprocess.CompletedProcess[str]:
    """Run the command line below a directory that has a run."""
    if not (directory / "run").exists():
        make_run(directory / "run", stages=("old_log_prob", "mise à jour"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("environment", {})}
    more = {"stdout": subprocess.PIPE, **more}
    return subprocess.run(
        [sys.executable, "-m", "profwin", *arguments],
        cwd=directory, env=environment, stderr=subprocess.PIPE, text=True, timeout=60, check=False, **more,
    )  # fmt: skip


def without_notes(errors: str) -> list[str]:
    """Leave out how far a command has come, and where the page is."""
    return [line for line in errors.splitlines() if not line.startswith(("profwin report: ", "profwin check: "))]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_that_nobody_reads(tmp_path, name):
    """Whoever reads a result may have left: the exit status is as ever, and nothing is said of it."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = start(tmp_path, *COMMANDS[name], stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 0, done.stderr
    assert without_notes(done.stderr) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_is_full(tmp_path, name):
    """A result that cannot be written is said in one sentence, with the exit status 2."""
    with open("/dev/full", "w") as full:
        done = start(tmp_path, *COMMANDS[name], stdout=full)
    assert done.returncode == 2
    assert without_notes(done.stderr) == ["profwin: error: standard output: No space left on device"]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_is_closed(tmp_path, name):
    """Without an output the command does its work."""
    done = start(tmp_path, *COMMANDS[name], preexec_fn=lambda: os.close(1), stdout=None)
    assert done.returncode == 0, done.stderr
    assert without_notes(done.stderr) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_that_lacks_characters(tmp_path, name):
    """What a terminal's encoding lacks is shown as its escape, and JSON stays JSON."""
    done = start(tmp_path, *COMMANDS[name], environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    if name.endswith("-json"):
        json.loads(done.stdout)


def test_progress(monkeypatch, capsys):
    """How far a command has come is said while it takes long, on the error output, and no more after it."""
    monkeypatch.setattr(printing, "PATIENCE", 0.01)
    with printing.Progress("check", "looking") as progress:
        _wait_for(capsys, "profwin check: looking\n")
        progress.count(3, 7)
        _wait_for(capsys, "profwin check: 3 of 7 recordings read\n")
        progress.count(7, 7)
        _wait_for(capsys, "profwin check: judging what was read\n")
        progress.read("a\x1b.json", 12_000)
        _wait_for(capsys, "profwin check: a\\x1b.json: 12,000 events\n")
    capsys.readouterr()
    assert capsys.readouterr() == ("", "")


def _wait_for(capsys, line: str) -> None:
    for _ in range(3000):
        output, errors = capsys.readouterr()
        assert output == ""
        if line in errors:
            return
        printing.threading.Event().wait(0.01)
    raise AssertionError(line)


def test_progress_that_nobody_reads(monkeypatch):
    """An error output that is closed, or that nobody reads any more, disturbs nothing."""
    monkeypatch.setattr(printing, "PATIENCE", 0.001)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        with printing.Progress("check", "looking") as progress:
            progress._thread.join(30)
            assert not progress._thread.is_alive()
        monkeypatch.setattr(sys, "stderr", None)
        with printing.Progress("check", "looking") as progress:
            progress._thread.join(30)
            assert not progress._thread.is_alive()
        monkeypatch.undo()
        try:
            closed.close()
        except BrokenPipeError:
            pass
