"""The reader of nsys exports: what it finds, what it answers to each kind of damage, and that it leaves no trace."""

from __future__ import annotations

import shutil
import sqlite3

import pytest
from nsys_support import PROCESS, SECOND, WALL, whole, write

from profwin.evidence.formats import nsys


@pytest.fixture
def names(tmp_path):
    """Return a function that writes rows as an export and gives the names of the findings."""

    def read(rows):
        write(tmp_path / "a.sqlite", rows)
        return {finding.code.name for finding in nsys.read(str(tmp_path), "a.sqlite").findings}

    return read


def changed(table, rows):
    """Return the rows of a whole export with those of one table replaced; None leaves the table out."""
    given = whole() | {table: rows}
    return {name: values for name, values in given.items() if values is not None}


def test_a_whole_export_is_read_and_clean(tmp_path):
    """Times are on the wall clock to the nanosecond, the device has its UUID, and nothing is found."""
    write(tmp_path / "a.sqlite", whole())
    recording = nsys.read(str(tmp_path), "a.sqlite")
    assert recording.findings == []
    assert recording.clock.kind == "wall"
    assert recording.clock.host == "node1"
    assert recording.window == (WALL, WALL + 4 * SECOND)
    assert recording.device_busy == {
        "GPU-554a6988-03dd": [(WALL + n * SECOND + 10, WALL + n * SECOND + 20) for n in (1, 2, 3)]
    }
    assert recording.physical == {"GPU-554a6988-03dd": "GPU-554a6988-03dd"}
    assert (recording.name.rank, recording.device_expected) == (3, True)
    assert (recording.tally.launches, recording.tally.device_slices, recording.tally.slices) == (3, 3, 7)
    assert recording.metadata["ranges"] == [
        {"name": "actor_update", "start": WALL + SECOND, "end": WALL + 3 * SECOND, "pid": 77}
    ]


def test_the_environment_is_not_repeated(tmp_path):
    """Exports hold the whole environment, secrets with it: only the rank is taken."""
    write(tmp_path / "a.sqlite", whole())
    assert "hidden" not in repr(nsys.read(str(tmp_path), "a.sqlite"))


def test_slices_are_named_and_told_apart(tmp_path):
    """Kernels, calls and ranges are slices with the names that their identifiers stand for."""
    write(tmp_path / "a.sqlite", whole())
    found = list(nsys.slices(str(tmp_path), "a.sqlite"))
    assert [(one.name, one.on_device) for one in found if one.kind == "slice"] == [
        *[("matmul", True)] * 3, *[("cudaLaunchKernel_v7000", False)] * 3, ("actor_update", False),
    ]  # fmt: skip
    assert found[0].start == WALL + SECOND + 10
    assert len({one.track for one in found}) == 3


@pytest.mark.parametrize(
    ("code", "table", "bad", "near"),
    [
        ("no-device-events", "CUPTI_ACTIVITY_KIND_KERNEL", [], whole()["CUPTI_ACTIVITY_KIND_KERNEL"]),
        ("nsys-no-device-tables", "CUPTI_ACTIVITY_KIND_KERNEL", None, []),
        ("no-clock", "TARGET_INFO_SESSION_START_TIME", None, [(WALL, 5)]),
        ("nsys-range-open", "NVTX_EVENTS", [(5, None, 60, "x", None, PROCESS)], [(5, None, 34, "mark", None, PROCESS)]),
        ("nsys-session-longer", "ANALYSIS_DETAILS", [(300 * SECOND, 0, 0)], [(12 * SECOND, 0, 0)]),
        (
            "nsys-filtered", "META_DATA_EXPORT", [("EXPORT_PARAM_TABLES_TO_EXPORT", "NVTX_EVENTS")],
            [("EXPORT_PARAM_TABLES_TO_EXPORT", "")],
        ),
        ("nsys-loss", "DIAGNOSTIC_EVENT", [(0, 2, "12 events were lost.")], [(0, 1, "0 events were lost.")]),
        ("nsys-diagnostic-error", "DIAGNOSTIC_EVENT", [(0, 3, "CUPTI failed.")], [(0, 2, "CUPTI failed.")]),
        ("nsys-diagnostic-warning", "DIAGNOSTIC_EVENT", [(0, 2, "No UVM.")], [(0, 1, "No UVM.")]),
        (
            "nsys-none-collected", "DIAGNOSTIC_EVENT",
            [(0, 1, "Number of CUPTI events produced: \t43, x"), (0, 1, "Number of CUDA events collected: \t0.")],
            [(0, 1, "Number of CUPTI events produced: \t43, x"), (0, 1, "Number of CUDA events collected: \t12.")],
        ),
        (
            "nsys-fewer-collected", "DIAGNOSTIC_EVENT",
            [(0, 1, "Number of CUPTI events produced: \t43, x"), (0, 1, "Number of CUDA events collected: \t12.")],
            [(0, 1, "Number of CUPTI events produced: \t12, x"), (0, 1, "Number of CUDA events collected: \t12.")],
        ),
        (
            "missing-at-head", "CUPTI_ACTIVITY_KIND_KERNEL", whole()["CUPTI_ACTIVITY_KIND_KERNEL"][1:],
            whole()["CUPTI_ACTIVITY_KIND_KERNEL"][:2],
        ),
        (
            "launches-without-kernels", "CUPTI_ACTIVITY_KIND_KERNEL", whole()["CUPTI_ACTIVITY_KIND_KERNEL"][:2],
            whole()["CUPTI_ACTIVITY_KIND_KERNEL"],
        ),
        (
            "nsys-bad-times", "CUPTI_ACTIVITY_KIND_KERNEL",
            [*whole()["CUPTI_ACTIVITY_KIND_KERNEL"], ("soon", 9, 0, 7, 9, PROCESS, 1)],
            [*whole()["CUPTI_ACTIVITY_KIND_KERNEL"], (9, 9, 0, 7, 9, PROCESS, 1)],
        ),
    ],
)  # fmt: skip
def test_each_code_has_a_file_that_raises_it(names, code, table, bad, near):
    """The file with the fault has the code, its near twin has not."""
    assert code in names(changed(table, bad))
    assert code not in names(changed(table, near))


def test_an_export_without_events(names):
    """Tables alone are no recording; an export with NVTX ranges alone, where CUDA was not asked for, is one."""
    bare = {name: rows for name, rows in whole().items() if not name.startswith(("CUPTI", "NVTX"))}
    assert "no-events" in names(bare)
    bare["META_DATA_CAPTURE"] = [("CAPTURE_EVENT_TYPE", "NvtxEvents")]
    assert names(bare | {"NVTX_EVENTS": whole()["NVTX_EVENTS"]}) == set()


def test_captured_launches_have_no_kernel(names):
    """Between the begin and the end of a stream's capture launches run nothing; after it they do."""
    rows = whole()
    thread = PROCESS | 78
    capture = [(SECOND - 9, SECOND - 8, thread, 90, 3), (SECOND - 2, SECOND - 1, thread, 91, 4)]
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"] += [*capture, (SECOND - 5, SECOND - 4, thread, 92, 2)]
    assert names(rows) == set()
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"] += [(SECOND - 20, SECOND - 19, thread, 93, 2)]
    assert names(rows) == {"missing-at-head"}


def test_launches_of_a_cut_export_are_not_judged(names):
    """Where only a part was exported, launches and kernels are cut off at both ends."""
    rows = changed("CUPTI_ACTIVITY_KIND_KERNEL", whole()["CUPTI_ACTIVITY_KIND_KERNEL"][1:])
    rows["META_DATA_EXPORT"] = [("EXPORT_PARAM_TIMES_TO_EXPORT", "1s-2s")]
    assert names(rows) == {"nsys-filtered"}


def test_a_range_without_end_is_no_bad_row(names):
    """It is told once, as what it is."""
    assert names(changed("NVTX_EVENTS", [(5, None, 60, "x", None, PROCESS)])) == {"nsys-range-open"}


def test_a_kernel_of_another_process_is_no_answer(names):
    """Two processes count their correlations from the same number."""
    rows = whole()
    start, end, device, stream, correlation, process, name = rows["CUPTI_ACTIVITY_KIND_KERNEL"][0]
    rows["CUPTI_ACTIVITY_KIND_KERNEL"][0] = start, end, device, stream, correlation, process + (1 << 24), name
    assert "missing-at-head" in names(rows)


def test_newer_tables_and_missing_columns(tmp_path):
    """Tables called _V2 are found, columns that an export lacks are not missed, nor the whole of StringIds."""
    rows = {"NVTX_EVENTS_V2": [("rollout",), ("train",)]}
    write(tmp_path / "a.sqlite", rows, {"NVTX_EVENTS": "text TEXT"})
    recording = nsys.read(str(tmp_path), "a.sqlite")
    assert recording.tally.events == 2
    rows = {"NVTX_EVENTS_V2": [(1, 5, "rollout"), (6, 9, "train")]}
    write(tmp_path / "a.sqlite", rows, {"NVTX_EVENTS": "start INTEGER, end INTEGER, text TEXT"})
    recording = nsys.read(str(tmp_path), "a.sqlite")
    assert [one["name"] for one in recording.metadata["ranges"]] == ["rollout", "train"]
    assert "nsys-no-device-tables" in {finding.code.name for finding in recording.findings}


def test_half_a_file(tmp_path):
    """A file that is shorter than its header says is told so once, and nothing raises."""
    whole_file = write(tmp_path / "a.sqlite", whole()).read_bytes()
    (tmp_path / "a.sqlite").write_bytes(whole_file[: len(whole_file) // 2])
    recording = nsys.read(str(tmp_path), "a.sqlite")
    assert [finding.code.name for finding in recording.findings] == ["nsys-half"]
    assert list(nsys.slices(str(tmp_path), "a.sqlite")) == []
    (tmp_path / "a.sqlite").write_bytes(whole_file[:50])
    assert nsys.read(str(tmp_path), "a.sqlite").findings[0].code.name == "nsys-half"


def test_a_damaged_page(tmp_path):
    """Garbage inside is found; the twin whose garbage lies in the unused part of a page is not a fault of ours."""
    whole_file = write(tmp_path / "a.sqlite", whole()).read_bytes()
    page = 4096
    damaged = bytearray(whole_file)
    damaged[-page : -page + 200] = b"\xff" * 200
    (tmp_path / "a.sqlite").write_bytes(damaged)
    assert "nsys-damaged" in {finding.code.name for finding in nsys.read(str(tmp_path), "a.sqlite").findings}


def test_a_schema_that_is_no_text(tmp_path):
    """SQLite repeats garbage in its own messages, and Python then fails to decode those."""
    data = write(tmp_path / "a.sqlite", whole()).read_bytes()
    data = data.replace(b'CREATE TABLE "NVTX', b'CREATE TABEE "NVTX')
    (tmp_path / "a.sqlite").write_bytes(data.replace(b"tableNVTX_EVENTS", b"tableNV\x87X_EVENTS"))
    assert [finding.code.name for finding in nsys.read(str(tmp_path), "a.sqlite").findings] == ["nsys-damaged"]
    assert list(nsys.slices(str(tmp_path), "a.sqlite")) == []


@pytest.fixture
def logged(tmp_path):
    """Return a folder with a database whose kernels are in its write-ahead log alone."""
    write(tmp_path / "source", whole() | {"CUPTI_ACTIVITY_KIND_KERNEL": []}, journal="wal")
    connection = sqlite3.connect(tmp_path / "source", isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint=0")
    for row in whole()["CUPTI_ACTIVITY_KIND_KERNEL"]:
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    folder = tmp_path / "logged"
    folder.mkdir()
    shutil.copyfile(tmp_path / "source", folder / "a.sqlite")
    shutil.copyfile(tmp_path / "source-wal", folder / "a.sqlite-wal")
    connection.close()
    return folder


def state(folder):
    """Return all that can be seen of a folder."""
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


def test_rows_of_a_log_are_read_and_the_folder_stays_as_it_was(logged):
    """The kernels stand in the log alone: they are counted, and no file appears, changes or goes."""
    before = state(logged)
    recording = nsys.read(str(logged), "a.sqlite")
    assert recording.tally.device_slices == 3
    assert recording.findings == []
    assert state(logged) == before


def test_a_log_too_large_is_said(logged, monkeypatch):
    """What would need a copy of more than the limit is read without its log, and that is said."""
    monkeypatch.setattr("profwin.evidence.formats.database._COPY_LIMIT", 10)
    recording = nsys.read(str(logged), "a.sqlite")
    assert "nsys-log-unread" in {finding.code.name for finding in recording.findings}


@pytest.mark.parametrize("content", [b"", b"x" * 20])
def test_an_empty_log_is_no_finding(tmp_path, monkeypatch, content):
    """A log without rows is what an orderly writer may leave: nothing is copied for it."""
    monkeypatch.setattr("profwin.evidence.formats.database._COPY_LIMIT", 0)
    write(tmp_path / "a.sqlite", whole(), journal="wal")
    (tmp_path / "a.sqlite-wal").write_bytes(content)
    before = state(tmp_path)
    assert nsys.read(str(tmp_path), "a.sqlite").findings == []
    assert state(tmp_path) == before


def test_an_interrupted_write(tmp_path):
    """A journal with its mark is of a killed writer and is said; the file is not rolled back. Without the mark: no."""
    write(tmp_path / "a.sqlite", whole())
    journal = tmp_path / "a.sqlite-journal"
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    before = state(tmp_path)
    assert "nsys-interrupted" in {finding.code.name for finding in nsys.read(str(tmp_path), "a.sqlite").findings}
    assert state(tmp_path) == before
    journal.write_bytes(bytes(512))
    assert nsys.read(str(tmp_path), "a.sqlite").findings == []


def test_recognition_is_by_tables(tmp_path):
    """A database of anything else is none of nsys, whatever its name; nor is a text."""
    connection = sqlite3.connect(tmp_path / "b.sqlite")
    connection.execute("CREATE TABLE notes (text TEXT)")
    connection.close()
    write(tmp_path / "a", whole())
    assert nsys.recognise(str(tmp_path / "a"), (tmp_path / "a").read_bytes()[:65536])
    assert not nsys.recognise(str(tmp_path / "b.sqlite"), (tmp_path / "b.sqlite").read_bytes()[:65536])
    assert not nsys.recognise(str(tmp_path / "b.sqlite"), b"SQLite")


def test_a_name_with_question_marks(tmp_path):
    """A file's name is no part of the address that SQLite parses."""
    name = "a?mode=rwc#%41.sqlite"
    write(tmp_path / "x", whole()).rename(tmp_path / name)
    assert nsys.read(str(tmp_path), name).findings == []
    assert [path.name for path in tmp_path.iterdir()] == [name]
