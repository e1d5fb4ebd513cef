"""Collecting from sources in this process: what is fetched, what stays, and what is gone on with."""

from __future__ import annotations

import errno
import os

import pytest
from ray_collect_support import Near, collected, landed, tree, write

import profwin
from profwin.errors import SettingError
from profwin.ray.collect import _run, _source, _tell_of_dead
from profwin.ray.collecting import landing, transfer
from profwin.ray.collecting.result import Collected
from profwin.ray.collecting.source import Source
from profwin.ray.nodes import Node


@pytest.fixture
def nodes(tmp_path):
    """Return the output directories of two nodes, each with a journal and a trace of its own, one with the manifest."""
    first, second = tmp_path / "first", tmp_path / "second"
    write(first, journal__a_DOT_jsonl="1\n2\n", step_1__x_DOT_json=b"x" * 9, manifest_DOT_json="{}")
    write(second, journal__b_DOT_jsonl="3\n", step_1__y_DOT_json="")
    return first, second


@pytest.fixture
def small(monkeypatch):
    """Make pieces of ten bytes."""
    monkeypatch.setattr(transfer, "PIECE", 10)


def test_all_nodes_in_one_folder(nodes, tmp_path):
    """Every file is there as it was, with the time of its last change; the sources are as before."""
    before = [tree(node) for node in nodes]
    os.utime(nodes[0] / "run/journal/a.jsonl", ns=(5, 123_456_789))
    result = collected(tmp_path / "all", *(Near(node, node.name) for node in nodes))
    assert tree(tmp_path / "all") == landed(before[0] | before[1])
    assert [tree(node) for node in nodes] == before
    assert (tmp_path / "all/run/journal/a.jsonl").stat().st_mtime_ns == 123_456_789
    assert (result.whole, result.runs, result.files, result.bytes) == (True, ["run"], 5, 17)
    assert result.nodes == {"node-first": 15, "node-second": 2}


def test_again_reads_nothing(nodes, tmp_path):
    """A second time nothing is read."""
    collected(tmp_path / "all", *(Near(node, node.name) for node in nodes))
    givers = [Near(node, node.name) for node in nodes]
    result = collected(tmp_path / "all", *givers)
    assert {method for giver in givers for method in giver.asked} == {"describe", "begin", "page"}
    assert (result.whole, result.files, result.already, result.kept) == (True, 0, 5, 17)


def test_which_run(tmp_path):
    """The run that was written to last is collected, or the one that is named, or all; links are no runs."""
    for number, name in enumerate("abc"):
        write(tmp_path / "out", name, journal__j_DOT_jsonl=name)
        for path in (tmp_path / "out" / name / "journal/j.jsonl", tmp_path / "out" / name / "journal"):
            os.utime(path, (number, 10 - number if name == "c" else 20 + number))
    (tmp_path / "out/latest").symlink_to("c")
    (tmp_path / "out/other").mkdir()
    near = Near(tmp_path / "out", "h")
    assert collected(tmp_path / "1", near).runs == ["b"]
    assert collected(tmp_path / "2", near, run="a").runs == ["a"]
    assert collected(tmp_path / "3", near, every=True).runs == ["c", "a", "b"]
    for name in ("latest", "other", "z"):
        result = collected(tmp_path / "4", near, run=name)
        assert not result.whole
        assert "there: c, a, b" in result.missing[f"run {name}"]
    assert not (tmp_path / "4").exists() or not tree(tmp_path / "4")


def test_a_part_is_gone_on_with(tmp_path, small):
    """What a killed start has left is compared, kept, and not read again; what differs is read again."""
    write(tmp_path / "out", journal__j_DOT_jsonl="j", trace=bytes(range(95)))
    dying = Near(tmp_path / "out", "h")
    dying.dies = 6
    result = collected(tmp_path / "all", dying)
    assert list(result.missing) == ["run/trace", "node node-h"]
    part = tmp_path / "all/run/trace.part"
    assert part.read_bytes() == bytes(range(50))
    near = Near(tmp_path / "out", "h")
    assert collected(tmp_path / "all", near).kept == 51
    assert near.read == [("trace", offset) for offset in range(50, 95, 10)]
    assert (tmp_path / "all/run/trace").read_bytes() == bytes(range(95))
    assert not part.exists()


def test_a_wrong_part_is_read_again(tmp_path, small):
    """A part that the file does not begin with is given up, also one that is longer than the file."""
    write(tmp_path / "out", journal__j_DOT_jsonl="j", short="12345", long="1" * 25)
    write(tmp_path / "all", short_DOT_part="123456789", long_DOT_part="x" * 20)
    assert collected(tmp_path / "all", Near(tmp_path / "out", "h")).whole
    assert tree(tmp_path / "all/run") == {"journal/j.jsonl": b"j", "long": b"1" * 25, "short": b"12345"}


def test_a_journal_that_grows(tmp_path, monkeypatch, small):
    """A journal is taken as long as it was when it was listed, and continued the next time without being read again."""
    journal = write(tmp_path / "out", journal__j_DOT_jsonl="0123456789" * 2 + "ab") / "journal/j.jsonl"
    near = Near(tmp_path / "out", "h")
    wait = near.wait

    def grow(reference, seconds):
        if reference[0] == "read":
            with journal.open("a") as file:
                file.write("more")
        return wait(reference, seconds)

    monkeypatch.setattr(near, "wait", grow)
    assert collected(tmp_path / "all", near).whole
    there = tmp_path / "all/run/journal/j.jsonl"
    assert there.read_text() == "0123456789" * 2 + "ab"
    near = Near(tmp_path / "out", "h")
    result = collected(tmp_path / "all", near)
    assert there.read_text() == journal.read_text()
    assert near.read == [("journal/j.jsonl", 22), ("journal/j.jsonl", 32)]
    assert (result.bytes, result.kept) == (12, 22)


def test_a_shared_folder_is_read_once(nodes, tmp_path):
    """Nodes that see the same files give each once; where one of them is lost, another gives the rest."""
    givers = [Near(nodes[0], host) for host in ("a", "b")]
    givers[0].dies = 1
    result = collected(tmp_path / "all", *givers)
    assert tree(tmp_path / "all") == landed(tree(nodes[0]))
    assert len(givers[0].read) == 1
    assert len(givers[1].read) == 2
    assert list(result.missing) == ["node node-a"]
    assert "not answered" in result.missing["node node-a"]


def test_what_is_no_file_is_left_out(tmp_path):
    """Links, FIFOs and unfinished files at a source are named and not followed."""
    run = write(tmp_path / "out", journal__j_DOT_jsonl="j", x_DOT_part="half")
    (tmp_path / "secret").write_text("secret")
    (run / "link").symlink_to(tmp_path / "secret")
    (run / "folder").symlink_to(tmp_path)
    os.mkfifo(run / "fifo")
    result = collected(tmp_path / "all", Near(tmp_path / "out", "h"))
    assert tree(tmp_path / "all/run") == {"journal/j.jsonl": b"j"}
    assert len(result.missing) == 4
    assert not result.whole


def test_a_file_that_another_replaces(tmp_path, monkeypatch):
    """A file that has become another, or a link, or shorter, since it was listed is not taken; the rest is."""
    run = write(tmp_path / "out", journal__j_DOT_jsonl="j", one="12", two="34", three="56", four="78")
    (tmp_path / "secret").write_text("12")
    near = Near(tmp_path / "out", "h")
    ask, asked = near.ask, []

    def swap(method, *arguments):
        asked.append(method)
        if asked.count("read") == 1 and method == "read":
            (run / "one").unlink()
            (run / "one").symlink_to(tmp_path / "secret")
            when = (run / "two").stat().st_mtime_ns
            (run / "two").rename(run / "new")
            (run / "two").write_text("xx")
            os.utime(run / "two", ns=(when, when))
            (run / "three").write_text("5")
            (run / "four").unlink()
        return ask(method, *arguments)

    monkeypatch.setattr(near, "ask", swap)
    result = collected(tmp_path / "all", near)
    assert sorted(result.missing) == ["run/four", "run/one", "run/three", "run/two"]
    whole = {name: data for name, data in tree(tmp_path / "all/run").items() if not name.endswith(".part")}
    assert whole == {"journal/j.jsonl": b"j"}


def test_a_full_disk(tmp_path, monkeypatch, small):
    """A full disk ends it with an error; what is there stays for the next start."""
    write(tmp_path / "out", journal__j_DOT_jsonl="0123456789" * 3)
    written = os.pwrite

    def full(descriptor, data, offset):
        if offset >= 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(descriptor, data, offset)

    monkeypatch.setattr(landing.os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        collected(tmp_path / "all", Near(tmp_path / "out", "h"))
    monkeypatch.undo()
    near = Near(tmp_path / "out", "h")
    assert collected(tmp_path / "all", near).whole
    assert len(near.read) <= 3


def test_dead_nodes_are_said(tmp_path):
    """A dead node's files are missing, unless another node of its address was asked."""
    result = Collected(str(tmp_path), ["run"])
    nodes = [Node("a" * 9, "h", "10.0.0.1", True, ""), Node("b" * 9, "h", "10.0.0.1", False, "")]
    _tell_of_dead(result, nodes)
    assert result.whole
    assert len(result.notes) == 1
    _tell_of_dead(result, [*nodes, Node("c" * 9, "h", "10.0.0.2", False, "")])
    assert result.missing == {"node cccccccc (10.0.0.2)": "it is dead; its files stay there"}
    assert not result.whole


def test_where_a_node_looks(tmp_path, monkeypatch):
    """A node looks into the given directory, in which names are its own, else into its own, else into the default."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCRATCH", "scratch")
    write(tmp_path / "scratch", "r", journal__j_DOT_jsonl="")

    def look(given):
        found = Source().describe(given, str(tmp_path / "default"))
        return os.path.relpath(found["root"], tmp_path), list(found["runs"])

    assert look(f"{tmp_path}/$SCRATCH") == ("scratch", ["r"])
    assert look("~/out") == ("home/out", [])
    assert look(None) == ("default", [])
    monkeypatch.setenv("PROFWIN_OUTPUT", str(tmp_path / "own"))
    assert look(None) == ("own", [])


def test_what_is_asked_for(tmp_path, monkeypatch):
    """Without a source it is the session's, else what this process's variable says, else the nodes' own."""
    monkeypatch.chdir(tmp_path)
    assert _source(None) is None
    assert _run() is None
    monkeypatch.setenv("PROFWIN_OUTPUT", "variable")
    assert _source(None) == str(tmp_path / "variable")
    profwin.configure(steps="1", output=tmp_path / "session", run="r")
    assert (_source(None), _run()) == (str(tmp_path / "session"), "r")
    profwin.shutdown()
    assert _source("given/here") == str(tmp_path / "given/here")
    assert [_source(text) for text in ("~/x", "$X/y", "/z")] == ["~/x", "$X/y", "/z"]
    for text in ("", "a\0b"):
        with pytest.raises(SettingError):
            _source(text)
