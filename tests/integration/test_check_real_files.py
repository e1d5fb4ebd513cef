"""What `profwin check` answers for real files of other projects, one by one and together; skipped without them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from check_support import only_progress, report, run_check

ROOT = Path(__file__).parents[2]
FILES = Path(os.environ.get("PROFWIN_REAL_TRACES") or ROOT.parent / "shared" / "traces")

pytestmark = [
    pytest.mark.timeout(100),
    pytest.mark.skipif(not FILES.is_dir(), reason="the real files are not here"),
]

_BY_FOLDER: dict[str, dict[str, set[str]]] = {
    "ascend/server/src/test/fuzz/test_data": {
        "trace_view_tiny.json": {"no-events"},
    },
    "ascend/test/data/pytorch/text/level0": {
        "rank0_ascend_pt": set(),
    },
    "derived": {
        "control_char_in_name.json": {"control-character"},
        "leftover.json.gz.tmp": {"leftover-temporary", "nothing-found"},
        "no_gpu_events.json": {"no-device-events"},
        "truncated_gzip.json.gz": {"fewer-ranks", "truncated"},
        "truncated_plain.json": {"truncated"},
        "zero_byte.json.gz": {"empty-file", "nothing-found"},
    },
    "hta/tests/data/amd_trace": {
        "mi250_minitoy_train_ROCm6_2_kineto.json.gz": set(),
    },
    "hta/tests/data/call_stack": {
        "backward_thread.json": {"no-span"},
    },
    "hta/tests/data/cpu_only": {
        "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": {"fewer-ranks", "host-only"},
    },
    "hta/tests/data/distributed_info_unavailable": {
        "distributed_info_not_found.json.gz": {"host-only", "no-span"},
    },
    "hta/tests/data/mtia_trace_single_rank": {
        "mtia_rank_0.json.gz": {"profiler-error"},
    },
    "hta/tests/data/nccl_parser_config": {
        "nccl_data.json.gz": {"fewer-ranks", "out-of-range"},
    },
    "hta/tests/data/ns_resolution_trace": {
        "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": {"out-of-range"},
    },
    "hta/tests/data/rank_non_gpu": {
        "rank_non_gpu.json.gz": {"host-only", "no-span"},
    },
    "hta/tests/data/rank_unavailable": {
        "rank_not_found.json.gz": {"host-only", "no-span"},
    },
    "hta/tests/data/triton_example": {
        "triton_example.json.gz": set(),
    },
    "kineto-2021/tb_plugin/samples/resnet50_num_workers_0": {
        "worker0.1623143089861.pt.trace.json.gz": set(),
    },
    "nsys-ai/tests/fixtures": {
        "h100_2gpu_1s.sqlite": {"nsys-session-longer"},
        "mock.sqlite": {"nsys-diagnostic-warning", "nsys-fewer-collected"},
    },
    "rl-insight/data/recipe/mstx_data/mstx_profile/actor_compute_log_prob": {
        "xxx_ascend_pt": {"ascend-file-missing", "ascend-other-export"},
    },
    "rl-insight/data/recipe/mstx_data/mstx_profile/actor_update": {
        "xxx_ascend_pt": {"ascend-file-missing", "ascend-other-export"},
    },
    "rl-insight/data/recipe/mstx_data/mstx_profile/agent_loop_rollout_replica_0": {
        "xxx_ascend_pt": {"ascend-file-missing"},
    },
    "rl-insight/data/recipe/mstx_data/mstx_profile/ref_compute_log_prob": {
        "xxx_ascend_pt": {"ascend-file-missing", "ascend-other-export"},
    },
    "rl-insight/data/recipe/torch_data/torch_profile/actor_compute_log_prob": {
        "prof_rank-0_031847.json.gz": {"fewer-ranks", "no-device-events", "no-span"},
        "prof_rank-1_031847.json.gz": {"fewer-ranks", "no-device-events", "no-span"},
    },
    "rl-insight/data/recipe/torch_data/torch_profile/actor_update": {
        "prof_rank-0_031904.json.gz": {"fewer-ranks", "no-device-events", "no-span"},
        "prof_rank-1_031904.json.gz": {"fewer-ranks", "no-device-events", "no-span"},
    },
    "rl-insight/data/recipe/torch_data/torch_profile/agent_loop_rollout_replica_0": {
        "huawei_372640.1771730291744166997.pt.trace.json.gz": {"fewer-ranks", "host-only"},
        "huawei_372640.1771730370159969000.pt.trace.json.gz": {"fewer-ranks", "host-only"},
    },
    "tracelens/tests/traces/h100": {
        "gaunernst_bert-small-uncased__1016001.json.gz": set(),
    },
    "tracelens/tests/traces/inference/sglang_decode": {
        "sglang_Qwen3-8B_decode.json.gz": {"no-span"},
    },
    "tracelens/tests/traces/inference/vllm_decode_full": {
        "graph_execution.json.gz": {"no-span"},
    },
    "tracelens/tests/traces/mi210/gpu_only_trace": {
        "gpu_only_trace.json.gz": set(),
    },
}
ANSWERS = {f"{folder}/{name}": codes for folder, names in _BY_FOLDER.items() for name, codes in names.items()}

FOLDERS = {
    "rl-insight/data/recipe/torch_data/torch_profile": {"host-only", "no-device-events", "no-span"},
    "rl-insight/data/recipe/mstx_data/mstx_profile": {"ascend-file-missing", "ascend-other-export", "cannot-tell"},
    "rl-insight/data/recipe/torch_data/torch_profile/actor_update": {"no-device-events", "no-span"},
    "hta/tests/data/nccl_parser_config": {"fewer-ranks", "out-of-range"},
    "derived": {
        "control-character",
        "empty-file",
        "fewer-ranks",
        "leftover-temporary",
        "no-device-events",
        "truncated",
    },
}
"""Folders that are checked whole."""


def _place(path: str, below: Path) -> None:
    """Put a file or folder at its own path below another folder, so that its names say what they say."""
    target = below / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if (FILES / path).is_dir():
        shutil.copytree(FILES / path, target)
    else:
        target.symlink_to(FILES / path)


@pytest.mark.parametrize("path", [*ANSWERS, *FOLDERS])
def test_the_answer_for_a_real_file(path, tmp_path):
    """Each real file and folder gets the codes that the table says, and no other."""
    if not (FILES / path).exists():
        pytest.skip("not in this collection of files")
    _place(path, tmp_path)
    found = {each["code"] for each in report(tmp_path)["findings"]}
    assert found == {**ANSWERS, **FOLDERS}[path]


def test_the_table_has_every_real_file():
    """No real file is without an answer in the table."""
    there = {
        re.sub(r"(?<=_ascend_pt)/.*", "", str(path.relative_to(FILES)))
        for path in FILES.rglob("*")
        if path.is_file() and path.name.lower() not in ("index.md", "license", "license.txt", "readme.md")
    }
    assert there <= set(ANSWERS)


def test_all_real_files_at_once():
    """The whole collection is checked in one go, without a traceback, and nothing is left beside the files."""
    before = _state()
    status, output, errors = run_check(FILES)
    assert status == 1
    assert only_progress(errors)
    assert "reader-failed" not in output
    assert "check-failed" not in output
    assert _state() == before


def _state() -> set[tuple[str, int, int]]:
    return {(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in FILES.rglob("*")}
