"""The assertions pass for right loops, and for each way to be wrong they fail, say where, and show it."""

from __future__ import annotations

import inspect
import os
import re

import pytest

import profwin
from profwin import paused, rollout_window, training_stage, training_step
from profwin.testing import (
    Host,
    Record,
    assert_all_recorded,
    assert_no_overlap,
    assert_rollout_before_training,
)

ALL = [assert_no_overlap, assert_rollout_before_training, assert_all_recorded]


@pytest.fixture
def host(tmp_path):
    """Return a pretend host."""
    with Host(tmp_path) as found:
        yield found


@training_stage
def update():
    """Train."""


def turns(steps=(1, 2), **more):
    """Generate and train in turns."""
    for step in steps:
        with rollout_window(step, **more):
            pass
        update()


def window_too_late():
    """Close the window after the stage."""
    with rollout_window(1):
        update()


def message(check, *arguments, **more):
    """Return what an assertion says when it fails."""
    with pytest.raises(AssertionError) as caught:
        check(*arguments, **more)
    return str(caught.value)


@pytest.mark.parametrize("check", ALL)
def test_turns_are_right(host, check):
    """A loop that takes turns passes every assertion."""
    turns()
    check(host.record)


@pytest.mark.parametrize("check", ALL)
def test_nothing_is_never_right(host, check):
    """Where profwin was off, or nothing ran, every assertion fails: silence proves nothing."""
    assert "nothing was recorded" in message(check, host.record)
    assert "nothing was recorded" in message(check, Record())
    host.configure(steps="none")
    turns()
    message(check, host.record)


@pytest.mark.parametrize("check", ALL)
def test_window_closed_after_the_stage(host, check):
    """A stage inside the window fails every assertion, which names both lines of code and draws what happened."""
    window_too_late()
    said = message(check, host.record)
    assert f"{__file__}:{window_too_late.__code__.co_firstlineno + 2}" in said
    assert check is assert_all_recorded or f"{__file__}:{inspect.unwrap(update).__code__.co_firstlineno}" in said
    assert re.search(r"^pretend-0$", said, re.MULTILINE)
    assert re.search(r"^  #+ +step 1 rollout, .*test_testing_assertions.py:\d+, closed: handover$", said, re.MULTILINE)
    assert re.search(r"^   +=+ +step 1 update, ", said, re.MULTILINE)


def test_enforced_handover_under_strict(host):
    """Under strict, where the stage's body did not run, the overlap is still found with its device and step."""
    host.configure(strict=True)
    with rollout_window(4), pytest.raises(profwin.WindowOverlapError):
        update()
    (overlap,) = host.record.overlaps
    assert (overlap.devices, overlap.step) == (("pretend-0",), 4)
    assert "began inside the open window" in message(assert_no_overlap, host.record)
    assert [event.kind for event in host.record.events] == ["opened", "overlap", "closed"]


def test_window_opened_after_its_training(host):
    """A step whose training is over before its rollout begins is the wrong way round."""
    with training_step(1):
        update()
    with rollout_window(1):
        pass
    assert_no_overlap(host.record)
    assert "before the step's first window" in message(assert_rollout_before_training, host.record)


def test_window_inside_a_stage(host):
    """Generation inside a stage's body is not before training."""
    with training_step(1), training_stage("whole"), rollout_window(1):
        pass
    said = message(assert_rollout_before_training, host.record)
    assert "window 'rollout' of step 1" in said
    assert "began inside stage 'whole'" in said


def test_more_windows_between_stages_are_allowed(host):
    """A step that generates, trains, generates and trains again is in order, and so are paused windows anywhere."""
    for _ in range(2):
        with rollout_window(1):
            pass
        update()
    with training_stage("validating"), paused(), rollout_window(1, name="validation"):
        pass
    assert_rollout_before_training(host.record)
    assert_rollout_before_training(host.record, step=1)


def test_windows_elsewhere_need_no_order(host):
    """An open window on a device that trains nothing is no overlap, whatever the stages do meanwhile."""
    mine, other = host.devices(2)
    engine = host.engine(other)
    with rollout_window(1, engine=engine), training_stage("update", devices=mine):
        pass
    assert_no_overlap(host.record)
    assert_rollout_before_training(host.record)
    assert_all_recorded(host.record, steps=1)
    assert engine.order == ["start", "started", "stop", "stopped"]


def test_one_step_at_a_time(host):
    """With a step, only that step is looked at; one that lacks windows or stages fails."""
    turns(steps=(1,))
    window_wrong = training_stage("early")(lambda: None)
    with rollout_window(2):
        window_wrong()
    assert_rollout_before_training(host.record, step=1)
    message(assert_rollout_before_training, host.record, step=2)
    assert "step 3 does not have both" in message(assert_rollout_before_training, host.record, step=3)
    assert_all_recorded(host.record, steps=1)
    assert "handover" in message(assert_all_recorded, host.record, steps=[1, 2])


def test_skipped_stage_is_never_success(host):
    """A stage that a failing profiler kept from being recorded is named with its line and the reason."""
    host.backend.fail("enter", name="update", times=1)
    turns()
    said = message(assert_all_recorded, host.record)
    assert f"stage 'update' of step 1 (pid {os.getpid()}, {__file__}:" in said
    assert "not recorded: backend" in said
    assert "told to fail" in said
    assert "step 1 has no recorded stage 'update'" in message(assert_all_recorded, host.record, stages="update")
    assert_all_recorded(host.record, steps=2, stages="update", windows=["rollout"])
    assert_no_overlap(host.record)


@pytest.mark.parametrize("action", ["exit", "export"])
def test_lost_data_is_never_success(host, action):
    """What was begun but could not be stopped or written is not recorded."""
    host.backend.fail(action, OSError("disk full"), name="rollout")
    turns()
    assert "disk full" in message(assert_all_recorded, host.record)


def test_expected_names(host):
    """Names and steps that are asked for and were not recorded are named; an empty tuple asks for none."""
    turns()
    assert_all_recorded(host.record, steps=[1, 2], stages=["update"], windows="rollout")
    assert_all_recorded(host.record, steps=1, stages=(), windows=())
    assert "step 2 has no recorded stage 'critic'" in message(assert_all_recorded, host.record, stages="critic")
    assert "step 1 has no recorded window 'reward'" in message(assert_all_recorded, host.record, windows="reward")
    said = message(assert_all_recorded, host.record, steps=[2, 3])
    assert "step 3 has no recorded window" in said
    assert "step 3 has no recorded stage" in said
    assert "step 2 has" not in said


def test_paused_is_left_out_but_no_success(host):
    """What paused() leaves out need not be recorded, and does not count where it is asked for."""
    turns()
    with paused():
        turns(steps=(3,), name="validation")
    assert_all_recorded(host.record)
    assert "step 3 has no recorded window 'validation'" in message(
        assert_all_recorded, host.record, steps=3, windows="validation", stages=()
    )


def test_pause_inside_a_window_is_whole(host):
    """A window with a pause in its middle has two collections and is recorded."""
    with rollout_window(1):
        with paused():
            pass
        assert host.record.windows[0].problem == "never left"
    update()
    assert len(host.record.windows[0].collections) == 2
    assert_all_recorded(host.record)


def test_steps_in_one_collection(host):
    """With collect="step" the stages of a step share a collection and are recorded."""
    host.configure(collect="step")
    for step in (1, 2):
        with rollout_window(step):
            pass
        with training_step(step):
            update()
            update()
    for check in ALL:
        check(host.record)
    assert [each.name for each in host.record.collections] == ["rollout", "step"] * 2


def test_many_problems_stay_readable(host):
    """A loop that is wrong a hundred times gives a message of some thirty lines."""
    for step in range(100):
        with rollout_window(step):
            update()
    for check in ALL:
        said = message(check, host.record)
        assert len(said.splitlines()) < 32
        assert "and 92 more" in said
        assert "are not shown" in said
        assert max(len(line) for line in said.splitlines() if "  - " not in line) < 200
