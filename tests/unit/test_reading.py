"""What `check` does when reading or judging itself fails: a finding that names the file, and the rest is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from profwin.evidence import check as module
from profwin.evidence import reading
from profwin.evidence.check import check, make_options
from profwin.evidence.workers import Failure

if TYPE_CHECKING:
    from pathlib import Path

TRACE = {
    "schemaVersion": 1,
    "baseTimeNanoseconds": 1_796_000_000_000_000_000,
    "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "add", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2}],
    "traceName": "x",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two traces."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(TRACE))
    return tmp_path


def _codes(folder: Path) -> set[tuple[str, str]]:
    return {(each.code.name, each.file) for each in check(folder).findings if each.code.severity != "remark"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(5, "Input/output error"), "unreadable"),
        (KeyError("x"), "reader-failed"),
        (MemoryError(), "reader-failed"),
    ],
    ids=["disk", "mistake", "memory"],
)
def test_a_file_that_cannot_be_read(folder, monkeypatch, error, code):
    """A disk that fails, and a mistake of a reader, cost the file in question alone."""
    from profwin.evidence.formats import kineto

    whole = kineto.read

    def read(root: str, path: str) -> object:
        if path == "b.json":
            raise error
        return whole(root, path)

    assert _codes(folder) == set()
    monkeypatch.setattr(kineto, "read", read)
    assert _codes(folder) == {(code, "b.json")}
    assert [each.path for each in check(folder).recordings] == ["a.json"]


def test_a_killed_reader_is_a_finding(folder, monkeypatch):
    """A process that was killed over a file is named with the file."""

    def read_all(_function, jobs, _workers, _progress):
        return iter([(0, reading.read_one(*jobs[0].arguments)), (1, Failure("by SIGKILL", killed=True))])

    monkeypatch.setattr(reading, "read_all", read_all)
    assert _codes(folder) == {("reader-killed", "b.json")}


def test_a_search_that_breaks_off_is_a_finding(folder, monkeypatch):
    """A mistake in judging is no traceback; what was found before it is kept."""

    def roster(recordings, _expectation):
        yield from recordings[0].findings
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(module, "roster", roster)
    assert _codes(folder) == {("check-failed", "")}


def test_a_run_or_a_walk_that_breaks_off_is_a_finding(folder, monkeypatch):
    """A mistake in reading journals or in walking is no traceback either."""

    def fail(*_, **__):
        raise ZeroDivisionError("by zero")

    (folder / "run" / "journal").mkdir(parents=True)
    (folder / "run" / "journal" / "a.jsonl").write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr(module, "load", fail)
        assert ("check-failed", "run") in _codes(folder)
    whole = reading.walk

    def walk(root):
        yield next(iter(whole(root)))
        fail()

    monkeypatch.setattr(reading, "walk", walk)
    assert ("check-failed", "") in _codes(folder)
    assert [each.path for each in check(folder).recordings] == ["a.json"]


def test_the_format_that_was_asked_for(folder):
    """A folder without a recording of the format that was asked for is not clean."""
    assert check(folder, make_options(format="kineto")).clean()
    (finding,) = [
        each for each in check(folder, make_options(format="nsys")).findings if each.code.severity != "remark"
    ]
    assert finding.code.name == "format-missing"
    assert "kineto" in finding.detail


def test_journals_without_their_run(tmp_path):
    """Whoever points at the folder of journals is told to point at the one above."""
    (tmp_path / "rank0_actor_p1-0000_a0.jsonl").write_text('{"kind":"process","t":1}\n')
    (finding,) = check(tmp_path).findings
    assert finding.code.name == "nothing-found"
    assert "check the folder above" in finding.detail


@pytest.mark.parametrize("path", ["no such folder", "a.json"])
def test_no_folder(folder, path):
    """What is no folder raises, for the command to say so."""
    with pytest.raises(OSError, match=r"No such file|Not a directory"):
        check(folder / path)


def test_sizes_of_jobs(tmp_path):
    """The size by which jobs are ordered grows with what is to be read, inflated, also below a folder of Ascend."""
    folder = tmp_path / "x_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    folder.mkdir(parents=True)
    (folder / "trace_view.json").write_bytes(b"x" * 1000)
    (tmp_path / "x_ascend_pt" / "profiler_info_0.json").write_bytes(b"x" * 10)
    (tmp_path / "a.json.gz").write_bytes(b"x" * 1000)
    assert reading._size(str(folder.parent)) == 1010
    assert reading._size(str(tmp_path / "a.json.gz")) == 12_000
    assert reading._size(str(tmp_path / "none")) == 0
