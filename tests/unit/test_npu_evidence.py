"""What profwin wrote into an `*_ascend_pt` folder's metadata is read, whatever else is there."""

from __future__ import annotations

import json

import pytest
from ascend_support import NAME, info, make

from profwin.evidence.formats import ascend

SAID = {"run": "r", "purpose": "training", "step": 7, "name": "update", "rank": 5, "devices": ["npu-x-0"]}


def read(tmp_path, text):
    """Read a folder with such a profiler_metadata.json."""
    make(tmp_path, info(), raw=["FRAMEWORK/torch.op_range"])
    (tmp_path / NAME / "profiler_metadata.json").write_text(text)
    return ascend.read(str(tmp_path), NAME)


def test_what_profwin_said_is_kept_and_names_the_recording(tmp_path):
    """Step, stage and rank come from the entry, before the folder's own number of the rank."""
    recording = read(tmp_path, json.dumps({"profwin": SAID, "trace_id": "0"}))
    assert recording.metadata["profwin"]["step"] == 7
    assert (recording.name.step, recording.name.stage, recording.name.purpose) == (7, "update", "training")
    assert recording.name.rank == 5
    assert recording.metadata["level"] == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"profwin": 3}', '{"profwin": []}', '{"distributed_args": 1}', "\xff"]
)
def test_other_metadata_is_none_of_ours(tmp_path, text):
    """Without an entry, or where the file is no JSON, the folder is read as it was before."""
    recording = read(tmp_path, text)
    assert "profwin" not in recording.metadata
    assert recording.name.rank == 3
