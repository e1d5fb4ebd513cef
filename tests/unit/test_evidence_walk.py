"""The walk over a tree: every entry is told, nothing blocks, loops or raises."""

from __future__ import annotations

import json
import os
import socket
from unittest import mock

import pytest
from ascend_support import info, make
from nsys_support import whole, write

from profwin.evidence import walk as module
from profwin.evidence.walk import open_recordings, walk

TRACE = json.dumps(
    {"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}
)


def kinds(root):
    """Return kind and codes of each entry, by path."""
    return {one.path: (one.kind, *(finding.code.name for finding in one.findings)) for one in walk(str(root))}


def test_each_kind_is_told_by_its_content(tmp_path):
    """Names do not matter: here they all lie or say nothing."""
    (tmp_path / "a").write_text(TRACE)
    write(tmp_path / "b.json", whole())
    (tmp_path / "c.sqlite").write_text(f"[{json.dumps({'ph': 'X', 'name': 'a', 'ts': 1, 'dur': 2})}]")
    (tmp_path / "d").write_text('{"kind":"process","t":1,"schema":1}\n{"kind":"end","t":2}\n')
    (tmp_path / "manifest.json").write_text('{"schema": 1, "run": "r", "attempts": [0], "processes": []}')
    make(tmp_path, info(), name="e")
    (tmp_path / "f.log").write_text("hello")
    assert kinds(tmp_path) == {
        "a": ("kineto",), "b.json": ("nsys",), "c.sqlite": ("kineto",), "d": ("journal",), "e": ("ascend",),
        "f.log": ("text",), "manifest.json": ("manifest",),
    }  # fmt: skip
    assert [found.path for found in walk(str(tmp_path)) if found.reason] == ["d", "f.log", "manifest.json"]


def test_the_order_is_stable(tmp_path):
    """Sorted by name, with what is in a folder where the folder stands."""
    for name in ("b/z", "b/a", "a", "c", "b/m/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("hello")
    assert list(kinds(tmp_path)) == ["a", "b/a", "b/m/x", "b/z", "c"]


def test_special_files_are_named_and_not_opened(tmp_path):
    """Opening a FIFO would block for ever."""
    os.mkfifo(tmp_path / "fifo.json")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    os.symlink("/dev/zero", tmp_path / "zero.json")
    (tmp_path / "near.json").write_text(TRACE)
    assert kinds(tmp_path) == {
        "fifo.json": ("problem", "special-file"), "socket": ("problem", "special-file"),
        "zero.json": ("problem", "special-file"), "near.json": ("kineto",),
    }  # fmt: skip


def test_links(tmp_path):
    """Files outside are read, what lies inside is met once, loops and folders outside are not followed."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "in").mkdir(parents=True)
    outside.mkdir()
    (outside / "x.json").write_text(TRACE)
    (root / "in" / "a.json").write_text(TRACE)
    os.symlink(outside / "x.json", root / "read.json")
    os.symlink(root / "in" / "a.json", root / "latest.json")
    os.symlink(root, root / "in" / "up")
    os.symlink("self", root / "self")
    os.symlink(outside, root / "folder")
    os.symlink("gone", root / "dangling")
    assert kinds(root) == {
        "dangling": ("problem", "link-not-followed"), "folder": ("problem", "link-not-followed"),
        "in/a.json": ("kineto",), "read.json": ("kineto",), "self": ("problem", "link-not-followed"),
    }  # fmt: skip


def test_a_root_that_is_a_link_or_an_ascend_folder(tmp_path):
    """What the user names is looked into, whatever it is."""
    make(tmp_path, info(), name="x_ascend_pt")
    os.symlink(tmp_path / "x_ascend_pt", tmp_path / "link")
    assert kinds(tmp_path / "link") == {".": ("ascend",)}
    assert [recording.format for recording in open_recordings(str(tmp_path / "link"))] == ["ascend"]


def test_a_root_that_is_missing(tmp_path):
    """That is the caller's to report."""
    with pytest.raises(FileNotFoundError):
        list(walk(str(tmp_path / "none")))


@pytest.mark.parametrize("method", ["scandir", "open"])
def test_what_cannot_be_read_is_named(tmp_path, method):
    """Root may read everything, so the system's answer is played."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(TRACE)
    real = getattr(os, method)

    def refuse(path, *arguments, **named):
        if str(path).endswith({"scandir": "in", "open": "a.json"}[method]):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *arguments, **named)

    with mock.patch.object(os, method, refuse):
        found = kinds(tmp_path)
        (recording,) = open_recordings(str(tmp_path))
    assert found == {{"scandir": "in", "open": "in/a.json"}[method]: ("problem", "unreadable")}
    assert recording.findings[0].code.name == "unreadable"


def test_a_file_that_goes_while_it_is_looked_at(tmp_path):
    """Other processes may still be at work there."""
    (tmp_path / "a.json").write_text(TRACE)
    recordings = open_recordings(str(tmp_path))
    with mock.patch.object(module.kineto, "read", side_effect=FileNotFoundError(2, "No such file or directory")):
        (recording,) = recordings
    assert [finding.code.name for finding in recording.findings] == ["unreadable"]


def test_a_folder_named_like_a_trace(tmp_path):
    """It is named, and looked into."""
    (tmp_path / "a.pt.trace.json.gz").mkdir()
    (tmp_path / "a.pt.trace.json.gz" / "b.json").write_text(TRACE)
    (tmp_path / "plain").mkdir()
    assert kinds(tmp_path) == {
        "a.pt.trace.json.gz": ("problem", "folder-named-like-trace"), "a.pt.trace.json.gz/b.json": ("kineto",)
    }  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [("a.json", "empty-file"), ("a.jsonl", "empty-file"), ("a.log", None)])
def test_empty_files(tmp_path, name, code):
    """A trace without content is one that is missing; an empty log is nothing."""
    (tmp_path / name).touch()
    assert kinds(tmp_path) == {name: ("empty", code) if code else ("empty",)}


def test_leftover_temporary_files(tmp_path):
    """What a killed writer left is no trace, though its content looks like one; the twin has its final name."""
    for name in ("a.json.tmp", ".b.tmp.json", "c.tmp.json.gz", "d.json"):
        (tmp_path / name).write_text(TRACE)
    leftover = ("leftover", "leftover-temporary")
    assert kinds(tmp_path) == {
        ".b.tmp.json": leftover, "a.json.tmp": leftover, "c.tmp.json.gz": ("kineto",), "d.json": ("kineto",)
    }  # fmt: skip


def test_a_very_deep_tree(tmp_path, monkeypatch):
    """Deeper than is looked into: named once; the twin at the limit is read."""
    monkeypatch.setattr(module, "DEPTH", 5)
    (tmp_path / "1/2/3/4/5").mkdir(parents=True)
    (tmp_path / "1/2/3/4/a.json").write_text(TRACE)
    assert kinds(tmp_path) == {"1/2/3/4/5": ("problem", "too-deep"), "1/2/3/4/a.json": ("kineto",)}


def test_a_tree_deeper_than_paths_may_be_long(tmp_path):
    """Such trees can be made, one folder from inside the other, and raise nothing."""
    inner = descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("x" * 200, dir_fd=descriptor)
        inner = os.open("x" * 200, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    assert list(kinds(tmp_path).values()) == [("problem", "unreadable")]


@pytest.mark.parametrize(("limit", "named"), [("ENTRIES", True), ("FILES", True), (None, False)])
def test_very_many_files(tmp_path, monkeypatch, limit, named):
    """Memory is bounded: beyond the limit the rest is named, not looked at."""
    if limit:
        monkeypatch.setattr(module, limit, 10)
    for number in range(11):
        (tmp_path / f"{number:02}.txt").write_text("x")
    found = list(walk(str(tmp_path)))
    assert (found[0].kind == "problem" and found[0].findings[0].code.name == "too-many-files") is named
    assert len(found) == 11


def test_odd_names(tmp_path):
    """Control characters and bytes that are no UTF-8 are named, and what is in the file counts."""
    for name in (b"a\n.json", b"b\xff.json", b"c\x1b[31m.json"):
        with open(os.path.join(os.fsencode(tmp_path), name), "w") as file:
            file.write(TRACE)
    (tmp_path / "ä ö.json").write_text(TRACE)
    found = [(one.kind, one.path) for one in walk(str(tmp_path))]
    assert [kind for kind, _ in found] == ["problem", "kineto"] * 3 + ["kineto"]
    assert all(recording.format for recording in open_recordings(str(tmp_path)))


def test_raw_data_of_cann_alone(tmp_path):
    """A PROF_ folder outside an *_ascend_pt folder is one entry, and named; the twin is any folder of such a name."""
    (tmp_path / "PROF_000001_20261130_ABC" / "host" / "data").mkdir(parents=True)
    (tmp_path / "PROF_000002_20261130_ABC").mkdir()
    assert kinds(tmp_path) == {"PROF_000001_20261130_ABC": ("msprof", "msprof-raw")}


def test_recordings_are_read(tmp_path):
    """The entries that have a reader are read, those that are only named come as findings, text does not come."""
    (tmp_path / "a.json").write_text(TRACE)
    write(tmp_path / "b.sqlite", whole())
    (tmp_path / "c.qdstrm").write_bytes(b"\x01\0")
    (tmp_path / "d.log").write_text("hello")
    found = [(one.format, one.path) for one in open_recordings(str(tmp_path))]
    assert found == [("kineto", "a.json"), ("nsys", "b.sqlite"), ("nsys-stream", "c.qdstrm")]
