"""The command line of ``profwin run``: usage, settings, what it says, COMMANDs that do not run, and --children."""

from __future__ import annotations

import re
import sys

import pytest
from run_support import programs, run

QUIET = ("--quiet",)
SHOW = """
import os
print(*sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("PROFWIN_") and "LOCK" not in k))
"""
FILES = """
import os, subprocess, sys, subject
if "again" not in os.environ:
    os.execve(sys.executable, sys.orig_argv, {**os.environ, "again": ""})
subject.say("parent")
for name in sys.argv[1:]:
    subprocess.run([sys.executable, name], check=True)
"""


@pytest.fixture
def place(tmp_path):
    """Give a directory with the programs."""
    programs(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [[], ["--"], ["--steps", "1"], ["--steps", "1", "--"], ["python", "train.py"], ["--quiet", "train.py", "--"]],
    ids=" ".join,
)
def test_usage(place, capsys, arguments):
    """Without ``--`` and a COMMAND after it, the usage is shown, and what is missing."""
    from profwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments])
    assert ended.value.code == 2
    assert "COMMAND is missing: write it last, after `--`" in capsys.readouterr().err


def test_help(capsys):
    """The help names each setting, what cannot be reached, and the exit statuses, with examples."""
    from profwin.cli import main
    from profwin.cli.run import SETTINGS

    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in text for name in SETTINGS)
    assert all(word in text for word in ("examples:", "--children", "-I, -E or -S", "127"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--plan", "vrel"], "'vrel' is neither a shipped plan nor a file"),
        (["--plan", "missing.toml"], "missing.toml"),
        (["--plan", "plan.toml", "--plan", "plan.toml"], "give one plan once"),
        (["--plan", "plan.toml", "--children", ","], "children=','"),
        (["--steps", "x"], "steps='x'"),
        (["--continuous"], "continuous=True"),
        (["--wait-budget", "-1"], "wait_budget='-1'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_refused(place, options, words):
    """A plan or setting that cannot be used is refused before anything runs, with its name and value."""
    done = run(place, sys.executable, "-c", "print('ran')", options=tuple(options), plan=None)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("profwin run: ")
    assert re.search(words, done.stderr)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("no-such-program", 127, "no-such-program: there is no such program on PATH"),
        ("./no-such-file", 127, "there is no such program"),
        ("other.py", 127, "a file in this directory is run as ./other.py"),
        ("./other.py", 126, "it cannot be executed: Permission denied"),
        ("./directory", 126, "it is a directory"),
        ("./broken", 127, "a script's first line may name an interpreter that is not there"),
        ("./text", 126, "it cannot be executed: Exec format error"),
    ],
)
def test_commands_that_do_not_run(place, command, status, words):
    """The exit status is a shell's, and the message names the program and the reason."""
    (place / "directory").mkdir()
    for name, text in {"broken": "#!/no/such/interpreter\n", "text": "hello\n"}.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    done = run(place, command, options=QUIET)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(f"profwin run: {command}: ")
    assert words in done.stderr


def test_what_is_said(place):
    """One line on stderr says which plans are applied, to which steps, and where the output goes."""
    done = run(place, sys.executable, "other.py", options=("--steps", "2-3", "--output", "x"))
    assert done.stderr == f"profwin run: plan ways (1 target), steps 2-3, output {place / 'x'}\n"
    done = run(place, sys.executable, "other.py")
    assert done.stderr == "profwin run: plan ways (1 target), no steps, so nothing is recorded: give --steps\n"
    (place / "plan.toml").write_text(
        (place / "plan.toml").read_text()
        + '[configure]\ntarget = "subject:work"\n[configure.settings]\nsteps = "a.b"\noutput = "a.c"\n'
    )
    done = run(place, sys.executable, "-c", "import os; print(os.environ.get('PROFWIN_OUTPUT'))")
    own = "as the program's own configuration says"
    assert done.stderr == f"profwin run: plan ways (1 target), steps {own}, output {own}\n"
    assert done.stdout == "None\n"


def test_settings(place):
    """Settings are validated and given on as variables; paths become absolute; what is set already holds."""
    options = (
        *QUIET,
        "--steps",
        "2-3",
        "--output",
        "x",
        "--strict",
        "--collect",
        "step",
        "--torch-options",
        "with_stack",
    )
    done = run(
        place, sys.executable, "-c", SHOW, options=options, plan=None, env={"PROFWIN_STEPS": "7", "PROFWIN_RANKS": "0"}
    )
    assert done.stdout.split() == [
        "PROFWIN_COLLECT=step", f"PROFWIN_OUTPUT={place / 'x'}", "PROFWIN_RANKS=0", "PROFWIN_STEPS=2-3",
        "PROFWIN_STRICT=1", "PROFWIN_TORCH_OPTIONS=with_stack",
    ]  # fmt: skip


def test_arguments_pass(place):
    """All that follows the first ``--`` is COMMAND's, further ones and what looks like our options too."""
    code = "import sys; print(sys.argv[1:])"
    done = run(place, sys.executable, "-c", code, "--", "--steps", "1", "", "a b", options=QUIET)
    assert done.stdout == "['--', '--steps', '1', '', 'a b']\n"


@pytest.mark.parametrize(
    ("rule", "patched"),
    [
        ("all", ["parent", "sandbox.py", "worker.py"]),
        ("none", ["parent"]),
        ("worker.py", ["parent", "worker.py"]),
        ("!sandbox*", ["parent", "worker.py"]),
    ],
)
def test_children(place, rule, patched):
    """``--children`` keeps patches out of children; COMMAND itself is always patched, also if it executes itself."""
    (place / "parent.py").write_text(FILES)
    for name in ("sandbox.py", "worker.py"):
        (place / name).write_text(f"import subject\nsubject.say({name!r})\n")
    command = (sys.executable, "parent.py", "sandbox.py", "worker.py")
    done = run(place, *command, options=(*QUIET, "--children", rule))
    assert done.stderr == ""
    said = dict(line.split() for line in done.stdout.splitlines())
    assert len(said) == 3
    assert sorted(name for name, state in said.items() if state == "patched") == patched


@pytest.mark.parametrize(("rule", "stages"), [("all", 2), ("none", 1)])
def test_forks(place, rule, stages):
    """A forked child that is not meant has the wrappers, since it is a copy, but records nothing."""
    (place / "forks.py").write_text(
        "import os, profwin, subject\n"
        "def step():\n    with profwin.training_step(1):\n        subject.work()\n"
        "step()\nif os.fork() == 0:\n    step()\n    profwin.shutdown()\n    os._exit(0)\nos.wait()\n"
    )
    options = (*QUIET, "--children", rule, "--steps", "1", "--devices", "pretend:0", "--output", "out", "--run", "r")
    done = run(place, sys.executable, "forks.py", options=options)
    assert (done.returncode, done.stderr) == (0, "")
    journals = [path.read_text() for path in (place / "out" / "r" / "journal").iterdir()]
    assert sum(text.count('"what":"stage"') for text in journals) == stages


def test_module_that_fails(place):
    """A module with targets that cannot be imported fails as ever; nothing is said of us."""
    (place / "subject.py").write_text("1 / 0\n")
    done = run(place, sys.executable, "other.py", options=QUIET)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "not patched" not in done.stderr


def test_target_that_is_missing(place):
    """A target that does not exist: one warning names the nearest that does; strict stops the program."""
    (place / "plan.toml").write_text((place / "plan.toml").read_text().replace("subject:work", "subject:wrok"))
    done = run(place, sys.executable, "other.py", options=(*QUIET, "--steps", "1"))
    assert (done.returncode, done.stdout) == (0, "child bare\n")
    assert done.stderr.count("subject:wrok") == 1
    assert "'work'" in done.stderr
    done = run(place, sys.executable, "other.py", options=(*QUIET, "--strict"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "PlanError" in done.stderr


def test_without_profwin(place):
    """Where our package is broken or gone, the program runs, and one line says that it is not patched."""
    (place / "broken" / "profwin").mkdir(parents=True)
    (place / "broken" / "profwin" / "__init__.py").write_text("raise RuntimeError('broken')\n")
    code = "import sys; sys.path.insert(0, 'broken'); sys.path.insert(0, '.'); import subject; subject.say('child')"
    done = run(place, sys.executable, "-c", code, options=QUIET)
    assert (done.returncode, done.stdout) == (0, "child bare\n")
    assert done.stderr == "profwin: subject is not patched, the program goes on: RuntimeError: broken\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((sys.executable, "-I", "other.py"), "-I ignores what the environment says"),
        ((sys.executable, "-BE", "other.py"), "-E ignores what the environment says"),
        ((sys.executable, "-X", "utf8", "other.py"), "other.py itself defines no train, a target of plan ways"),
        ((sys.executable, "defines.py"), ""),
        ((sys.executable, "-m", "other"), ""),
        (("bash", "-c", ":"), "bash is no Python program"),
        (("./python_script",), ""),
    ],
)
def test_remarks(place, command, words):
    """What can be told before COMMAND runs is said: that it cannot be reached, or lacks a target in ``__main__``."""
    (place / "plan.toml").write_text(
        (place / "plan.toml").read_text() + '\n[[patch]]\ntarget = "__main__:train"\nrole = "stage"\n'
    )
    (place / "defines.py").write_text("def train():\n    pass\n")
    (place / "python_script").write_text(f"#!{sys.executable}\n")
    (place / "python_script").chmod(0o755)
    said = [line for line in run(place, *command).stderr.splitlines() if line.startswith("profwin run: ")]
    assert len(said) == 1 + bool(words)
    assert words in said[-1]
