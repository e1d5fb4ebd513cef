"""What paths say: profwin's own, verl's, vLLM's, SGLang's, and names that say little or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profwin.evidence.formats.names import combined, name_of
from profwin.evidence.model import Name

TRACE = ".pt.trace.json.gz"
CASES = [
    (
        f"20261130-091500-a1b2c3/step_000002/rollout/rank0_rollout_p4711-5f3a_n1_a0{TRACE}",
        Name(step=2, rank=0, occurrence=1, purpose="rollout", role="rollout", stage="rollout", source="profwin"),
    ),
    (
        f"step_000012_again2/train/actor_update/rank3_actor_p4720-5f3a_n2.2_a1{TRACE}",
        Name(step=12, rank=3, occurrence=2, purpose="training", role="actor", stage="actor_update", source="profwin"),
    ),
    (
        f"step_000001/train/norank_ref_model~1f_p1-0000_n1_a0{TRACE}",
        Name(step=1, occurrence=1, purpose="rollout", role="ref_model~1f", stage="train", source="profwin"),
    ),
    (f"rank1_actor_p4720-5f3a_n1_a0{TRACE}", Name(rank=1, occurrence=1, role="actor", source="profwin")),
    (
        "profile/actor_update_step5_rank3-of-16_tp0-pp1-dp0-cp0_pid991_20260822_part1.json.gz",
        Name(step=5, rank=3, world=16, purpose="training", role="actor_update", stage="actor_update", source="verl"),
    ),
    ("rank0-of-8_pid1_2026.json.gz", Name(rank=0, world=8, source="verl")),
    (
        "out/rollout-replica1-globalrank5_host-rank-1.177.pt.trace.json.gz",
        Name(rank=5, purpose="rollout", stage="rollout", source="verl", replica=1),
    ),
    (
        "step_3/agent_loop_rollout_replica_2/abc-rank-1.1771730291744166997.pt.trace.json.gz",
        Name(step=3, rank=1, purpose="rollout", stage="rollout", source="vllm", replica=2),
    ),
    (
        f"step2_dp1_pp0_tp3_dcp0_ep0_rank3.1771730291744166997{TRACE}",
        Name(step=2, rank=3, purpose="rollout", stage="rollout", source="vllm", replica=1),
    ),
    (
        "agent_loop_rollout_replica_4/step7-1771730291.5-TP-1.trace.json.gz",
        Name(step=7, rank=1, purpose="rollout", stage="rollout", source="sglang", replica=4),
    ),
    (
        "1771-TP-0-DP-2-PP-0-EP-0-DECODE.trace.json.gz",
        Name(rank=0, purpose="rollout", stage="rollout", source="sglang", replica=2),
    ),
    (
        "agent_loop_rollout_replica_0/host_372640.1771730291744166997.pt.trace.json.gz",
        Name(purpose="rollout", stage="rollout", source="verl", replica=0),
    ),
    ("actor_compute_log_prob/prof_rank-1_031847.json.gz",
     Name(rank=1, purpose="training", stage="actor_compute_log_prob", source="verl")),
    ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", Name(rank=0, source="name")),
    ("global_step_20/rank_12.json", Name(step=20, rank=12, source="name")),
    ("host_4711.1623143089861.pt.trace.json.gz", Name()),
    ("frank3.json", Name()),
    ("", Name()),
]  # fmt: skip


@pytest.mark.parametrize(("path", "expected"), CASES)
def test_paths_of_each_writer(path: str, expected: Name) -> None:
    """Each pattern is understood, and what it does not say stays open."""
    assert name_of(path) == expected


@given(st.text(max_size=80))
def test_any_path_gives_a_name(path: str) -> None:
    """A path is text like any other: nothing in it raises."""
    assert isinstance(name_of(path), Name)


def test_an_earlier_name_counts() -> None:
    """Of several names the first that says something counts, also where it says nought."""
    name = combined(Name(), Name(rank=0, source="a"), Name(rank=3, step=1, source="b"))
    assert (name.rank, name.step, name.source) == (0, 1, "a")
