"""A file is opened without waiting and only if it is one, and what is wrong is said in the same words everywhere."""

from __future__ import annotations

import os

import pytest
from journal_builder import JournalBuilder

from profwin.evidence.file import open_regular, why
from profwin.evidence.run import load


def test_a_regular_file(tmp_path):
    """Its bytes are read, through a buffer or without one, and also where a link leads to it."""
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    (tmp_path / "link").symlink_to("a")
    with open_regular(tmp_path / "link") as file:
        assert file.readline() == b"one\n"
    with open_regular(str(tmp_path / "a"), buffering=0) as file:
        assert file.read(3) == b"one"


@pytest.mark.parametrize("what", ["fifo", "folder", "device"])
def test_what_is_no_regular_file(tmp_path, what):
    """A FIFO is not waited for, a device not read, a folder not listed; no descriptor is left open."""
    path = tmp_path / what
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="not a regular file") as caught:
        open_regular(path)
    assert os.listdir("/proc/self/fd") == before
    assert why(caught.value) == "not a regular file"


def test_words():
    """The system's errors are said without number and path, others as they are."""
    assert why(FileNotFoundError(2, "No such file or directory", "/a/b")) == "No such file or directory"
    assert why(OSError("of no number")) == "of no number"
    assert why(ValueError("odd")) == "odd"


def test_findings_say_it_alike(tmp_path):
    """A manifest and a journal that are FIFOs have one text, which names no place outside of what is checked."""
    JournalBuilder(tmp_path).end().save()
    os.mkfifo(tmp_path / "manifest.json")
    os.mkfifo(tmp_path / "journal" / "other.jsonl")
    found = {each.file: each.detail for each in load(str(tmp_path)).findings}
    assert found == {
        "manifest.json": "not a regular file", os.path.join("journal", "other.jsonl"): "not a regular file"
    }  # fmt: skip
