"""The reader of `*_ascend_pt` folders: results as a database."""

from __future__ import annotations

import pytest
from ascend_support import END, NAME, OUTPUT, START, database, info, make

from profwin.evidence.formats import ascend

FILE = "ascend_pytorch_profiler_3.db"
SECOND = 1_000_000_000


@pytest.fixture
def read(tmp_path):
    """Return a function that makes a folder with a database and reads it."""

    def made(told=None, content=None, **changes):
        data = database(tmp_path / "made.db", **changes) if content is None else content
        make(tmp_path, told or info(exports=["db"]), {FILE: data})
        return ascend.read(str(tmp_path), NAME)

    return made


def names(recording):
    """Return the names of the findings."""
    return {finding.code.name for finding in recording.findings}


def test_a_whole_database_is_read_and_clean(read, tmp_path):
    """Device, host and window are known, and no file of the text export is missed."""
    recording = read()
    assert recording.findings == []
    assert recording.window == (START, END)
    assert recording.clock.host == "node2"
    assert recording.physical == {"NPU 4": "NPU-abc123-4"}
    first = START + SECOND
    assert recording.device_busy["NPU 4"][:2] == [(first, first + 50), (first + 100, first + 150)]
    found = list(ascend.slices(str(tmp_path), NAME))
    assert [(one.name, one.on_device) for one in found] == [("MatMul", True)] * 4 + [("aten::mm", False)]


def test_both_exports_at_once(read, tmp_path):
    """Where text is there too, its files count as well."""
    recording = read(info(exports=["db", "text"]))
    assert names(recording) == set()
    (tmp_path / NAME / OUTPUT / "trace_view.json").write_text("[]")
    (tmp_path / NAME / OUTPUT / "analyse.done").unlink()
    assert names(ascend.read(str(tmp_path), NAME)) == {"ascend-file-missing"}


def test_another_export_than_was_set(read):
    """Analysing later into another type is allowed, and said."""
    assert names(read(info(exports=["text"]))) == {"ascend-other-export"}


@pytest.mark.parametrize(
    ("counts", "code"), [([0, 0, 1], "ascend-head-lost"), ([1, 0, 1], "ascend-steps-lost"), ([1, 1, 1], None)]
)
def test_steps_without_device_tasks(read, counts, code):
    """Tasks are counted for each step."""
    assert names(read(steps=(1, 2, 3), per_step=counts)) == ({code} if code else set())


def test_no_device_tasks(read):
    """Host calls alone."""
    assert names(read(per_step=0)) == {"no-device-events"}


def test_half_a_database(read, tmp_path):
    """What is cut off is said, with how much."""
    data = database(tmp_path / "whole.db")
    recording = read(content=data[: len(data) // 2])
    assert names(recording) == {"ascend-damaged"}
    assert "bytes are missing" in recording.findings[0].detail
    assert list(ascend.slices(str(tmp_path), NAME)) == []


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to have a header" * 4])
def test_no_database_at_all(read, content):
    """A file of that name with other content."""
    assert names(read(content=content)) == {"ascend-damaged"}


def test_the_session_counts_where_there_are_no_settings(tmp_path):
    """Half an hour to the nanosecond is what CANN writes for a session whose end it does not know."""
    for folder, length, window in (("a", 5, (START, START + 5)), ("b", 1800 * SECOND, None)):
        (tmp_path / folder).mkdir()
        data = database(tmp_path / f"{folder}.db", session=(START, START + length))
        make(tmp_path / folder, None, {FILE: data})
        assert ascend.read(str(tmp_path / folder), NAME).window == window


def test_opening_leaves_the_folder_as_it_was(read, tmp_path):
    """No log, no journal, no change."""
    read()
    folder = tmp_path / NAME / OUTPUT
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    ascend.read(str(tmp_path), NAME)
    list(ascend.slices(str(tmp_path), NAME))
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
