"""The folder of a torch_npu recording: whether it is whole, what it is called, and when it may be removed."""

from __future__ import annotations

import json
import os

import pytest

from profwin.backends.npu_output import lacking, remove, worker_name

WHOLE = {
    "profiler_info.json": json.dumps({"end_info": {"collectionTimeEnd": 1}}),
    "FRAMEWORK/torch.op_range": "raw",
    "PROF_000001_20261130120000000_ABCDEF/host/info.json": "{}",
}


def write(root, files):
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_a_whole_folder_lacks_nothing(tmp_path):
    """What each finished recording leaves is enough; with a rank the information has its number."""
    assert lacking(write(tmp_path / "a", WHOLE)) == []
    ranked = {name.replace("info.json", "info_12.json") if "profiler" in name else name: WHOLE[name] for name in WHOLE}
    assert lacking(write(tmp_path / "b", ranked)) == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"profiler_info.json": None}, "profiler_info.json: it never finished its stop"),
        ({"profiler_info.json": json.dumps({"start_info": {}})}, "end_info in profiler_info.json"),
        ({"profiler_info.json": '{"end_info": {"a"'}, "end_info in profiler_info.json"),
        ({"profiler_info.json": "[]"}, "end_info in profiler_info.json"),
        ({"FRAMEWORK/torch.op_range": None}, "FRAMEWORK: nothing of the host was recorded"),
        ({"FRAMEWORK/torch.op_range": None, "FRAMEWORK": "a file"}, "FRAMEWORK"),
        ({"PROF_000001_20261130120000000_ABCDEF/host/info.json": None}, "PROF_*: nothing of CANN and the NPU"),
    ],
)
def test_what_is_missing_is_named(tmp_path, files, words):
    """Each part that is missing, or is of another kind, is named with what that means; the others are not."""
    changed = {name: text for name, text in {**WHOLE, **files}.items() if text is not None}
    (problem,) = lacking(write(tmp_path, changed))
    assert words in problem


def test_a_folder_that_is_not_there(tmp_path):
    """The folder itself may be missing, or be a file."""
    assert lacking(str(tmp_path / "none")) == ["the folder itself (No such file or directory)"]
    (tmp_path / "file").write_text("")
    assert "the folder itself" in lacking(str(tmp_path / "file"))[0]


def test_names_stay_below_what_torch_npu_and_the_file_system_take():
    """A long name is cut, into another one for every name; the pid, the time and the suffix still fit into 255."""
    assert worker_name("/run/step_000001/rollout/rank0_rollout_p1-abcd_n1_a0") == "rank0_rollout_p1-abcd_n1_a0"
    long = [worker_name(f"/run/{'x' * 250}{end}") for end in "ab"]
    assert long[0] != long[1]
    for name in long:
        assert len(f"{name}_4194304_20261130172012123_ascend_pt") <= 255
        assert len(name) < 226


def test_only_what_is_ours_is_removed(tmp_path):
    """A folder is removed where it has our recording's name, else left alone; one that is gone is no error."""
    ours, theirs = tmp_path / "rank0_x_12_2026_ascend_pt", tmp_path / "host_12_2026_ascend_pt"
    for folder in (ours, theirs):
        write(folder, WHOLE)
        for _ in range(2):
            remove(str(folder), str(tmp_path / "rank0_x"))
    assert os.listdir(tmp_path) == [theirs.name]
