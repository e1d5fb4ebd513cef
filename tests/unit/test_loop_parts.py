"""The loops whose devices fall into two parts, event by event: "separate" and "fully_async"."""

from __future__ import annotations

import pytest

from profwin.loop import BeginStep, CloseWindow, EndStep, LoopMachine, OpenWindow, Pause, Resume

LENT = ("standalone", "hybrid")


def tell(machine, *events):
    """Feed events: a name, or a name with its number; return all actions."""
    return [action for event in events for action in machine.feed(*((event,) if isinstance(event, str) else event))]


def opened(step, *parts):
    """Return what opens a window of a step on each part."""
    return [OpenWindow(step, part) for part in parts]


def closed(step, reason, *parts):
    """Return what closes a window of a step on each part."""
    return [CloseWindow(step, part, reason) for part in parts]


def begin(step):
    """Return the event with which a step begins."""
    return "step_begins", step


def synced(version):
    """Return the event with which a version has reached the engines."""
    return "weights_synced", version


def syncing(version):
    """Return the event with which a version is about to reach the engines."""
    return "weights_about_to_sync", version


def test_standalone_devices_record_the_whole_step():
    """In "separate" samples, hand-overs and weight syncs leave the standalone window alone; it ends with the step."""
    machine = LoopMachine("separate")
    assert tell(machine, begin(1)) == [BeginStep(1), *opened(1, "standalone")]
    assert tell(machine, "samples_in_hand", "devices_to_training", syncing(1), synced(1), syncing(2), synced(2)) == []
    assert machine.version == 2
    assert tell(machine, "step_ends") == [*closed(1, "end", "standalone"), EndStep(1)]


def test_devices_lent_at_a_steps_end_record_from_the_next_steps_begin():
    """As verl does it: lent after the step, switched back while the next one waits for samples."""
    machine = LoopMachine("separate")
    tell(machine, begin(1), "step_ends")
    assert tell(machine, "devices_to_generation") == []
    assert tell(machine, begin(2)) == [BeginStep(2), *opened(2, *LENT)]
    assert tell(machine, "devices_to_training") == closed(2, "end", "hybrid")
    assert tell(machine, "step_ends") == [*closed(2, "end", "standalone"), EndStep(2)]
    assert tell(machine, begin(3)) == [BeginStep(3), *opened(3, "standalone")]


def test_devices_taken_back_before_the_step_record_nothing():
    """Lent and taken back between two steps, hybrid devices have no window."""
    machine = LoopMachine("separate")
    assert tell(machine, "devices_to_generation", "devices_to_training", begin(2)) == [
        BeginStep(2),
        *opened(2, "standalone"),
    ]


@pytest.mark.parametrize("start", [begin(3), synced(2)])
def test_devices_can_be_lent_again_within_a_step(start):
    """Each loan within a step has a hybrid window, and the standalone one goes on."""
    machine = LoopMachine("fully_async" if start == synced(2) else "separate")
    tell(machine, start)
    for _ in range(3):
        assert tell(machine, "devices_to_generation", "devices_to_generation") == opened(3, "hybrid")
        assert tell(machine, "devices_to_training", "devices_to_training") == closed(3, "end", "hybrid")


def test_a_loan_over_several_steps_has_a_window_in_each():
    """What is lent stays lent: the hybrid window ends with the step, and the next begins with the next."""
    machine = LoopMachine("separate")
    tell(machine, begin(1), "devices_to_generation")
    assert tell(machine, "step_ends") == [*closed(1, "end", *LENT), EndStep(1)]
    assert tell(machine, begin(2)) == [BeginStep(2), *opened(2, *LENT)]


def test_a_validation_on_lent_devices_suspends_both_windows():
    """A validation pauses both parts; devices that it borrows stay lent until they are taken back."""
    machine = LoopMachine("separate")
    tell(machine, begin(1))
    assert tell(machine, "validation_begins") == [*closed(1, "paused", "standalone"), Pause()]
    assert tell(machine, "devices_to_generation") == []
    assert tell(machine, "validation_ends") == [Resume(), *opened(1, *LENT)]
    assert tell(machine, "devices_to_training") == closed(1, "end", "hybrid")


@pytest.mark.parametrize("mode", ["separate", "fully_async"])
@pytest.mark.parametrize(("end", "reason"), [("loop_fails", "failure"), ("loop_ends", "exit")])
def test_after_a_failure_or_the_end_nothing_is_lent(mode, end, reason):
    """Failure and end of the loop close both windows, and the next step begins on standalone devices alone."""
    machine = LoopMachine(mode)
    tell(machine, begin(1), "devices_to_generation")
    assert tell(machine, end) == [*closed(1, reason, *LENT), EndStep(1)]
    assert tell(machine, begin(1)) == [BeginStep(1), *opened(1, "standalone")]


def test_a_new_step_ends_the_one_under_way():
    """Where a step's end is missing, the next step's begin closes the windows of both parts first."""
    machine = LoopMachine("separate")
    tell(machine, begin(1), "devices_to_generation")
    assert tell(machine, begin(2)) == [*closed(1, "step", *LENT), EndStep(1), BeginStep(2), *opened(2, *LENT)]


def test_a_step_lasts_from_sync_to_sync():
    """In "fully_async" the sync of version n ends step n, and step n + 1 begins after it."""
    machine = LoopMachine("fully_async")
    assert tell(machine, syncing(0)) == []
    assert tell(machine, synced(0)) == [BeginStep(1), *opened(1, "standalone")]
    assert tell(machine, "samples_in_hand", "devices_to_training") == []
    assert tell(machine, syncing(1)) == [*closed(1, "end", "standalone"), EndStep(1)]
    assert tell(machine, synced(1)) == [BeginStep(2), *opened(2, "standalone")]
    assert machine.version == 1


def test_devices_activated_within_the_sync_record_from_its_end():
    """Hybrid devices that are lent inside the sync, as verl does, get theirs together with the standalone ones."""
    machine = LoopMachine("fully_async")
    tell(machine, synced(0), syncing(1))
    assert tell(machine, "devices_to_generation") == []
    assert tell(machine, synced(1)) == [BeginStep(2), *opened(2, *LENT)]
    assert tell(machine, "devices_to_training") == closed(2, "end", "hybrid")


def test_without_standalone_devices_only_lent_ones_record():
    """A loop with hybrid devices alone has no standalone window."""
    machine = LoopMachine("fully_async", ["hybrid"])
    assert tell(machine, synced(0)) == [BeginStep(1)]
    assert tell(machine, "devices_to_generation") == opened(1, "hybrid")
    assert tell(machine, syncing(1)) == [*closed(1, "end", "hybrid"), EndStep(1)]


def test_without_hybrid_devices_loans_mean_nothing():
    """A loop with standalone devices alone has no hybrid window."""
    machine = LoopMachine("fully_async", ["standalone"])
    assert tell(machine, synced(0), "devices_to_generation") == [BeginStep(1), *opened(1, "standalone")]


def test_a_step_that_is_named_is_the_sync_before_it():
    """In "fully_async" the begin of step n counts as the sync of version n - 1, and says it only once."""
    machine = LoopMachine("fully_async")
    assert tell(machine, begin(8), synced(7)) == [BeginStep(8), *opened(8, "standalone")]
    assert machine.version == 7
    assert tell(machine, "step_ends") == [*closed(8, "step", "standalone"), EndStep(8)]
    assert tell(LoopMachine("fully_async"), begin(0)) == [BeginStep(0), *opened(0, "standalone")]


def test_late_and_doubled_answers_change_nothing():
    """Syncs of a version below the one in use are late, the one in use said twice is known; nothing moves."""
    machine = LoopMachine("fully_async")
    tell(machine, synced(5))
    assert tell(machine, synced(5), synced(4), syncing(4), begin(5), synced(0)) == []
    assert (machine.version, machine.step) == (5, 6)
    tell(machine, syncing(6))
    assert tell(machine, synced(4)) == []
    assert tell(machine, synced(6)) == [BeginStep(7), *opened(7, "standalone")]


def test_missing_events_of_a_sync_leave_nothing_open():
    """Without its begin a sync ends the step before; without its end nothing is open until the next one."""
    machine = LoopMachine("fully_async")
    tell(machine, synced(0))
    assert tell(machine, synced(1)) == [
        *closed(1, "step", "standalone"),
        EndStep(1),
        BeginStep(2),
        *opened(2, "standalone"),
    ]
    assert tell(machine, syncing(2)) == [*closed(2, "end", "standalone"), EndStep(2)]
    assert tell(machine, syncing(3), synced(3)) == [BeginStep(4), *opened(4, "standalone")]


def test_a_retried_sync_begins_its_step_again():
    """The sync of the very version in use, as a whole, closes the window and opens another one of the same step."""
    machine = LoopMachine("fully_async")
    tell(machine, synced(3))
    assert tell(machine, syncing(3), synced(3)) == [
        *closed(4, "end", "standalone"),
        EndStep(4),
        BeginStep(4),
        *opened(4, "standalone"),
    ]


@pytest.mark.parametrize("end", ["loop_fails", "loop_ends"])
def test_a_restart_may_begin_at_a_lower_version(end):
    """After failure or end of the loop, a lower version is a restart and begins its step."""
    machine = LoopMachine("fully_async")
    tell(machine, synced(7), end)
    assert tell(machine, synced(4)) == [BeginStep(5), *opened(5, "standalone")]


@pytest.mark.parametrize("event", ["weights_synced", "weights_about_to_sync"])
@pytest.mark.parametrize("version", [None, -1, True, "2", 2.0])
def test_a_wrong_version_is_refused_and_changes_nothing(event, version):
    """A version that is no integer of 0 or more raises ValueError and leaves the state as it was."""
    machine = LoopMachine("fully_async")
    tell(machine, synced(1))
    with pytest.raises(ValueError, match=r"version=.*integer of 0 or more"):
        machine.feed(event, version)
    assert (machine.version, machine.step, machine.windows) == (1, 2, {"standalone": 2})
