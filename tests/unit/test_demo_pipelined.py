"""The demo's checks of weight versions, and of what ran at the same time on different devices."""

from __future__ import annotations

import pytest
from demo_run_directory import GENERATED, WORK, RunDirectory

from profwin.demo.overlap import Overlap, measure, verify_overlap
from profwin.demo.scheduler import DECODING
from profwin.demo.verify import Check, StepWork, verify
from profwin.demo.versions import verify_age, verify_generation
from profwin.demo.witness import gather

WINDOW = "step_000002/rollout.pt.trace.json.gz"
OTHER = "pretend:other"
MILLISECOND = 1_000_000


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    """A run as it should be: a window from 10 to 20 ms, stages of 10 ms each from 21 ms on."""
    return RunDirectory(str(tmp_path / "run"))


def generation(run: RunDirectory) -> list[str]:
    """Return the problems with what windows hold."""
    return verify_generation(gather(run.write()), {2: WORK}).problems


def test_a_window_of_one_version_passes(run: RunDirectory) -> None:
    """A window that holds its own step's generation alone has no problem."""
    assert generation(run) == []


def test_generation_with_other_weights_is_seen(run: RunDirectory) -> None:
    """A decoding step with newer weights in a window fails, by the range that the engine wrote itself."""
    operators = run.traces[WINDOW][3]
    operators[f"{DECODING} 2"] = operators.pop(GENERATED)
    assert generation(run) == [f"{WINDOW} holds '{DECODING} 2' 3 times, in step 2"]


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_decoding_step_too_few_or_too_many_is_seen(run: RunDirectory, difference: int) -> None:
    """A window must hold exactly the decoding steps that its engine counted."""
    run.traces[WINDOW][3][GENERATED] += difference
    assert generation(run) == [f"'rollout' of step 2 holds {3 + difference} decoding steps, not 3"]


def test_generation_in_a_stage_is_seen(run: RunDirectory) -> None:
    """Decoding that got into a training stage's trace fails."""
    run.traces["step_000002/advantages.pt.trace.json.gz"][3][GENERATED] = 1
    assert generation(run) == ["'advantages' of step 2 holds 1 decoding steps, not 0"]


@pytest.mark.parametrize("said", [None, 2])
def test_a_trace_that_says_another_version_is_seen(run: RunDirectory, said: int | None) -> None:
    """Windows and stages of step n must say weight version n - 1."""
    run.traces["step_000002/actor_update.pt.trace.json.gz"][2]["weight_version"] = said
    assert generation(run) == [f"step_000002/actor_update.pt.trace.json.gz says weight version {said}, not 1"]


def test_samples_may_be_as_old_as_the_loop_allows(run: RunDirectory) -> None:
    """Samples of version 0 that were trained on at version 1 are one behind."""
    evidence = gather(run.write())
    assert verify_age(evidence, {2: WORK}, 1).passed
    assert verify_age(evidence, {2: WORK}, 0).problems == ["step 2 was trained on samples of the versions [0, 1]"]


def test_samples_from_the_future_are_seen(run: RunDirectory) -> None:
    """No sample can come from weights that the training on it makes."""
    work = StepWork({"rollout": 3}, updates=2, generated_with=[0, 2])
    run.manifest["2"]["generated_with"] = [0, 2]
    assert verify_age(gather(run.write()), {2: work}, 2).problems == [
        "step 2 was trained on samples of the versions [0, 2]"
    ]


@pytest.mark.parametrize("field", ["generated_with", "trained_at", "staleness"])
def test_a_manifest_that_says_otherwise_is_seen(run: RunDirectory, field: str) -> None:
    """Each of the manifest's three fields must be what the trainer counted."""
    del run.manifest["2"][field]
    (problem,) = verify_age(gather(run.write()), {2: WORK}, 1).problems
    assert problem.startswith("step 2 in the manifest: ")


def overlaps(run: RunDirectory) -> tuple[list[Overlap], Check]:
    """Measure step 2, and check it."""
    evidence = gather(run.write())
    measured = measure(evidence, [2])
    return measured, verify_overlap(measured, [2])


def move_window(run: RunDirectory, start: int, end: int) -> None:
    """Move the window to another device and time, in milliseconds."""
    run.records("driver", "open")[0].update(devices=[OTHER], t=start * MILLISECOND)
    run.records("driver", "close")[0]["t"] = end * MILLISECOND
    _start, _end, metadata, operators = run.traces[WINDOW]
    run.traces[WINDOW] = (start, end, metadata, operators)


def test_the_share_beside_training_is_measured(run: RunDirectory) -> None:
    """Of a window of 20 ms on another device, the 10 ms beside the first stage count, and nothing before or after."""
    move_window(run, 12, 32)
    (overlap,), check = overlaps(run)
    assert (overlap.device, overlap.others) == (OTHER, ("pretend:test",))
    assert overlap.rollout == 20 * MILLISECOND
    assert overlap.beside == overlap.beside_in_traces == 10 * MILLISECOND
    assert overlap.share == 0.5
    assert check.passed
    # What is wanted between devices is no overlap on one.
    assert all(each.passed for each in verify(gather(run.path), {2: WORK}))


def test_devices_that_waited_for_each_other_are_seen(run: RunDirectory) -> None:
    """A window on another device that ended before training began fails the check."""
    move_window(run, 10, 20)
    found, check = overlaps(run)
    assert found == []
    assert check.problems == ["by the journals, no rollout of step 2 ran while another device trained"]


def test_an_overlap_on_the_same_device_is_not_the_wanted_one(run: RunDirectory) -> None:
    """A window beside a stage of its own device does not count."""
    run.records("driver", "close")[0]["t"] = 25 * MILLISECOND
    found, check = overlaps(run)
    assert found == []
    assert not check.passed


def test_the_traces_must_show_it_too(run: RunDirectory) -> None:
    """Where the journals claim it and the traces show none, the check fails."""
    move_window(run, 12, 32)
    _start, _end, metadata, operators = run.traces[WINDOW]
    run.traces[WINDOW] = (12, 20, metadata, operators)
    _found, check = overlaps(run)
    assert check.problems == ["by the traces, no rollout of step 2 ran while another device trained"]


def test_stages_side_by_side_count_once(run: RunDirectory) -> None:
    """Two devices that train at the same time beside a window count as one time."""
    move_window(run, 20, 40)
    run.add("actor", 9, "training", "advantages", 21, 31, device="pretend:third")
    (overlap,), _check = overlaps(run)
    assert overlap.others == ("pretend:test", "pretend:third")
    assert overlap.beside == 18 * MILLISECOND
