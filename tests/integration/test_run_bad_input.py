"""What is wrong in a plan or a COMMAND: a clear error or note of ``profwin run``, and never a run patched in part."""

from __future__ import annotations

import json
import sys

import pytest
from check_support import codes
from run_support import run

SUBJECT = """
import math
from math import sqrt

class Rows(list):
    __slots__ = ("size",)

class Trainer:
    def __init__(self):
        self.sampler = lambda: 1

    @property
    def loss(self):
        return 2

    def generate(self, step):
        return 3

    def update(self):
        return 4

def work():
    return 5

default = Trainer()
import user
"""
USER = "from subject import work\n\ndef call():\n    return work()\n"
PROGRAM = """
import profwin, subject, user

def train(step):
    with profwin.training_step(step):
        trainer = subject.Trainer()
        print(trainer.update(), trainer.generate(step), trainer.loss, trainer.sampler(), subject.sqrt(4), user.call())

if __name__ == "__main__":
    train(1)
"""
PRINTED = "4 3 2 1 2.0 5\n"
GOOD = '[[patch]]\ntarget = "subject:Trainer.update"\nrole = "stage"\n'


def patch(target, role="stage", **more):
    """Give a patch of a plan."""
    return f'[[patch]]\ntarget = "{target}"\nrole = "{role}"\n' + "".join(f"{key} = {more[key]}\n" for key in more)


@pytest.fixture
def place(tmp_path):
    """Give a directory with a program and the module that it uses."""
    for name, text in {"subject.py": SUBJECT, "user.py": USER, "program.py": PROGRAM}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def follow(place, bad, *options, command=(sys.executable, "program.py")):
    """Run the program under a plan with a good patch and a bad one; return the process and the journals' records."""
    (place / "plan.toml").write_text(f'format = 1\nname = "bad"\n{GOOD}{bad}')
    options = ("--quiet", "--steps", "1", "--devices", "pretend:0", "--output", "out", *options)
    done = run(place, *command, options=options)
    journals = sorted((place / "out").glob("*/journal/*"))
    return done, [json.loads(line) for path in journals for line in path.read_text().splitlines()]


def recorded(records):
    """Give the names of what was recorded."""
    return [each["name"] for each in records if each["kind"] == "open"]


REFUSED = {
    "unknown key": (patch("subject:work", colour=1), "patch[1].colour=1 is no known key"),
    "bad path": (patch("subject:Trainer.generate", "window", step='"self.f()"'), "patch[1].step='self.f()' is no path"),
    "two roles": (patch("subject:Trainer.update", "span"), "has a role already: stage, in patch[0]"),
    "no target": (patch("subject.work"), "write module:qualname"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_refused_before_it_runs(place, wrong):
    """What can be told from the plan alone: exit status 2, one line, and nothing runs."""
    bad, words = REFUSED[wrong]
    done, records = follow(place, bad)
    assert (done.returncode, done.stdout, records) == (2, "", [])
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("profwin run: plan 'bad': ")
    assert words in done.stderr


def test_two_plans_with_one_target(place):
    """So is a target that another plan has."""
    (place / "other.toml").write_text(f'format = 1\nname = "other"\n{GOOD}')
    done, records = follow(place, "", "--plan", "other.toml")
    assert (done.returncode, done.stdout, records) == (2, "", [])
    assert "has a role already: stage, in patch[0]" in done.stderr
    assert "'other'" in done.stderr


NO_FIT = {
    "missing": (patch("subject:Trainer.updaet"), "Trainer has no 'updaet': the nearest is 'update'"),
    "two roles by wildcard": (patch("subject:Trainer.upd*", "span"), "is what patch[0] matches too"),
    "no parameter": (
        patch("subject:Trainer.generate", "window", step='"number"'),
        "'number', which is no parameter of subject:Trainer.generate(self, step): use one of self, step",
    ),
    "method in C": (patch("subject:Rows.append"), "is a C function of class Rows: name a Python method that calls it"),
    "type in C": (patch("math:float.hex"), "math has no 'float'"),
    "slot": (patch("subject:Rows.size"), "is an attribute of instances: name the method that its instances call"),
    "property": (patch("subject:Trainer.loss"), "is a property: name the function that it calls"),
    "instance attribute": (patch("subject:Trainer.sampler"), "is an attribute of instances of Trainer, not"),
    "instance": (patch("subject:default.update"), "name the method of its class: subject:Trainer."),
    "class": (patch("subject:Trainer"), "is a class: name one of its methods"),
    "missing in __main__": (
        patch("__main__:train", "span") + patch("__main__:traim"),
        "'__main__:traim' is not defined in the program that runs: the nearest is 'train'",
    ),
    "class in __main__": (
        patch("__main__:train", "span") + patch("__main__:Trainer.fit"), "is not defined in the program that runs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", NO_FIT)
def test_does_not_fit(place, wrong):
    """What only the code can tell: the program runs as ever, said once, a finding in the journal, nothing recorded."""
    bad, words = NO_FIT[wrong]
    done, records = follow(place, bad)
    assert (done.returncode, done.stdout) == (0, PRINTED)
    (said,) = done.stderr.splitlines()
    assert words in said
    assert said.endswith("; the run goes on and is not profiled")
    (finding,) = [each for each in records if each["kind"] == "finding"]
    assert finding["code"] == "plan-target"
    assert words in finding["detail"]
    assert not recorded(records)
    assert "plan-target" in codes(place / "out", mildest="error")


@pytest.mark.parametrize("wrong", NO_FIT)
def test_does_not_fit_strict(place, wrong):
    """Under ``--strict`` the program stops there, with the same words, before its training."""
    bad, words = NO_FIT[wrong]
    done, records = follow(place, bad, "--strict")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("profwin.errors.PlanError: plan 'bad': ")
    assert words in done.stderr
    assert not recorded(records)


def test_path_that_fails_in_a_call(place):
    """A path that leads nowhere in a call: such calls run unprofiled, said once; under strict it is raised."""
    bad = patch("subject:Trainer.generate", "window", step='"self.number"')
    done, records = follow(place, bad)
    assert (done.returncode, done.stdout) == (0, PRINTED)
    assert "'number' was not found in a Trainer" in done.stderr
    assert "such calls run unprofiled" in done.stderr
    assert [each["code"] for each in records if each["kind"] == "finding"] == ["plan-path"]
    assert recorded(records) == ["update"]
    done, _records = follow(place, bad, "--strict")
    assert (done.returncode, done.stdout) == (1, "")
    assert "PlanError" in done.stderr


def test_c_function(place):
    """A C function of a module is patched, by a proxy; whoever has bound it elsewhere is named."""
    pytest.importorskip("wrapt", reason="wrapt is not installed: C functions cannot be patched")
    done, records = follow(place, patch("subject:sqrt"))
    assert (done.returncode, done.stdout) == (0, PRINTED)
    assert recorded(records) == ["update", "sqrt"]
    assert "math.sqrt is the original of subject:sqrt" in done.stderr


def test_name_bound_before_the_patch(place):
    """A name that ``from x import f`` bound while x was loading is named; its calls are not recorded."""
    done, records = follow(place, patch("subject:work"))
    assert (done.returncode, done.stdout) == (0, PRINTED)
    (said,) = done.stderr.splitlines()
    words = "user.work is the original of subject:work, bound by `from … import` before it was patched"
    assert words in said
    assert "make it a target instead, as user:work" in said
    assert [each["code"] for each in records if each["kind"] == "finding"] == ["plan-note"]
    assert recorded(records) == ["update"]
    done, records = follow(place, patch("user:work"), "--run", "again")
    assert "work" in recorded(records), done.stderr


def test_module_that_does_not_exist(place):
    """Its name is in the journal, where the check finds it; what other modules have is followed."""
    done, records = follow(place, patch("subjet:work"))
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED, "")
    (finding,) = [each for each in records if each["kind"] == "finding"]
    assert (finding["code"], recorded(records)) == ("plan-note", ["update"])
    assert "this process finds no module 'subjet'" in finding["detail"]
    assert "plan-note" in codes(place / "out", mildest="remark")


def test_command_that_does_not_exist(place):
    """It is said as a shell says it; the exit status is 127."""
    done, records = follow(place, "", command=("no-such-program",))
    assert (done.returncode, done.stdout, records) == (127, "", [])
    assert done.stderr == "profwin run: no-such-program: there is no such program on PATH\n"


AGAIN = """
import os, sys
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])

import subject

def train(step):
    subject.Trainer().update()
    print(os.getpid(), step)

train(1)
"""


@pytest.mark.parametrize("children", ["all", "none"])
def test_command_that_executes_itself(place, children):
    """It is patched again, in the very same process, and recorded once; also where its children are not patched."""
    (place / "program.py").write_text(AGAIN)
    done, records = follow(place, patch("__main__:train", "step", step='"step"'), "--children", children)
    assert (done.returncode, done.stderr) == (0, "")
    (process,) = [each for each in records if each["kind"] == "process"]
    assert done.stdout == f"{process['pid']} 1\n"
    assert recorded(records) == ["update"]


def test_command_that_is_not_python(place):
    """It runs, and a line says that only what it starts can be patched; that is."""
    (place / "plan.toml").write_text(f'format = 1\nname = "bad"\n{GOOD}')
    options = ("--steps", "1", "--devices", "pretend:0", "--output", "out")
    done = run(place, "sh", "-c", f"echo first; {sys.executable} program.py; exit 3", options=options)
    assert (done.returncode, done.stdout) == (3, f"first\n{PRINTED}")
    assert "profwin run: sh is no Python program: only Python programs that it starts can be patched" in done.stderr
    (journal,) = (place / "out").glob("*/journal/*")
    assert recorded([json.loads(line) for line in journal.read_text().splitlines()]) == ["update"]
