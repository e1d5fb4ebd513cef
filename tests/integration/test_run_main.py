"""Targets in ``__main__``: scripts, modules run with -m, what multiprocessing runs again, classes that travel."""

from __future__ import annotations

import sys

import pytest
from run_support import programs, run

QUIET = ("--quiet",)
PLAN = """
format = 1
name = "main"

[[patch]]
target = "__main__:train"
role = "stage"

[[patch]]
target = "__main__:Trainer.fit_*"
role = "stage"
optional = true

[[patch]]
target = "package.__main__:update"
role = "stage"

[[patch]]
target = "package.tool:update"
role = "stage"
"""
SCRIPT = '''
"""A script with globals, classes and a pool."""
import functools, inspect, pickle, sys
import os

MARK = "__profwin_patch__"

def registered(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    inner.registered = True
    return inner

def train(number, *, scale=1):
    """Train."""
    return number * scale

class Trainer:
    rate = 3

    @registered
    def fit_one(self, number):
        return self.rate * number

    @staticmethod
    def fit_two(number):
        return number

    @classmethod
    async def fit_three(cls, number):
        return number

    def other(self):
        pass

if True:
    class Late(Trainer):
        def fit_late(self):
            pass

def state(_=None):
    kinds = [train, Trainer.fit_one, Trainer.fit_two, Trainer.fit_three, Trainer.other, Late.fit_late]
    return [MARK in vars(getattr(kind, "__func__", kind)) for kind in kinds]

def main():
    print(state())
    assert train(2, scale=2) == 4 and Trainer().fit_one(2) == 6 and Trainer.fit_two(2) == 2
    if MARK in vars(Trainer.fit_one):
        assert Trainer.fit_one.__wrapped__.__code__.co_name == "inner", "the target is what the decorators made"
    assert Trainer.fit_one.registered and inspect.iscoroutinefunction(Trainer.fit_three)
    assert str(inspect.signature(train)) == "(number, *, scale=1)" and train.__doc__ == "Train."
    assert inspect.getsource(train).startswith("def train"), inspect.getsource(train)
    assert inspect.getsource(Trainer.fit_one).lstrip().startswith("@registered")
    assert pickle.loads(pickle.dumps(train)) is train
    assert type(pickle.loads(pickle.dumps(Trainer()))) is Trainer
    assert sys.modules["__main__"].train is train and train.__module__ == "__main__"
    if len(sys.argv) > 1:
        import multiprocessing
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(1) as pool:
            print(pool.apply(state), pool.apply(train, (3,)), pool.apply(type(Trainer()), ()).rate)
            pool.close()
            pool.join()

if __name__ == "__main__":
    main()
'''
PATCHED = "[True, True, True, True, False, False]"


@pytest.fixture
def place(tmp_path):
    """Give a directory with the programs."""
    programs(tmp_path)
    (tmp_path / "main.toml").write_text(PLAN)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def output(done):
    """Give the lines of a program that ran well."""
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("command", [("script.py",), ("-m", "script")], ids=" ".join)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_program(place, command, method):
    """Functions and methods of a program are patched where they are defined, also where its file runs again."""
    done = run(place, sys.executable, *command, method, options=QUIET, plan="main.toml")
    assert output(done) == [PATCHED, f"{PATCHED} 3 3"]


def test_runpy_meanwhile(place):
    """Another script that the program runs by runpy, where multiprocessing runs the program again, is itself."""
    (place / "inner.py").write_text("VALUE = 'inner'\n")
    (place / "outer.py").write_text(
        "import multiprocessing, runpy\n"
        "VALUE = runpy.run_path('inner.py')['VALUE']\ndef train(): pass\ndef show(): print(VALUE)\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=show)\n"
        "    process.start()\n    process.join()\n"
    )
    assert output(run(place, sys.executable, "outer.py", options=QUIET, plan="main.toml")) == ["inner"]


def test_child(place):
    """A script that a program starts is patched too, with its own ``__main__``."""
    code = "import subprocess, sys; subprocess.run([sys.executable, 'script.py'], check=True)"
    assert output(run(place, sys.executable, "-c", code, options=QUIET, plan="main.toml")) == [PATCHED]


def test_torchrun(place):
    """The script of each rank is."""
    pytest.importorskip("torch", reason="torch is not installed: torchrun cannot be tried")
    command = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "script.py")
    done = run(place, sys.executable, *command, options=QUIET, plan="main.toml")
    assert done.stdout.count(PATCHED) == 2, done.stderr  # a line and its end are two writes: the ranks' may mix


@pytest.mark.parametrize("command", [("-m", "package"), ("-m", "package.tool")], ids=" ".join)
def test_module(place, command):
    """A target may name the module that runs as ``__main__``."""
    (place / "package").mkdir()
    (place / "package" / "__init__.py").write_text("")
    text = "def update(): pass\nprint('__profwin_patch__' in vars(update), __name__, __spec__.name)\n"
    for name in ("__main__", "tool"):
        (place / "package" / f"{name}.py").write_text(text)
    name = "package.__main__" if command == ("-m", "package") else "package.tool"
    assert output(run(place, sys.executable, *command, options=QUIET, plan="main.toml")) == [f"True __main__ {name}"]


def test_module_without_its_target(place):
    """A target that names the module that runs, which lacks it: one warning with the nearest; strict stops it."""
    (place / "package").mkdir()
    (place / "package" / "__init__.py").write_text("")
    (place / "package" / "tool.py").write_text("def updated(): pass\nprint(1)\n")
    done = run(place, sys.executable, "-m", "package.tool", options=QUIET, plan="main.toml")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.count("package.tool:update") == 1
    assert "the nearest is 'updated'" in done.stderr
    done = run(place, sys.executable, "-m", "package.tool", options=(*QUIET, "--strict"), plan="main.toml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "PlanError" in done.stderr


def test_other_scripts(place):
    """A script that has no such name is run by Python itself, as it is."""
    (place / "free.py").write_text("import sys; print(sys._getframe().f_back, 'ast' in sys.modules)\n")
    assert output(run(place, sys.executable, "free.py", options=QUIET, plan="main.toml")) == ["None False"]


def test_does_not_fit(place):
    """A target that lacks a parameter: the program runs, and says once that it is not profiled; strict stops it."""
    (place / "main.toml").write_text(
        'format = 1\nname = "main"\n[[patch]]\ntarget = "__main__:train"\nrole = "step"\nstep = "epoch"\n'
    )
    done = run(place, sys.executable, "script.py", options=(*QUIET, "--steps", "1"), plan="main.toml")
    assert done.returncode == 0
    assert done.stdout == "[False, False, False, False, False, False]\n"
    assert done.stderr.count("profwin") == 1
    assert "begins at 'epoch', which is no parameter of __main__:train(number, scale)" in done.stderr
    done = run(place, sys.executable, "script.py", options=(*QUIET, "--strict"), plan="main.toml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "PlanError" in done.stderr


def test_recorded(place):
    """What is patched so is recorded."""
    (place / "steps.py").write_text(
        "import profwin\ndef train(step):\n    pass\nfor step in range(4):\n"
        "    with profwin.training_step(step):\n        train(step)\n"
    )
    options = (*QUIET, "--steps", "1-2", "--devices", "pretend:0", "--output", "out", "--run", "r")
    assert output(run(place, sys.executable, "steps.py", options=options, plan="main.toml")) == []
    (journal,) = (place / "out" / "r" / "journal").iterdir()
    assert journal.read_text().count('"what":"stage","name":"train"') == 2
