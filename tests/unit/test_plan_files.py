"""Finding plans: by the name of a shipped one, by path, several at once; and every file that is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profwin import PlanError
from profwin.patch import reading
from profwin.patch.reading import find, read_plan, shipped

PLAN = 'format = 1\nname = "{name}"\n[[patch]]\ntarget = "{target}"\nrole = "stage"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Ship the plans `first` and `second`, and nothing else."""
    for name in ("first", "second"):
        (tmp_path / f"{name}.toml").write_text(PLAN.format(name=name, target=f"module:{name}"))
    monkeypatch.setattr(reading, "_FOLDER", tmp_path)
    return tmp_path


def test_shipped_plans_are_sound():
    """Every plan that is shipped is one, and is called like its file."""
    assert [read_plan(name).name for name in shipped()] == list(shipped())


def test_plans_are_found_by_name_and_path(folder, monkeypatch):
    """A name, a path, a list and names with commas between them give the plans in their order."""
    file = folder / "own.toml"
    file.write_text(PLAN.format(name="own", target="module:own"))
    (folder / "a,b.toml").write_text(PLAN.format(name="comma", target="module:comma"))
    monkeypatch.chdir(folder)
    cases = {
        "first": ["first"],
        "second, first": ["second", "first"],
        f"first,{file}": ["first", "own"],
        "own.toml": ["own"],
        "a,b.toml": ["comma"],
    }
    for given, names in cases.items():
        assert [plan.name for plan in find(given)] == names, given
    assert [plan.name for plan in find(["first", file])] == ["first", "own"]
    assert read_plan(Path("own.toml")).name == "own"


def test_a_shipped_plan_is_not_hidden_by_a_file(folder, tmp_path_factory, monkeypatch):
    """A name means the shipped plan also where a file of that name lies about; a path means the file."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "first").write_text(PLAN.format(name="file", target="module:file"))
    monkeypatch.chdir(elsewhere)
    assert folder.is_dir()
    assert [plan.name for plan in find("first,./first")] == ["first", "file"]


def test_plans_with_the_same_target_are_refused(folder):
    """Two plans of which each has a role for a target are not taken together, nor is one twice."""
    (folder / "third.toml").write_text(PLAN.format(name="third", target="module:first"))
    for names, said in (("first,third", "has a role already: stage"), (["first", "first"], "another plan too")):
        with pytest.raises(PlanError, match=said):
            find(names)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("frist", "'first'"),
        ("first,secnod", "'second'"),
        ("", "first, second"),
        (" , ", "first, second"),
        ([], "first, second"),
        ("nowhere/plan.toml", "No such file"),
        ("nowhere.toml", "No such file"),
        ("\0.toml", "null"),
        ("\udcff.toml", "No such file"),
        ("x" * 5000 + ".toml", "too long"),
        ("\x1b[2J", "x1b"),
        (".", "is no file"),
        (os.devnull, "is no file"),
    ],
)
def test_what_is_not_there_is_said(names, said):
    """A name that is no plan's is told the nearest; a path that is no file's, why."""
    with pytest.raises(PlanError) as caught:
        find(names)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_files_that_cannot_be_plans_are_refused(tmp_path):
    """A huge file, one that is not text and a FIFO are refused without being read to their end, or at all."""
    huge, binary, fifo = tmp_path / "huge.toml", tmp_path / "binary.toml", tmp_path / "fifo.toml"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    binary.write_bytes(b"name = '\xff'")
    os.mkfifo(fifo)
    for path, said in ((huge, "more than"), (binary, "UTF-8"), (fifo, "is no file")):
        with pytest.raises(PlanError, match=said):
            find(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said(tmp_path):
    """A file that may not be read is said to be so."""
    path = tmp_path / "plan.toml"
    path.touch(mode=0)
    with pytest.raises(PlanError, match="Permission"):
        find(path)
