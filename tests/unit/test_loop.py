"""The loop's state machine, event by event."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from profwin.loop import (
    EVENTS,
    PRESETS,
    BeginStep,
    CloseWindow,
    EndStep,
    LoopMachine,
    OpenWindow,
    Pause,
    Resume,
)

TURNS = ("sync", "colocate")
"""The modes whose devices generate and train in turn."""


def feed(machine, *events):
    """Feed events, where a number is the step that begins; return all actions."""
    actions = []
    for event in events:
        actions += machine.feed("step_begins", event) if isinstance(event, int) else machine.feed(event)
    return actions


def test_a_sync_step_closes_its_window_when_samples_are_in_hand():
    """In "sync" the window opens with the step and closes with the samples, before any training."""
    machine = LoopMachine("sync")
    assert feed(machine, 1) == [BeginStep(1), OpenWindow(1, "hybrid")]
    assert feed(machine, "samples_in_hand") == [CloseWindow(1, "hybrid", "end")]
    assert feed(machine, "devices_to_training") == []
    assert feed(machine, "step_ends") == [EndStep(1)]
    assert feed(machine, 2) == [BeginStep(2), OpenWindow(2, "hybrid")]


def test_a_colocate_window_stays_open_until_training_gets_the_devices():
    """In "colocate" requests are in flight after the samples: the window closes at the hand-over."""
    machine = LoopMachine("colocate")
    feed(machine, 1)
    assert feed(machine, "samples_in_hand") == []
    assert feed(machine, "devices_to_training") == [CloseWindow(1, "hybrid", "end")]
    assert feed(machine, "step_ends") == [EndStep(1)]


@pytest.mark.parametrize("mode", TURNS)
def test_more_generation_in_a_step_opens_another_window(mode):
    """Several parameter syncs, or dynamic sampling: each generation has a window, all of the same step."""
    machine = LoopMachine(mode)
    feed(machine, 3)
    for _ in range(3):
        assert feed(machine, "samples_in_hand", "devices_to_training") == [CloseWindow(3, "hybrid", "end")]
        assert feed(machine, "devices_to_generation") == [OpenWindow(3, "hybrid")]
    assert feed(machine, "step_ends") == [CloseWindow(3, "hybrid", "step"), EndStep(3)]


@pytest.mark.parametrize("mode", TURNS)
def test_generation_that_was_announced_already_opens_nothing(mode):
    """Saying at each sampling that the devices generate does not end or double the step's window."""
    machine = LoopMachine(mode)
    assert feed(machine, 1, "devices_to_generation", "devices_to_generation") == [BeginStep(1), OpenWindow(1, "hybrid")]


@pytest.mark.parametrize("mode", TURNS)
@pytest.mark.parametrize(("end", "reason"), [("step_ends", "step"), ("loop_fails", "failure"), ("loop_ends", "exit")])
def test_nothing_stays_open_after_an_end(mode, end, reason):
    """The end of the step, and failure or end of the loop, close the window and end the step, once."""
    machine = LoopMachine(mode)
    feed(machine, 5)
    assert feed(machine, end) == [CloseWindow(5, "hybrid", reason), EndStep(5)]
    assert feed(machine, end, "samples_in_hand", "devices_to_training", "devices_to_generation") == []


def test_a_new_step_ends_the_one_under_way():
    """Where a step's end is missing, the next step's begin closes and ends it first."""
    machine = LoopMachine("sync")
    assert feed(machine, 1, 2) == [
        BeginStep(1),
        OpenWindow(1, "hybrid"),
        CloseWindow(1, "hybrid", "step"),
        EndStep(1),
        BeginStep(2),
        OpenWindow(2, "hybrid"),
    ]


def test_a_step_that_begins_again_generates_again():
    """A repeated begin changes nothing while the window is open; after it, it opens another one (a retry)."""
    machine = LoopMachine("sync")
    feed(machine, 1)
    assert feed(machine, 1) == []
    assert feed(machine, "samples_in_hand", 1) == [CloseWindow(1, "hybrid", "end"), OpenWindow(1, "hybrid")]


def test_the_same_step_may_follow_a_failure():
    """After a failure the loop can begin again, with the same step too."""
    machine = LoopMachine("sync")
    feed(machine, 1, "loop_fails")
    assert feed(machine, 1) == [BeginStep(1), OpenWindow(1, "hybrid")]


def test_validation_between_steps_pauses():
    """A validation outside of steps pauses and resumes; its own generation opens no window."""
    machine = LoopMachine("colocate")
    assert feed(machine, "validation_begins", "devices_to_generation", "validation_ends") == [
        Pause(),
        Resume(),
    ]
    assert feed(machine, "validation_ends") == []


def test_validation_inside_an_open_window_suspends_it():
    """A validation while the devices generate closes the window, and opens another one after it."""
    machine = LoopMachine("colocate")
    feed(machine, 2)
    assert feed(machine, "validation_begins") == [CloseWindow(2, "hybrid", "paused"), Pause()]
    assert feed(machine, "validation_begins") == []
    assert feed(machine, "validation_ends") == [Resume(), OpenWindow(2, "hybrid")]


def test_validation_inside_a_step_after_its_generation_opens_nothing():
    """A validation after the window has closed leaves it closed."""
    machine = LoopMachine("sync")
    feed(machine, 2, "samples_in_hand")
    assert feed(machine, "validation_begins", "validation_ends") == [Pause(), Resume()]


def test_what_changes_during_a_validation_counts_after_it():
    """Generation announced during a validation is recorded from its end on; a hand-over is respected."""
    machine = LoopMachine("sync")
    feed(machine, 2, "samples_in_hand", "validation_begins", "devices_to_generation")
    assert feed(machine, "validation_ends") == [Resume(), OpenWindow(2, "hybrid")]
    feed(machine, "validation_begins", "devices_to_training")
    assert feed(machine, "validation_ends") == [Resume()]


@pytest.mark.parametrize("end", ["loop_fails", "loop_ends"])
def test_a_validation_without_end_does_not_pause_for_ever(end):
    """The next step's begin, and the failure or end of the loop, end a validation."""
    machine = LoopMachine("sync")
    assert feed(machine, "validation_begins", 1) == [Pause(), Resume(), BeginStep(1), OpenWindow(1, "hybrid")]
    assert feed(machine, "validation_begins", end) == [
        CloseWindow(1, "hybrid", "paused"),
        Pause(),
        EndStep(1),
        Resume(),
    ]


def test_an_unknown_mode_or_event_is_refused():
    """An unknown mode or event raises ValueError with what is allowed."""
    with pytest.raises(ValueError, match="sync, colocate, separate, fully_async"):
        LoopMachine("async")
    with pytest.raises(ValueError, match="samples_in_hand"):
        LoopMachine("sync").feed("step_begin", 1)


@pytest.mark.parametrize("step", [None, -1, True, "2", 2.0])
def test_a_wrong_step_is_refused_and_changes_nothing(step):
    """A step that is no integer of 0 or more raises ValueError and leaves the state as it was."""
    machine = LoopMachine("sync")
    feed(machine, 1)
    with pytest.raises(ValueError, match="integer of 0 or more"):
        machine.feed("step_begins", step)
    assert feed(machine, "samples_in_hand") == [CloseWindow(1, "hybrid", "end")]


def test_a_step_of_another_integer_type_becomes_an_int():
    """A numpy integer is taken, and passed on as a plain int."""
    (begin, _window) = LoopMachine("sync").feed("step_begins", np.int64(4))
    assert type(begin.step) is int


def test_actions_are_values():
    """Actions of different kinds differ, compare by value, hash, pickle and cannot be changed."""
    assert OpenWindow(1, "hybrid") == OpenWindow(1, "hybrid") != OpenWindow(2, "hybrid")
    assert OpenWindow(1, "hybrid") != BeginStep(1)
    assert len({Pause(), Pause(), Resume()}) == 2
    assert pickle.loads(pickle.dumps(CloseWindow(1, "hybrid", "end"))) == CloseWindow(1, "hybrid", "end")
    with pytest.raises(AttributeError):
        OpenWindow(1, "hybrid").step = 2


def test_presets_speak_of_known_events():
    """Every event in a preset exists, and each mode has a part that generates when a step begins."""
    for preset in PRESETS.values():
        events = [set(meanings) for meanings in preset.parts.values()]
        assert set().union(*events) <= set(EVENTS)
        assert any(meanings.get("step_begins") for meanings in preset.parts.values())
        assert preset.last is None or preset.last in EVENTS


@pytest.mark.parametrize("mode", TURNS)
def test_weight_syncs_move_nothing_where_devices_take_turns(mode):
    """In "sync" and "colocate" a weight sync changes the version alone."""
    machine = LoopMachine(mode)
    feed(machine, 1)
    assert machine.feed("weights_about_to_sync", 4) == machine.feed("weights_synced", 4) == ()
    assert machine.version == 4


def test_parts_of_another_mode_are_refused():
    """A part that a mode does not have raises ValueError with those that it has."""
    with pytest.raises(ValueError, match="sync has hybrid"):
        LoopMachine("sync", ["standalone"])
