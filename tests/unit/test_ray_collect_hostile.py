"""Nodes that lie about their files: nothing outside of the folder changes, whatever they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray_collect_support import Near, collected, tree

from profwin.ray.collecting.names import DEEPEST, beside, checked
from profwin.ray.collecting.source import Source, open_below

BAD = [
    "", "/etc/x", "..", "../x", "a/../x", "a/..", "./a", "a//b", "a/", "a\0b", "\ud800", "x" * 256, "é" * 128,
    "/".join("a" * (DEEPEST + 1)), "a.part", ".part", None, 3, b"a", ("a",),
]  # fmt: skip


class Liar:
    """A source that lists whatever it is told to, and reads as its answers say.

    Args:
        entries: of the listing.
        answer: to every read.
        runs: that it has.
    """

    def __init__(self, entries, answer=None, runs=("run",)):
        self._entries, self._answer, self._runs = entries, answer, runs

    def describe(self, given, default):
        """Name the runs."""
        return {"root": "/nowhere", "runs": dict.fromkeys(self._runs, 1)}

    def begin(self, folder, marker):
        """Say that the folder is another one."""
        return False

    def page(self, most):
        """List all, once."""
        entries, self._entries = self._entries, []
        return entries

    def read(self, folder, path, key, offset, length):
        """Give what was asked for, or what it was told to."""
        return (b"x" * length, 1 << 40, 1) if self._answer is None else self._answer

    def digest(self, *arguments):
        """Agree with nothing."""
        return "x"


@pytest.mark.parametrize("path", BAD, ids=repr)
def test_bad_names_are_refused(path):
    """A name that leaves the folder, or is none, is refused."""
    with pytest.raises(ValueError, match=" "):
        checked(path)


@given(st.one_of(st.text(), st.lists(st.sampled_from(["..", ".", "a", "", "\0", "b/c", "é", "\udcff"])).map("/".join)))
def test_accepted_names_stay_below(path):
    """A name that is accepted is one of a file below the folder, and no other."""
    try:
        parts = checked(path)
    except ValueError:
        return
    folder = "/some/folder"
    whole = os.path.join(folder, *parts)
    assert os.path.normpath(whole) == whole
    assert whole.startswith(folder + "/")
    assert os.fsencode(whole).decode(errors="surrogateescape") == whole


@given(st.text(min_size=1).filter(lambda name: "/" not in name and "\0" not in name))
def test_other_names_are_others(name):
    """The names beside one differ from it and each other, and keep its last extension."""
    names = [each for each, _ in zip(beside(name, "host"), range(4), strict=False)]
    assert names[0] == name
    assert len(set(names)) == 4
    assert all(os.path.splitext(each)[1] == os.path.splitext(name)[1] for each in names) or "." not in name[1:]


def test_a_lying_listing(tmp_path):
    """Of a listing full of lies what is a name of a file below is made below, and nothing else anywhere."""
    lies = [(path, 3, 1, 1, 1) for path in BAD]
    lies += [("good", 3, 1, 1, 1), ("good/below", 3, 1, 1, 1), ("journal/j.jsonl", 3, 1, 1, 1), ("journal", 3, 1, 1, 1)]
    lies += [
        ("negative", -1, 1, 1, 1), ("huge", 1 << 63, 1, 1, 1), ("text", "3", 1, 1, 1), ("true", True, 1, 1, 1),
        ("late", 3, 1 << 63, 1, 1), ("short",), "text", 7, None, [], ("two", "a reason"), ("four", 1, 1, 1),
    ]  # fmt: skip
    (tmp_path / "x").write_text("mine")
    result = collected(tmp_path / "a/b/all", Near(tmp_path, "h", Liar(lies)))
    made = set(tree(tmp_path))
    names = ("good", "good.part", "good/below", "journal", "journal.part", "journal/j.jsonl")
    assert made - {"x"} <= {f"a/b/all/run/{name}" for name in names}
    assert (tmp_path / "x").read_text() == "mine"
    assert not result.whole
    assert {"run/good", "run/good/below"} & set(result.missing)
    assert {f"{path!r} of node-h" for path in BAD} <= set(result.missing)


@pytest.mark.parametrize("name", ["..", "/etc", "a/b", ""])
def test_a_lying_run(tmp_path, name):
    """A run whose name leaves the folder is none."""
    result = collected(tmp_path / "all", Near(tmp_path, "h", Liar([("x", 1, 1, 1, 1)], runs=(name,))))
    assert "talks nonsense" in result.missing["node node-h"]
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "answer",
    [
        (b"xxxx", 3, 1),
        (b"x", 3, 1),
        ("xxx", 3, 1),
        (b"xxx",),
        (b"xxx", 2, 1),
        (b"xxx", 3, 2),
        None,
        3,
        (None, "no"),
        (),
    ],
    ids=repr,
)
def test_lying_answers(tmp_path, answer):
    """A piece that is not what was asked for makes no file."""
    source = Liar([("a", 3, 1, 1, 1)], answer=3 if answer is None else answer)
    result = collected(tmp_path / "all", Near(tmp_path, "h", source))
    assert list(result.missing) == ["run/a"]
    assert tree(tmp_path) in ({"all/run/a.part": b""}, {})


def test_an_endless_listing(tmp_path, monkeypatch):
    """A listing without end is cut off, and said."""
    from profwin.ray.collecting import giver

    class Endless(Liar):
        def page(self, most):
            self.number = getattr(self, "number", 0) + 1
            return [(f"f{self.number}-{each}", 0, 1, 1, 1) for each in range(most)]

    monkeypatch.setattr(giver, "MOST_ENTRIES", 5)
    monkeypatch.setattr(giver, "PAGE", 2)
    result = collected(tmp_path / "all", Near(tmp_path, "h", Endless([])))
    assert result.files == 6
    assert "not looked at" in result.missing["… of node-h"]


@given(st.text(min_size=1, max_size=20))
def test_sources_read_below_their_folder_alone(name):
    """What a source is asked for is opened below the folder, or not at all."""
    folder = Path(__file__).parent / "nothing_is_here"
    with pytest.raises((OSError, ValueError)):
        open_below(str(folder), name)
    assert Source().read(str(folder.parent), "../unit/test_ray_collecting.py", (0, 0), 0, 1)[0] is None


def test_sources_follow_no_links(tmp_path):
    """Neither a link in the place of a file nor one in the place of a folder is followed, nor does a FIFO block."""
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")
    for name in ("link", "up/secret", "../secret", "up/../secret", "fifo", "up"):
        with pytest.raises(OSError, match=r"."):
            open_below(str(folder), name)
    (tmp_path / "alias").symlink_to(folder)
    (folder / "file").write_text("data")
    descriptor, status = open_below(str(tmp_path / "alias"), "file")
    os.close(descriptor)
    assert status.st_size == 4
