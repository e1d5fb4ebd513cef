"""The numbers of a run: unions, pieces of a device's time, causes of bubbles, slowest ranks, overlap, costs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_support import SECOND, STAGES, Writer, write_run

from profwin.evidence.bubbles import CAUSES, KINDS, Facts, Step, cut
from profwin.evidence.lanes import Cost, Lane, News, Work
from profwin.evidence.phases import count_steps, measure, totals
from profwin.evidence.run import load
from profwin.evidence.unions import bridged, clipped, common, joined, length, without

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def _points(spans):
    return {point for start, end in spans for point in range(start, end)}


@given(SPANS, SPANS, st.integers(0, 60), st.integers(0, 60))
def test_unions_are_sets_of_time(some, others, start, end):
    """Union, clip, common part and difference are those of the sets of nanoseconds, and no union touches itself."""
    first, second = joined(some), joined(others)
    assert _points(first) == _points(some)
    assert length(first) == len(_points(some))
    assert all(early[1] < late[0] for early, late in pairwise(first))
    assert _points(clipped(first, start, end)) == _points(some) & set(range(start, end))
    assert _points(common(first, second)) == _points(some) & _points(others)
    assert _points(without(first, second)) == _points(some) - _points(others)


@given(SPANS, st.integers(1, 20))
def test_a_bridged_union_covers_the_union(spans, most):
    """It has at most one interval more than it should, loses no time, and is the same where it is short enough."""
    union = joined(spans)
    fewer = bridged(union, most)
    assert _points(union) <= _points(fewer)
    assert len(fewer) <= most + 1
    assert fewer == union or len(union) > most


def _work(start, end, kind, name="x", step=1):
    return Work(start, end, kind, name, step, 1, f"{kind} rank 0", kind, 0, True, True)


WORKS = st.lists(
    st.builds(
        lambda start, took, kind, name, step: _work(start, start + took, kind, name, step),
        st.integers(0, 90), st.integers(0, 40), st.sampled_from(["rollout", "training", "sync"]),
        st.sampled_from(["a", "b"]), st.integers(1, 2),
    ),
    max_size=8,
)  # fmt: skip
COSTS = st.lists(
    st.builds(
        lambda start, took, kind: Cost(start, start + took, kind, 1, "w"),
        st.integers(0, 90), st.integers(1, 30), st.sampled_from(["start", "stop", "export", "wait"]),
    ),
    max_size=4,
)  # fmt: skip
BOOLEANS = st.booleans()
NEWS = st.lists(
    st.builds(News, st.integers(0, 100), st.sampled_from(["rollout", "training"]), st.just(2), BOOLEANS, BOOLEANS),
    max_size=4,
)  # fmt: skip


@given(st.lists(st.tuples(WORKS, COSTS, NEWS, SPANS), min_size=1, max_size=3))
@settings(max_examples=200)
def test_a_devices_time_is_cut_without_gap_or_overlap(content):
    """Whatever ran, the pieces tile the step, each with one kind, and a cause just where the device stood still."""
    lanes = []
    for works, costs, news, paused in content:
        lanes.append(Lane("d", "h", 0, list(works), list(costs), list(news), joined(paused)))
        lanes[-1].finish()
    step = Step(0, 1, 10, 90, lanes)
    for lane in lanes:
        pieces = cut(lane, Facts(lane), step)
        assert [piece.start for piece in pieces] + [90] == [10] + [piece.end for piece in pieces]
        assert {piece.kind for piece in pieces} <= set(KINDS)
        assert all((piece.cause in CAUSES) == (piece.kind in ("handover", "idle")) for piece in pieces)
        busy = length((piece.start, piece.end) for piece in pieces if piece.work is not None)
        assert busy == len(_points((work.start, work.end) for work in lane.works) & set(range(10, 90)))


@pytest.mark.parametrize("pipelined", [False, True])
def test_idle_and_busy_make_the_span(tmp_path, pipelined):
    """Per device, kinds add up to the step's length; causes to what stood still; all shares lie between 0 and 1."""
    steps = measure(load(write_run(tmp_path, 6, (2, 3, 5), pipelined=pipelined)))
    assert [step.step for step in steps] == [2, 3, 5]
    for step in steps:
        for device in step.devices:
            assert sum(device.kinds.values()) == step.span
            assert sum(device.causes.values()) == device.kinds["handover"] + device.kinds["idle"]
            assert 0 < device.busy <= step.span
            assert sum(device.stages.values()) <= device.kinds["training"]
        shares = [step.share(kind) for kind in KINDS]
        assert all(0 <= share <= 1 for share in shares)
        assert sum(shares) == pytest.approx(1)
        assert 0 <= step.overlap <= step.span
        assert 0 < step.cost <= step.span
    assert sum(totals(steps).values()) == sum(step.span * len(step.devices) for step in steps)


def test_the_slowest_rank_and_by_how_much(tmp_path):
    """Each stage names the rank that took longest, compared with the median of the others."""
    (step,) = measure(load(write_run(tmp_path, 5, (2,), slow=3)))
    stages = [ranks for ranks in step.ranks if ranks.kind == "training"]
    assert [ranks.name for ranks in stages] == [name for name, _ in STAGES]
    assert {ranks.slowest for ranks in stages} == {"actor rank 3"}
    assert all(ranks.workers == 5 and 0.1 < ranks.behind / ranks.typical < 0.35 for ranks in stages)
    assert [ranks.slowest for ranks in step.ranks if ranks.kind == "rollout"] == ["rollout rank 1"]


def test_one_rank_is_behind_nobody(tmp_path):
    """With a single rank there is nothing to compare."""
    (step,) = measure(load(write_run(tmp_path, 1, (2,))))
    assert {(ranks.workers, ranks.typical, ranks.behind) for ranks in step.ranks} == {(1, None, 0)}


def test_overlap_is_that_of_different_devices(tmp_path):
    """Rollout beside training counts once, however many devices do either; on shared devices there is none."""
    (step,) = measure(load(write_run(tmp_path / "beside", 8, (4,), pipelined=True)))
    training = [piece for device in step.devices for piece in device.pieces if piece.kind == "training"]
    assert step.overlap == length(joined((piece.start, piece.end) for piece in training))
    (step,) = measure(load(write_run(tmp_path / "turns", 1, (4,))))
    assert step.overlap == 0


def _run(tmp_path, *writers):
    for writer in writers:
        writer.close(100.0)
    return measure(load(tmp_path))


def _bubbles(step):
    return {
        (device.lane.key, piece.kind, piece.cause): (piece.end - piece.start) / SECOND
        for device in step.devices
        for piece in device.pieces
        if piece.work is None
    }


def test_causes_of_bubbles(tmp_path):
    """Waiting for samples, for a rank and for training are told apart by what the other devices did meanwhile."""
    first, second = Writer(tmp_path, "actor", 0), Writer(tmp_path, "actor", 1)
    first.body(1.0, 3.0, "window", "rollout", 1, ["a"], role="rollout", profiler=False)
    second.body(1.0, 7.0, "window", "rollout", 1, ["b"], role="rollout", profiler=False)
    for writer, device, end in ((first, ["a"], 10.0), (second, ["b"], 14.0)):
        writer.body(8.0, end, "stage", "update", 1, device, profiler=False)
    (step,) = _run(tmp_path, first, second)
    assert _bubbles(step) == {
        ("a", "handover", "samples"): 4.0,
        ("a", "handover", "unknown"): 1.0,
        ("b", "handover", "unknown"): 1.0,
        ("a", "idle", "rank"): 4.0,
    }


def test_a_wait_for_the_device_is_a_cause_and_a_cost(tmp_path):
    """What a stage waited for its device counts as a bubble only while nothing ran there, and as a cost likewise."""
    writer = Writer(tmp_path, "actor", 0)
    writer.body(1.0, 3.0, "window", "rollout", 1, ["a"], profiler=False)
    writer.body(5.0, 7.0, "stage", "update", 1, ["a"], waited=3.0, profiler=False)
    (step,) = _run(tmp_path, writer)
    assert _bubbles(step) == {("a", "handover", "device"): 2.0}
    assert (step.costs["wait"] / SECOND, step.cost / SECOND) == (3.0, 2.0)


def test_what_profiling_cost_is_a_union(tmp_path):
    """Start, stop and export of a profiler are costs, and explain the bubble that they make."""
    writer = Writer(tmp_path, "actor", 0)
    writer.body(10.0, 20.0, "stage", "update", 1, ["a"])
    writer.body(20.15, 30.15, "stage", "update", 1, ["a"])
    (step,) = _run(tmp_path, writer)
    assert {kind: round(time / SECOND, 3) for kind, time in step.costs.items()} == {
        "start": 0.2, "stop": 0.2, "export": 0.2, "wait": 0.0,
    }  # fmt: skip
    # Between the stages, stopping and writing overlap with starting: 0.2 s in all, 0.15 s before the second body.
    assert step.devices[0].causes["profiling"] / SECOND == pytest.approx(0.1 + 0.15 + 0.2)
    assert step.cost / SECOND == pytest.approx(0.5)
    assert step.coster == "actor rank 0"


def test_weight_sync_is_what_nothing_else_explains_before_new_weights(tmp_path):
    """Where no journal has it: from the last work to the record with the newer version, without a pause in between."""
    writer = Writer(tmp_path, "rollout", 0)
    writer.step(1.0, "rollout", 1, version=0)
    writer.body(1.0, 5.0, "window", "rollout", 1, ["a"], profiler=False)
    writer.write(6.0, "paused")
    writer.write(7.0, "resumed")
    writer.step(9.0, "rollout", 2, selected=False, version=1)
    (step,) = _run(tmp_path, writer)
    assert step.span / SECOND == 8.0
    kinds = {kind: time / SECOND for kind, time in step.devices[0].kinds.items() if time}
    assert kinds == {"rollout": 4.0, "sync_at_most": 3.0, "paused": 1.0}


def test_time_of_steps_that_are_not_profiled_is_not_idle(tmp_path):
    """What a device did in a step that no journal records is neither busy nor idle."""
    trainer, rollouter = Writer(tmp_path, "actor", 0), Writer(tmp_path, "rollout", 1)
    rollouter.body(1.0, 9.0, "window", "rollout", 2, ["b"], profiler=False)
    trainer.step(0.5, "training", 1, selected=False)
    trainer.step(6.0, "training", 2, version=1)
    trainer.body(7.0, 9.0, "stage", "update", 2, ["a"], profiler=False)
    (step,) = _run(tmp_path, trainer, rollouter)
    assert _bubbles(step) == {("a", "unrecorded", ""): 5.0, ("a", "idle", "samples"): 1.0}


def test_work_of_another_step_is_busy(tmp_path):
    """In a pipeline a device works for one step while another begins: that is no bubble of either."""
    trainer, rollouter = Writer(tmp_path, "actor", 0), Writer(tmp_path, "rollout", 1)
    trainer.body(1.0, 5.0, "stage", "update", 1, ["a"], profiler=False)
    rollouter.body(1.0, 5.0, "window", "rollout", 2, ["b"], profiler=False)
    trainer.body(5.0, 7.0, "stage", "update", 2, ["a"], profiler=False)
    _, second = _run(tmp_path, trainer, rollouter)
    assert second.devices[0].kinds["other"] / SECOND == 4.0
    assert second.devices[0].busy == second.span
    assert second.overlap / SECOND == 4.0


def test_nested_stages_count_once(tmp_path):
    """A stage inside a stage is busy time once, and counts for the inner one."""
    writer = Writer(tmp_path, "actor", 0)
    writer.write(1.0, "enter", id=1, what="stage", name="outer", step=1, occurrence=1, devices=["a"])
    writer.body(2.0, 3.0, "stage", "inner", 1, ["a"], profiler=False)
    writer.write(5.0, "exit", id=1, status="ok")
    (step,) = _run(tmp_path, writer)
    (device,) = step.devices
    assert device.kinds["training"] == device.busy == 4 * SECOND
    assert device.stages == {"outer": 3 * SECOND, "inner": SECOND}


def test_clocks_of_one_boot_keep_their_distances(tmp_path):
    """A wall clock that was set between two processes of a boot moves none of their times."""
    first, second = Writer(tmp_path, "actor", 0), Writer(tmp_path, "actor", 1)
    second.lines[0] = second.lines[0].replace('"t": 0', f'"t": {-50 * SECOND}')
    for writer, device in ((first, ["a"]), (second, ["b"])):
        writer.body(1.0, 3.0, "stage", "update", 1, device, profiler=False)
    (step,) = _run(tmp_path, first, second)
    assert step.span == 2 * SECOND


def test_staleness_is_that_of_the_oldest_samples(tmp_path):
    """What a training step said of its samples counts more than what the windows recorded."""
    writer = Writer(tmp_path, "actor", 0)
    writer.step(0.5, "training", 5, version=4, generated_with=[2, 3])
    writer.body(1.0, 3.0, "window", "rollout", 5, ["a"], version=4, profiler=False)
    writer.body(4.0, 6.0, "stage", "update", 5, ["a"], version=4, profiler=False)
    (step,) = _run(tmp_path, writer)
    assert (step.generated_with, step.trained_at, step.staleness) == ([2, 3], [4], 2)


def test_a_killed_process_has_numbers_too(tmp_path):
    """A stage without an end lasts as long as its process is known to have lived; nothing raises."""
    writer = Writer(tmp_path, "actor", 0)
    writer.write(1.0, "enter", id=1, what="stage", name="update", step=1, occurrence=1)
    writer.step(4.0, "training", 1)
    writer.close(4.0, reason=None)
    (step,) = measure(load(tmp_path))
    assert step.devices[0].kinds["training"] == 3 * SECOND


def test_too_many_steps_are_left_out_and_counted(tmp_path, monkeypatch):
    """A run cannot fill the memory by the number of its steps; how many are left out is known."""
    run = load(write_run(tmp_path, 2, (1, 2, 3)))
    whole = measure(run)
    most = sum(len(device.pieces) for device in whole[0].devices)
    monkeypatch.setattr("profwin.evidence.phases.MOST_PIECES", most)
    assert [step.step for step in measure(run)] == [1, 2]
    assert count_steps(run) == len(whole) == 3
