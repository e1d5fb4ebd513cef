"""The reader of `*_ascend_pt` folders: settings, raw data and text results."""

from __future__ import annotations

import json

import pytest
from ascend_support import (
    END,
    HARDWARE,
    HOST,
    NAME,
    OUTPUT,
    OVERLAP,
    START,
    TICK,
    group,
    info,
    kernels,
    make,
    row,
    text_files,
    timeline,
)  # fmt: skip

from profwin.evidence.formats import ascend

SECOND = 1_000_000_000
RAW = ("FRAMEWORK/torch.op_range", "PROF_000001_2026_ABC/device_4/data/hwts.data.4.slice_0")
SEALED = (
    *RAW,
    RAW[1] + ".done",
    "PROF_000001_2026_ABC/host/data/api.slice_0",
    "PROF_000001_2026_ABC/host/data/api.slice_0.done",
)


def codes(root, name=NAME):
    """Return the names of the findings."""
    return {finding.code.name for finding in ascend.read(str(root), name).findings}


def test_a_whole_folder_is_read_and_clean(tmp_path):
    """The window is computed from the stop, device work from the hardware's rows alone, to the nanosecond."""
    make(tmp_path, info(), text_files(), SEALED)
    (tmp_path / NAME / "PROF_000001_2026_ABC/host/info.json").write_text('{"hostUid": "abc123"}')
    recording = ascend.read(str(tmp_path), NAME)
    assert recording.findings == []
    assert recording.window == (START, END)
    assert (recording.name.rank, recording.device_expected) == (3, True)
    first = START + SECOND + 1000
    assert recording.device_busy["NPU 4"][:2] == [(first, first + 2500), (first + 10_000, first + 12_500)]
    assert recording.physical == {"NPU 4": "NPU-abc123-4"}
    assert recording.tally.device_slices == 4


@pytest.mark.parametrize("level", ["Level_none", "Level0", "Level1", "Level2"])
def test_each_level_has_its_files(tmp_path, level):
    """What a level does not write is not missed, what it writes is."""
    number = -1 if level == "Level_none" else int(level[-1])
    files = text_files(level=max(number, 0))
    if number < 0:
        files = {name: files[name] for name in ("trace_view.json", "operator_details.csv")}
    make(tmp_path, info(level), files, SEALED, done=False)
    assert codes(tmp_path) == set()
    for name in set(files) - {"trace_view.json"}:
        (tmp_path / NAME / OUTPUT / name).unlink()
    found = [one for one in ascend.read(str(tmp_path), NAME).findings if one.code.name == "ascend-file-missing"]
    assert set(found[0].data["files"]) == set(files) - {"trace_view.json"}


def test_communication_files_are_missed_only_where_ranks_communicated(tmp_path):
    """One rank alone has no communication.json; nor has level 0."""
    talk = timeline() + group(88, "Communication", "NPU 4") + [row("hcom_allReduce", 88, START + SECOND)]
    files = text_files() | {"trace_view.json": json.dumps(talk)}
    make(tmp_path, info(), files, SEALED, done=False)
    assert codes(tmp_path) == {"ascend-file-missing"}
    make(tmp_path / "0", info("Level0"), files, SEALED, done=False)
    assert codes(tmp_path / "0") == set()


def test_memory_files_are_missed_only_where_asked_for(tmp_path):
    """profile_memory gives two files more."""
    told = info()
    told["config"]["common_config"]["profile_memory"] = True
    make(tmp_path, told, text_files(), SEALED, done=False)
    assert codes(tmp_path) == {"ascend-file-missing"}


def test_no_stop_recorded(tmp_path):
    """Without end_info the stop never ran, and there is no window."""
    make(tmp_path, info(end_info=None), None, SEALED)
    assert codes(tmp_path) == {"ascend-no-stop", "ascend-not-analysed"}
    assert ascend.read(str(tmp_path), NAME).window is None


@pytest.mark.parametrize(("ticks", "odd"), [(-1, True), (0, False)])
def test_times_that_contradict_each_other(tmp_path, ticks, odd):
    """An end before the start on the monotonic clock gives no window."""
    make(tmp_path, info(end_info={"collectionTimeEnd": END, "MonotonicTimeEnd": TICK + ticks}), None, SEALED)
    assert ("ascend-odd-window" in codes(tmp_path)) is odd


def test_analysis_that_did_not_run(tmp_path):
    """Raw data alone is no loss, nothing at all is."""
    make(tmp_path, info(), None, SEALED)
    assert codes(tmp_path) == {"ascend-not-analysed"}
    make(tmp_path, name="empty_ascend_pt")
    assert codes(tmp_path, "empty_ascend_pt") == {"ascend-empty"}
    make(tmp_path, info(), name="told_ascend_pt")
    assert codes(tmp_path, "told_ascend_pt") == {"ascend-empty"}


def test_analysis_unfinished_and_done_although_it_failed(tmp_path):
    """analyse.done is written even if the analysis failed: only the result tells."""
    make(tmp_path, info(), {}, SEALED, done=False)
    assert codes(tmp_path) == {"ascend-unfinished"}
    make(tmp_path / "2", info(), {}, SEALED)
    assert codes(tmp_path / "2") == {"ascend-analysis-failed"}
    files = text_files()
    del files["kernel_details.csv"]
    make(tmp_path / "3", info(), files, SEALED)
    assert codes(tmp_path / "3") == {"ascend-analysis-failed"}


def test_pieces_that_were_not_completed(tmp_path):
    """A piece without .done beside it is named; the twin has it."""
    make(tmp_path, info(), None, RAW)
    found = ascend.read(str(tmp_path), NAME).findings
    assert [one.code.name for one in found] == ["ascend-slice-unfinished", "ascend-not-analysed"]
    assert "hwts.data.4.slice_0" in found[0].detail


def test_no_device_data(tmp_path):
    """NPU activity was asked for and CANN has no data of any; where it was not asked for nothing is missed."""
    host = [path for path in SEALED if "device" not in path]
    make(tmp_path, info(), None, host)
    assert codes(tmp_path) == {"ascend-no-device-data", "ascend-not-analysed"}
    told = info()
    told["config"]["common_config"]["activities"] = ["ProfilerActivity.CPU"]
    make(tmp_path / "2", told, None, host)
    assert codes(tmp_path / "2") == {"ascend-not-analysed"}


def test_results_without_device_work(tmp_path):
    """A timeline of host rows alone."""
    files = text_files() | {"trace_view.json": json.dumps(timeline(tasks=0)), "kernel_details.csv": kernels({})}
    make(tmp_path, info(), files, SEALED)
    assert codes(tmp_path) == {"no-device-events"}
    make(tmp_path / "2", info(), files | {"trace_view.json": "[]"}, SEALED)
    assert codes(tmp_path / "2") == {"no-events"}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ({3: 1, 4: 2}, "ascend-head-lost"), ({1: 1, 2: 1, 4: 1}, "ascend-steps-lost"),
        ({1: 1, 2: 1, 3: 1}, "ascend-steps-lost"), ({1: 1, 2: 1, 3: 1, 4: 1}, None),
    ],
)  # fmt: skip
def test_steps_without_device_tasks(tmp_path, rows, code):
    """Tasks are counted for each step: the first ones lost are told from later ones."""
    files = text_files(steps=(1, 2, 3, 4)) | {"kernel_details.csv": kernels(rows)}
    make(tmp_path, info(), files, SEALED)
    assert codes(tmp_path) == ({code} if code else set())


@pytest.mark.parametrize(("content", "cut"), [("a,b\n1", True), ("", True), ("a,b\n1,2\n", False), ("a,b\n", False)])
def test_tables_that_end_in_a_line(tmp_path, content, cut):
    """A table that is empty, or whose last line does not end, was cut off."""
    make(tmp_path, info(), text_files() | {"op_statistic.csv": content}, SEALED)
    assert codes(tmp_path) == ({"ascend-file-cut"} if cut else set())


def test_a_timeline_that_is_cut_off(tmp_path):
    """What is complete is read, and the cut is said."""
    text = text_files()["trace_view.json"]
    make(tmp_path, info(), text_files() | {"trace_view.json": text[: len(text) // 2]}, SEALED)
    recording = ascend.read(str(tmp_path), NAME)
    assert {one.code.name for one in recording.findings} == {"truncated"}
    assert recording.tally.slices > 2


def test_the_overlap_analysis_stands_in_where_the_hardware_rows_are_gone(tmp_path):
    """Trimmed timelines keep what was computed of them; its free time is no work."""
    kept = [event for event in timeline() if event["pid"] != HARDWARE]
    make(tmp_path, info(), text_files() | {"trace_view.json": json.dumps(kept)}, SEALED)
    recording = ascend.read(str(tmp_path), NAME)
    assert recording.tally.device_slices == 2
    assert recording.device_busy["NPU 4"][0] == (START + SECOND + 1000, START + SECOND + 13_500)


def test_device_work_outside_the_window(tmp_path):
    """A window that ends before the work does belongs to something else."""
    early = {"collectionTimeEnd": END - 3 * SECOND, "MonotonicTimeEnd": TICK + 2 * SECOND}
    make(tmp_path, info(end_info=early), text_files(), SEALED)
    assert codes(tmp_path) == {"ascend-outside-window"}


@pytest.mark.parametrize("told", ["{", "[1]", '{"a": 1}' * 2, "[" * 5000])
def test_damaged_settings(tmp_path, told):
    """Settings that are no JSON object are said, and the results are read all the same."""
    make(tmp_path, told, text_files(), SEALED)
    assert codes(tmp_path) == {"ascend-info-damaged"}
    assert ascend.read(str(tmp_path), NAME).tally.device_slices == 4


def test_settings_of_unexpected_types(tmp_path):
    """Any JSON value may stand anywhere."""
    told = {
        "config": [],
        "start_info": 4,
        "end_info": {"collectionTimeEnd": 1e300, "MonotonicTimeEnd": True},
        "rank_id": {},
    }
    make(tmp_path, told, text_files(), SEALED)
    assert codes(tmp_path) == {"ascend-no-stop"}
    assert ascend.read(str(tmp_path), NAME).name.rank == 3  # of the file's name


def test_settings_that_are_missing(tmp_path):
    """Without settings the results are read, and nothing is expected of them."""
    make(tmp_path, None, {"trace_view.json": json.dumps(timeline())})
    assert codes(tmp_path) == {"ascend-no-info"}


def test_slices_have_tracks_of_their_own(tmp_path):
    """Rows of the host, the hardware and the analysis are told apart, though their names come after them."""
    make(tmp_path, info(), text_files(), SEALED)
    found = list(ascend.slices(str(tmp_path), NAME))
    assert len(found) == 10
    assert sum(one.on_device for one in found) == 4
    assert {one.track for one in found} == {
        f"Python {HOST}:1", f"Ascend Hardware NPU 4 {HARDWARE}:1", f"Overlap Analysis NPU 4 {OVERLAP}:1",
        f"Overlap Analysis NPU 4 {OVERLAP}:3",
    }  # fmt: skip


def test_recognition(tmp_path):
    """A folder is told by its content; by its name only where it is empty."""
    make(tmp_path, info(), name="other")
    make(tmp_path, name="x_ascend_pt")
    (tmp_path / "plain").mkdir()
    (tmp_path / "file_ascend_pt").touch()
    told = {path.name: ascend.recognise(str(path)) for path in tmp_path.iterdir()}
    assert told == {"other": True, "x_ascend_pt": True, "plain": False, "file_ascend_pt": False}
