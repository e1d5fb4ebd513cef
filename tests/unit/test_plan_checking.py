"""Checking plans against what is installed: versions, targets, parameters; and the command that prints it."""

from __future__ import annotations

import json
import sys

import pytest
from plan_text import PLAN

from profwin.cli import main
from profwin.patch import reading, versions
from profwin.patch.checking import check
from profwin.patch.parsing import parse
from profwin.patch.paths import of_configure, of_patch, unfit

MODULE = """
print("imported")

class Trainer:
    def fit(self, config, *, mode="train"): ...
    def generate(self, prompts): ...
    def open(self, **options): ...
    @classmethod
    def made(cls, size): ...
"""


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """Make the module `plan_trainer` importable from the working directory, and from nowhere else."""
    (tmp_path / "plan_trainer.py").write_text(MODULE)
    (tmp_path / "plan_broken.py").write_text("import plan_missing_part\n")
    (tmp_path / "plan_leaving.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("plan_trainer", None)


def plan(*patches, **parts):
    """Return a plan of patches."""
    return parse({"format": 1, "name": "mine", "patch": list(patches)} | parts)


def stage(target, **keys):
    """Return the table of a stage."""
    return {"target": target, "role": "stage", **keys}


def checked(trainer, monkeypatch, *plans):
    """Return what checking plans finds where the trainer can be imported."""
    monkeypatch.syspath_prepend(str(trainer))
    return check(plans)


def test_a_plan_that_fits(trainer, monkeypatch, capsys):
    """Targets, paths and settings that exist are no problem; what the module prints goes to the error output."""
    (result,) = checked(
        trainer,
        monkeypatch,
        plan(
            {"target": "plan_trainer:Trainer.generate", "role": "window", "step": "self.step", "when": "prompts.0"},
            stage("plan_trainer:Trainer.open", when="anything.at.all"),
            stage("__main__:train"),
            stage("plan_trainer:Trainer.sync", optional=True),
            stage("plan_nowhere:f", optional=True),
            configure={"target": "plan_trainer:Trainer.fit", "settings": {"steps": "config.steps"}},
        ),
    )
    assert not result.problems
    assert result.matches == 3
    assert all(word in note for word, note in zip(("program", "sync", "plan_nowhere"), result.notes, strict=True))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "imported\n")


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (stage("plan_trainer:Trainer.genrate"), "'generate'"),
        (stage("plan_trianer:Trainer.fit"), "no module 'plan_trianer'"),
        (stage("json.decodr:f"), "'decoder'"),
        (stage("plan_broken:f"), "plan_missing_part"),
        (stage("plan_leaving:f"), "SystemExit: 3"),
        (stage("plan_trainer:Trainer.fit", when="conf.steps"), "patch[0].when[0]='conf.steps'"),
        (stage("plan_trainer:Trainer.fit", when="confg.steps"), "'config'"),
        (stage("plan_trainer:Trainer.made", unless=["cls.x", "siz"]), "patch[0].unless[1]='siz'"),
        (stage("plan_trainer:Trainer.*", devices="config.x"), "Trainer.generate(self, prompts)"),
    ],
)
def test_what_does_not_fit_is_named(trainer, monkeypatch, patch, said):
    """A target, module or parameter that is not there is a problem that names the nearest."""
    (result,) = checked(trainer, monkeypatch, plan(patch))
    assert any(said in problem for problem in result.problems), result.problems


def test_a_missing_module_is_said_once(trainer, monkeypatch):
    """Where a package is not there, that is one problem for all of its targets."""
    targets = [stage(f"plan_nowhere.part{index}:f") for index in range(3)]
    (result,) = checked(trainer, monkeypatch, plan(*targets))
    assert len(result.problems) == 1
    assert "part0:f' and 2 more: there is no module 'plan_nowhere'" in result.problems[0]


def test_two_patterns_that_meet_are_two_roles(trainer, monkeypatch):
    """Where two targets, also of two plans, are the same object, that is a problem."""
    first = plan(stage("plan_trainer:Trainer.fit"))
    second = plan(stage("plan_trainer:Trainer.f*"), name="second")
    results = checked(trainer, monkeypatch, first, second)
    assert not results[0].problems
    assert "two roles" in results[1].problems[0]


def test_events_bring_the_paths_of_their_loop():
    """A loop's paths begin at parameters of every target whose events it has."""
    made = plan(
        {"target": "m:f", "role": "events", "after": [{"event": "step_begins", "number": "return.step", "when": "x"}]},
        loop=[{"mode": "sync", "owner": "trainer", "engine": "self.llm", "devices": ["pretend:0"]}],
        configure={"target": "m:f", "settings": {"steps": "conf.steps"}},
    )

    def target(trainer, config): ...

    errors = unfit(made, "m:f", target, of_patch(made, made.patches[0]))
    assert [error.place for error in errors] == ["patch[0].after[0].when[0]", "loop[0].engine"]
    assert [error.remedy for error in unfit(made, "m:f", target, of_configure(made))] == ["the nearest is 'config'"]
    assert not unfit(made, "m:f", max, of_configure(made)), "written in C, it does not say what it takes"


@pytest.mark.parametrize(
    ("found", "bounds", "said"),
    [
        ("1.16.0", ">=1.16,<2", None),
        ("1.17.0.dev1", ">=1.16,<2", None),
        ("1.15", ">=1.16,<2", "1.15 is installed"),
        (None, ">=1", "not installed"),
        ("git-1234", ">=1", "no version"),
        ("anything", None, None),
    ],
)
def test_versions_are_compared(monkeypatch, found, bounds, said):
    """A version outside the bounds, one that cannot be compared and a missing package are said; others are not."""
    monkeypatch.setattr(versions, "installed", lambda _name: found)
    sentences = versions.outside(plan(stage("m:f"), package=[{"name": "lib", "versions": bounds}]))
    assert bool(sentences) is (said is not None)
    assert said is None or said in sentences[0]


def test_without_packaging_versions_are_not_compared(monkeypatch):
    """Where `packaging` is not installed, a plan is read all the same and its bounds are said not to be compared."""
    monkeypatch.setitem(sys.modules, "packaging.specifiers", None)
    monkeypatch.setattr(versions, "installed", lambda _name: "1")
    made = plan(stage("m:f"), package=[{"name": "lib", "versions": ">=1"}])
    assert "profwin[patch]" in versions.outside(made)[0]


def test_what_is_installed_is_found():
    """The version of an installed package is known, and of one that is not there none."""
    assert versions.installed("pytest") == pytest.__version__
    assert versions.installed("no-such-package-anywhere") is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('format = 1\nname = "p"\n[[patch]]\ntarget = "plan_trainer:Trainer.fit"\nrole = "stage"', 0),
        ('format = 1\nname = "p"\n[[patch]]\ntarget = "plan_trainer:Trainer.fitt"\nrole = "stage"', 1),
        ('format = 1\nname = "p"\n[[patch]]\ntarget = "plan_trainer:Trainer.fit"\nrole = "stag"', 1),
        (None, 2),
    ],
    ids=["fits", "target", "role", "file"],
)
def test_the_command_says_whether_a_plan_fits(trainer, capsys, text, status):
    """`profwin plan check` exits 0, 1 or 2, imports from the working directory, and prints one JSON object."""
    if text is not None:
        (trainer / "own.toml").write_text(text)
    assert main(["plan", "check", "own.toml"]) == status
    out, err = capsys.readouterr()
    assert len((out + err).splitlines()) >= 1
    assert main(["plan", "check", "own.toml", "--json"]) == status
    out = capsys.readouterr().out
    assert (json.loads(out)["fits"] is (status == 0)) if out else status


def test_the_command_shows_plans(trainer, capsys, monkeypatch):
    """`profwin plan list` and `show` print what there is, as text and as JSON that is a plan again."""
    monkeypatch.setattr(reading, "_FOLDER", trainer)
    (trainer / "mine.toml").write_text(PLAN)
    assert main(["plan", "list"]) == 0
    assert "trainer-lib >=1.16,<2 (here: not installed)" in capsys.readouterr().out
    assert main(["plan", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plans"][0]["installed"] == {"trainer-lib": None}
    assert main(["plan", "show", "mine"]) == 0
    shown = capsys.readouterr().out
    for line in (
        "step = self.state.step + 1",
        "unless mode is 'eval'",
        "before: samples_in_hand",
        "loop sync: separate",
    ):
        assert line in shown
    assert main(["plan", "show", "mine", "--json"]) == 0
    assert parse(json.loads(capsys.readouterr().out)["plans"][0]) == reading.read_plan("mine")
    assert main(["plan", "show", "mien"]) == 2
    assert "'mine'" in capsys.readouterr().err
