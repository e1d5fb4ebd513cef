"""What a program must not notice of ``profwin run``: start-up, other start-up code, tools, import order, warnings."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import sys

import pytest
from run_support import bare, programs, run

QUIET = ("--quiet",)
STATE = """
import json, os, sys, warnings
names = list(sys.modules)
print(json.dumps({
    "modules": names, "filters": repr(warnings.filters), "argv": sys.argv, "orig_argv": sys.orig_argv,
    "flags": repr(sys.flags), "meta_path": [repr(type(finder)) for finder in sys.meta_path], "path": sys.path,
    "file": globals().get("__file__"), "name": __name__, "globals": sorted(globals()),
    "spec": __spec__ and [__spec__.name, __spec__.origin, type(__spec__.loader).__name__],
    "hook": sys.excepthook is sys.__excepthook__, "loader": type(__loader__).__name__, "doc": __doc__,
    "main": sys.modules["__main__"].__dict__ is globals(), "pid": os.getpid() > 0,
}))
def train():
    pass
"""
OURS = {"sitecustomize", "profwin_boot", "profwin_finder", "__future__"}
MAIN_PLAN = """
format = 1
name = "main"

[[patch]]
target = "__main__:train"
role = "stage"
"""


@pytest.fixture
def place(tmp_path):
    """Give a directory with the programs."""
    programs(tmp_path)
    (tmp_path / "main.toml").write_text(MAIN_PLAN)
    return tmp_path


@pytest.mark.parametrize("plan", ["plan.toml", "main.toml"])
@pytest.mark.parametrize(
    "command", [["state.py", "-x", "a b"], ["./state.py"], ["-m", "state", "y"], ["-W", "error", "state.py"]]
)
def test_state(place, plan, command):
    """A program finds the same process; the only additions are the finder, the folder on its path and its modules."""
    (place / "state.py").write_text(STATE)
    plain, patched = (
        bare(place, sys.executable, *command),
        run(place, sys.executable, *command, options=QUIET, plan=plan),
    )
    assert (plain.stderr, patched.stderr) == ("", "")
    before, after = json.loads(plain.stdout), json.loads(patched.stdout)
    if "sitecustomize" not in before["modules"]:
        before["modules"].append("sitecustomize")
    ours = [entry for entry in after["path"] if entry.endswith(f"patch{os.sep}boot")]
    assert len(ours) == 1
    assert [entry for entry in after.pop("path") if entry not in ours] == before.pop("path")
    assert after.pop("meta_path") == ["<class 'profwin_finder.Finder'>", *before.pop("meta_path")]
    modules, known = after.pop("modules"), before.pop("modules")
    if plan == "plan.toml":
        assert set(modules) - set(known) <= OURS
        assert [name for name in modules if name not in OURS] == [name for name in known if name not in OURS]
    assert after == before


@pytest.mark.parametrize("script", ["state.py", "linked.py", os.path.join("sub", "state.py")])
def test_script_of_targets(place, script):
    """A script that the runner runs has the path, the first directory and the file that Python gives it."""
    (place / "sub").mkdir()
    for file in (place / "state.py", place / "sub" / "state.py"):
        file.write_text("import sys\ndef train(): pass\nprint(sys.path[0], __file__, train.__code__.co_firstlineno)\n")
    (place / "linked.py").symlink_to(place / "sub" / "state.py")
    plain = bare(place, sys.executable, script)
    assert (
        run(place, sys.executable, script, options=QUIET, plan="main.toml").stdout.split()[:2]
        == plain.stdout.split()[:2]
    )


def test_sitecustomize_of_the_user(place):
    """The user's own sitecustomize runs, after ours, and is what ``sys.modules`` has."""
    (place / "own").mkdir()
    (place / "own" / "sitecustomize.py").write_text("import sys; sys.seen = [*sys.meta_path]; MINE = 1\n")
    code = (
        "import subject, sys, sitecustomize; subject.say('child')\n"
        "print(sitecustomize.MINE, type(sys.seen[0]).__name__, sys.modules['sitecustomize'].__file__)"
    )
    done = run(place, sys.executable, "-c", code, options=QUIET, env={"PYTHONPATH": str(place / "own")})
    assert done.stdout == f"child patched\n1 Finder {place / 'own' / 'sitecustomize.py'}\n"


@pytest.mark.parametrize("flag", ["", "-v"])
@pytest.mark.parametrize("error", ["1 / 0", "import does_not_exist", "raise SystemExit(3)"])
def test_sitecustomize_that_fails(place, error, flag):
    """A sitecustomize that raises prints what it prints without us, and we are there nevertheless."""
    (place / "own").mkdir()
    (place / "own" / "sitecustomize.py").write_text(f"{error}\n")
    python = f"{sys.executable} {flag} -c \"import subject; subject.say('child')\""
    command = ("bash", "-c", f"PYTHONPATH=$PYTHONPATH:own exec {python}")  # not on the launcher's own path
    plain, patched = bare(place, *command), run(place, *command, options=QUIET)
    assert patched.returncode == plain.returncode
    assert patched.stdout == plain.stdout.replace("bare", "patched")
    if error.startswith("raise"):
        assert patched.returncode != 0  # Python ends before it runs anything
    else:
        assert said(patched) == said(plain)


def said(done):
    """Give what was said on stderr, but for the list of imports that -v makes, and where in memory things are."""
    lines = done.stderr.splitlines()
    return [line for line in lines if not re.match("#|import|Python |Type ", line)]


def test_coverage(place):
    """A program under coverage is measured as ever, and patched."""
    if importlib.util.find_spec("coverage") is None:
        pytest.skip("coverage is not installed")
    run(place, sys.executable, "-m", "coverage", "run", "--data-file=patched", "other.py", options=QUIET)
    bare(place, sys.executable, "-m", "coverage", "run", "--data-file=plain", "other.py")
    reports = [
        bare(place, sys.executable, "-m", "coverage", "report", f"--data-file={name}", "--include=subject.py,other.py")
        for name in ("patched", "plain")
    ]
    assert reports[0].stdout == reports[1].stdout
    assert "subject.py" in reports[0].stdout


def test_pdb(place):
    """A program under pdb stops at its lines as ever, and is patched."""
    with open(place / "input", "w") as file:
        file.write("break subject.py:5\ncontinue\nwhere 1\nclear 1\ncontinue\nquit\n")
    (place / "debugged.py").write_text("import subject\nsubject.say('child')\nsubject.work()\n")
    said = []
    for start in (
        lambda *command, **more: run(place, *command, options=QUIET, **more),
        lambda *command, **more: bare(place, *command, **more),
    ):
        with open(place / "input") as file:
            said.append(start(sys.executable, "-m", "pdb", "debugged.py", stdin=file).stdout)
    assert "child patched" in said[0]
    assert "Breakpoint 1 at" in said[0]
    assert 'return "worked"' in said[0]


def test_traceback(place):
    """What an uncaught error prints, and the exit status, are what they are without us, lines and all."""
    text = "import subject\n\ndef train():\n    1 / 0\n\nif __name__ == '__main__':\n    subject.work()\n    train()\n"
    (place / "fails.py").write_text(text.replace("    train()", "    raise KeyError('x')"))
    for plan in ("plan.toml", "main.toml"):
        plain = bare(place, sys.executable, "fails.py")
        patched = run(place, sys.executable, "fails.py", options=QUIET, plan=plan)
        assert (patched.returncode, patched.stderr) == (plain.returncode, plain.stderr)
    (place / "broken.py").write_text("def train():\n    return (\n")
    plain = bare(place, sys.executable, "broken.py")
    patched = run(place, sys.executable, "broken.py", options=QUIET, plan="main.toml")
    assert (patched.returncode, patched.stderr) == (plain.returncode, plain.stderr)


@pytest.mark.parametrize("plan", ["plan.toml", "main.toml"])
@pytest.mark.parametrize(
    "ending", ["sys.exit(7)", "os._exit(9)", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 2)"]
)
def test_exit_status(place, plan, ending):
    """The exit status is COMMAND's, and a signal ends COMMAND itself: there is no process in between."""
    (place / "ends.py").write_text(f"import os, sys, signal\ndef train(): pass\n{ending}\n")
    plain = bare(place, sys.executable, "ends.py")
    patched = run(place, sys.executable, "ends.py", options=QUIET, plan=plan)
    assert (patched.returncode, patched.stderr) == (plain.returncode, plain.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals(place, number):
    """A signal to the launcher's process is COMMAND's: it is the same process."""
    import subprocess

    from run_support import ROOT

    (place / "waits.py").write_text(
        "import signal, sys\ndef train(): pass\n"
        f"def got(number, frame):\n    print('got', number)\n    sys.exit(5)\nsignal.signal({int(number)}, got)\n"
        "print('ready', flush=True)\nsignal.pause()\n"
    )
    command = [
        sys.executable,
        "-m",
        "profwin",
        "run",
        "--quiet",
        "--plan",
        "main.toml",
        "--",
        sys.executable,
        "waits.py",
    ]
    process = subprocess.Popen(
        command, cwd=place, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=50)[0] == f"got {int(number)}\n"
    assert process.returncode == 5


def test_pipes(place):
    """What Python ignores is not ignored in COMMAND: a broken pipe ends it as ever."""
    done = run(place, "bash", "-c", "trap -p; yes | head -1; echo ${PIPESTATUS[0]}", options=QUIET)
    assert done.stdout == "y\n141\n"
