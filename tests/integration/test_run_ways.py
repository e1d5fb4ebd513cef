"""The ways into a process: every Python that COMMAND is, or starts, is patched; those that cannot be are documented."""

from __future__ import annotations

import os
import sys

import pytest
from run_support import ROOT, bare, programs, run

QUIET = ("--quiet",)


@pytest.fixture
def place(tmp_path):
    """Give a directory with the programs."""
    programs(tmp_path)
    return tmp_path


def lines(done):
    """Give what the processes said, once all went well and nothing else was said."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize(
    "command",
    [
        ("other.py",),
        ("./other.py",),
        ("-m", "other"),
        ("-mother",),
        ("-c", "import subject; subject.say('child')"),
        ("-Bu", "-X", "utf8", "-W", "error", "other.py"),
        ("-s", "other.py"),
    ],
    ids=" ".join,
)
def test_command_itself(place, command):
    """A script, a module, a piece of code: COMMAND itself is patched."""
    assert lines(run(place, sys.executable, *command, options=QUIET)) == ["child patched"]


def test_standard_input(place):
    """A program that Python reads from its standard input is patched."""
    with open(place / "other.py") as file:
        assert lines(run(place, sys.executable, options=QUIET, stdin=file)) == ["child patched"]


@pytest.mark.parametrize(
    "way",
    ["fork", "spawn", "forkserver", "os.fork", "file", "-c", "-m", "shell", "posix_spawn", "execv", "-s"]
    + ["-P"] * (sys.version_info >= (3, 11)),
)
def test_children(place, way):
    """A child, however it is started, is patched like its parent."""
    said = lines(run(place, sys.executable, "ways.py", way, options=QUIET))
    assert set(said) == {"parent patched", "child patched"}


@pytest.mark.parametrize("way", ["PATH", "PYTHONPATH", "-I", "-E", "-S"])
def test_unreachable_children(place, way):
    """A child that ignores the environment, or was given another one, runs as it is: this is documented."""
    assert lines(run(place, sys.executable, "ways.py", way, options=QUIET)) == ["child bare", "parent patched"]


def test_a_shell_between(place):
    """A COMMAND that is no Python passes everything on, and standard error says what is patched."""
    done = run(place, "bash", "-c", f"{sys.executable} other.py")
    assert done.stdout == "child patched\n"
    assert "bash is no Python program: only Python programs that it starts can be patched" in done.stderr


def test_another_virtual_environment(place):
    """An interpreter that has no profwin, and none of what that needs, gets profwin from where the launcher has it."""
    environment = place / "elsewhere"
    assert bare(place, sys.executable, "-m", "venv", "--without-pip", str(environment)).returncode == 0
    code = (
        "import os, sys; sys.path[:] = [entry for entry in sys.path if entry != os.environ['HIDDEN']]\n"
        "import subject; subject.say('child'); print(subject.work())"
    )
    python = str(environment / "bin" / "python")
    done = run(place, python, "-c", code, options=QUIET, env={"HIDDEN": str(ROOT)})
    assert lines(done) == ["child patched", "worked"]


def test_torchrun(place):
    """Both ranks that torchrun starts are patched."""
    pytest.importorskip("torch", reason="torch is not installed: torchrun cannot be tried")
    command = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "other.py")
    done = run(place, sys.executable, *command, options=QUIET)
    assert sorted(done.stdout.splitlines()) == ["child patched"] * 2, done.stderr


def test_recorded(place):
    """What a patched process does in a selected step is recorded, with the settings of the command line."""
    (place / "train.py").write_text(
        "import profwin, subject\n"
        "for step in range(4):\n    with profwin.training_step(step):\n        subject.work()\n"
    )
    options = (*QUIET, "--steps", "1-2", "--devices", "pretend:0", "--output", "out", "--run", "r")
    assert lines(run(place, sys.executable, "train.py", options=options)) == []
    (journal,) = (place / "out" / "r" / "journal").iterdir()
    assert journal.read_text().count('"what":"stage","name":"work"') == 2


def test_nested(place):
    """``profwin run`` in ``profwin run`` patches once, by the inner one's plan."""
    inner = (sys.executable, "-m", "profwin", "run", "--quiet", "--plan", "plan.toml", "--")
    done = run(
        place, *inner, sys.executable, "-c", "import sys, subject; subject.say('child'); print(sys.path)", options=QUIET
    )
    said, path = done.stdout.splitlines()
    assert said == "child patched"
    assert path.count(f"patch{os.sep}boot") == 1
