"""What reading real Kineto traces must answer; skipped where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from profwin.evidence.formats import kineto
from profwin.evidence.formats.text import head

TRACES = Path(os.environ.get("PROFWIN_REAL_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not here")

HTA, LENS, INSIGHT = "hta/tests/data/", "tracelens/tests/traces/", "rl-insight/data/recipe/torch_data/torch_profile/"
BARE, EMPTY = ["no-span", "host-only"], ["no-span", "no-device-events"]

# Path, events, device slices, launches, launches without kernel, codes.
ANSWERS: list[tuple[str, int, int, int, int, list[str]]] = [
    (HTA + "nccl_parser_config/nccl_data.json.gz", 40573, 3774, 3660, 0, ["out-of-range"]),
    (HTA + "ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 68692, 6095, 5950, 0, ["out-of-range"]),
    (HTA + "mtia_trace_single_rank/mtia_rank_0.json.gz", 455739, 25814, 0, 0, ["profiler-error"]),
    (HTA + "amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz", 220, 16, 16, 0, []),
    (HTA + "call_stack/backward_thread.json", 7, 1, 1, 0, ["no-span"]),
    (HTA + "cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 30, 0, 0, 0, ["host-only"]),
    (HTA + "distributed_info_unavailable/distributed_info_not_found.json.gz", 2467, 0, 0, 0, BARE),
    (HTA + "rank_non_gpu/rank_non_gpu.json.gz", 2467, 0, 0, 0, BARE),
    (HTA + "rank_unavailable/rank_not_found.json.gz", 2467, 0, 0, 0, BARE),
    (HTA + "triton_example/triton_example.json.gz", 71, 1, 1, 0, []),
    (LENS + "h100/gaunernst_bert-small-uncased__1016001.json.gz", 2551, 61, 61, 0, []),
    (LENS + "inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", 2058, 558, 15, 0, ["no-span"]),
    (LENS + "inference/vllm_decode_full/graph_execution.json.gz", 1993, 434, 14, 0, ["no-span"]),
    (LENS + "mi210/gpu_only_trace/gpu_only_trace.json.gz", 2443, 562, 562, 0, []),
    (
        "kineto-2021/tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
        75718, 9096, 8784, 0, [],
    ),
    (INSIGHT + "actor_update/prof_rank-0_031904.json.gz", 4, 0, 0, 0, EMPTY),
    (INSIGHT + "actor_compute_log_prob/prof_rank-1_031847.json.gz", 4, 0, 0, 0, EMPTY),
    (
        INSIGHT + "agent_loop_rollout_replica_0/huawei_372640.1771730291744166997.pt.trace.json.gz",
        6, 0, 0, 0, ["host-only"],
    ),
    ("derived/control_char_in_name.json", 219, 16, 16, 0, ["control-character"]),
    ("derived/leftover.json.gz.tmp", 220, 16, 16, 0, []),
    ("derived/no_gpu_events.json", 204, 0, 16, 16, ["no-device-events"]),
    ("derived/truncated_gzip.json.gz", 14567, 0, 0, 0, ["truncated"]),
    ("derived/truncated_plain.json", 105, 0, 10, 10, ["truncated"]),
    ("derived/zero_byte.json.gz", 0, 0, 0, 0, ["empty-file"]),
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer[0] for answer in ANSWERS])
def test_what_each_file_answers(answer: tuple[str, int, int, int, int, list[str]]) -> None:
    """Counts and codes of each file, which is recognised by its content, and drawn without loss."""
    path, events, device_slices, launches, without, codes = answer
    if not (TRACES / path).exists():
        pytest.skip("this file is not here")
    recording = kineto.read(str(TRACES), path)
    tally = recording.tally
    assert (tally.events, tally.device_slices, tally.launches, tally.launches_without_kernel) == (
        events, device_slices, launches, without,
    )  # fmt: skip
    assert [finding.code.name for finding in recording.findings] == codes
    assert kineto.recognise(path, head(TRACES / path)) == bool(events)
    drawn = [one for one in kineto.slices(str(TRACES), path, recording.metadata["base"]) if one.kind == "slice"]
    assert len(drawn) == tally.slices
    assert sum(one.on_device for one in drawn) == device_slices
    if recording.window and "mtia" not in path:
        assert all(
            recording.window[0] <= one.start and one.end <= recording.window[1] for one in drawn if one.on_device
        )


def _device_slices(path):
    return (one for one in kineto.slices(str(TRACES), path) if one.on_device and one.kind == "slice")


def test_epoch_times_of_a_real_file_do_not_overlap() -> None:
    """Read exactly, kernels of one stream of the file without base never overlap; a float makes them."""
    path = HTA + "ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
    if not (TRACES / path).exists():
        pytest.skip("this file is not here")
    tracks: dict[str, int] = {}
    for one in sorted(_device_slices(path), key=lambda one: one.start):
        assert one.start >= tracks.get(one.track, 0)
        tracks[one.track] = one.end
    assert tracks
