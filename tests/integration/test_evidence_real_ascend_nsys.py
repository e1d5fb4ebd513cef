"""The readers of Ascend folders and nsys exports, and the walk, over real files; skipped where those are absent."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from profwin.evidence.formats import ascend, nsys
from profwin.evidence.walk import walk

REAL = Path(os.environ.get("PROFWIN_REAL_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
NSYS = "nsys-ai/tests/fixtures"
STAGES = "rl-insight/data/recipe/mstx_data/mstx_profile"

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="the real traces are not here")

TRIMMED = {"ascend-file-missing"}
ANSWERS = {
    f"{NSYS}/mock.sqlite": {"nsys-diagnostic-warning", "nsys-fewer-collected"},
    f"{NSYS}/h100_2gpu_1s.sqlite": {"nsys-session-longer"},
    "ascend/test/data/pytorch/text/level0/rank0_ascend_pt": set(),
    f"{STAGES}/agent_loop_rollout_replica_0/xxx_ascend_pt": TRIMMED,
    f"{STAGES}/actor_compute_log_prob/xxx_ascend_pt": {*TRIMMED, "ascend-other-export"},
    f"{STAGES}/ref_compute_log_prob/xxx_ascend_pt": {*TRIMMED, "ascend-other-export"},
    f"{STAGES}/actor_update/xxx_ascend_pt": {*TRIMMED, "ascend-other-export"},
}


def reader(path):
    """Return the module that reads a path."""
    return nsys if path.endswith(".sqlite") else ascend


def read(path, root=REAL):
    """Return the recording of a path."""
    return reader(path).read(str(root), path)


@pytest.mark.parametrize("path", ANSWERS)
def test_each_real_recording_has_its_answer(path):
    """The trimmed folders lack files, the cut export covers little of its session, and nothing else is said."""
    recording = read(path)
    assert {finding.code.name for finding in recording.findings} == ANSWERS[path]
    assert recording.clock.kind == "wall"
    first, last = recording.window
    for intervals in recording.device_busy.values():
        assert first <= intervals[0][0] < intervals[-1][1] <= last


@pytest.mark.parametrize("path", ANSWERS)
def test_slices_are_as_many_as_counted(path):
    """What is drawn is what was counted."""
    recording = read(path)
    found = list(reader(path).slices(str(REAL), path))
    assert sum(one.kind == "slice" for one in found) == recording.tally.slices
    assert all(one.start <= one.end for one in found)


def test_each_event_of_a_timeline_is_drawn():
    """Slices, ends of arrows and values of counters are as many as another reader finds, with the same numbers."""
    path = "ascend/test/data/pytorch/text/level0/rank0_ascend_pt"
    events = json.loads((REAL / path / "ASCEND_PROFILER_OUTPUT/trace_view.json").read_text())
    expected = Counter(event["ph"] for event in events if event["ph"] != "M")
    found = list(ascend.slices(str(REAL), path))
    kinds = {"slice": "X", "flow-start": "s", "flow-end": "f", "counter": "C"}
    assert Counter(kinds[each.kind] for each in found) == expected
    assert expected == {"X": 3379, "s": 606, "f": 611, "C": 3716}
    arrows = Counter((event["ph"], event["cat"], str(event["id"])) for event in events if event["ph"] in "sf")
    assert Counter((kinds[each.kind], each.category, each.flow) for each in found if each.flow) == arrows
    values = sorted(next(iter(event["args"].values())) for event in events if event["ph"] == "C")
    assert sorted(each.value for each in found if each.kind == "counter") == values


def test_the_stages_of_one_step_do_not_overlap():
    """Rollout, log-prob, reference and update of one run follow each other on one NPU."""
    order = ["agent_loop_rollout_replica_0", "actor_compute_log_prob", "ref_compute_log_prob", "actor_update"]
    recordings = [read(f"{STAGES}/{stage}/xxx_ascend_pt") for stage in order]
    for before, after in itertools.pairwise(recordings):
        assert before.window[1] < after.window[0]
    assert recordings[0].window == (1773285888510047220, 1773285894485741210)
    assert {key for recording in recordings for key in recording.device_busy} == {"NPU 0"}


def test_counts_of_the_two_exports():
    """Kernels by device and process, launches and those without kernel, as other tools count them."""
    recording = read(f"{NSYS}/h100_2gpu_1s.sqlite")
    assert recording.tally.categories == {
        "KERNEL": 3442, "MEMCPY": 904, "MEMSET": 22, "RUNTIME": 5796, "NVTX_EVENTS": 16782
    }  # fmt: skip
    assert (recording.tally.launches, recording.tally.launches_without_kernel) == (3346, 1714)
    assert recording.tally.missing_at_head == 0
    assert list(recording.device_busy) == ["pid 111 device 0", "pid 112 device 1"]
    assert recording.physical == {}
    small = read(f"{NSYS}/mock.sqlite")
    assert list(small.physical.values()) == ["GPU-554a6988-03dd-6206-3dd1-f43fb60a3ed0"]
    assert (small.tally.device_slices, small.tally.launches, small.tally.launches_without_kernel) == (3, 2, 0)


def _state(folder):
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_reading_leaves_the_folders_as_they_were(tmp_path):
    """No log, no journal and no change, where the tree is and where everything may be written."""
    shutil.copytree(REAL / "nsys-ai", tmp_path / "nsys-ai")
    for root in (REAL, tmp_path):
        before = _state(root / "nsys-ai")
        for name in ("mock.sqlite", "h100_2gpu_1s.sqlite"):
            read(f"{NSYS}/{name}", root)
            list(nsys.slices(str(root), f"{NSYS}/{name}"))
        assert _state(root / "nsys-ai") == before


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_part_of_a_real_export(tmp_path, part):
    """Wherever it is cut, it is said that it is, and nothing raises."""
    data = (REAL / NSYS / "h100_2gpu_1s.sqlite").read_bytes()
    (tmp_path / "a.sqlite").write_bytes(data[: int(part * len(data))])
    assert [found.kind for found in walk(str(tmp_path))] == ["nsys"]
    assert [finding.code.name for finding in read("a.sqlite", tmp_path).findings] == ["nsys-half"]


def test_a_real_folder_whose_analysis_was_cut_off(tmp_path):
    """The timeline ends in the middle: what is complete is read, and the cut is said."""
    name = "rank0_ascend_pt"
    shutil.copytree(REAL / "ascend/test/data/pytorch/text/level0" / name, tmp_path / name)
    timeline = tmp_path / name / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    data = timeline.read_bytes()
    timeline.chmod(0o600)
    timeline.write_bytes(data[: len(data) // 2])
    recording = read(name, tmp_path)
    assert {finding.code.name for finding in recording.findings} == {"truncated"}
    assert 500 < recording.tally.slices < 3379


def test_the_walk_names_every_real_file():
    """Each of them is told; the damaged ones as what they are."""
    found = {one.path: one for one in walk(str(REAL))}
    counts = Counter(one.kind for one in found.values())
    assert counts["ascend"] == 5
    assert counts["nsys"] == 2
    assert not counts["unknown"]
    assert not counts["problem"]
    assert found["derived/zero_byte.json.gz"].kind == "empty"
    assert found["derived/leftover.json.gz.tmp"].kind == "leftover"
    for name in ("control_char_in_name.json", "no_gpu_events.json", "truncated_gzip.json.gz", "truncated_plain.json"):
        assert found[f"derived/{name}"].kind == "kineto"
    assert counts["kineto"] == len([path for path in found if ".json" in path]) - 2
