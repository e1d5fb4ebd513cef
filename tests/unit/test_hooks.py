"""`Loop`: actions are performed in order, whatever fails, and nothing reaches training that should not."""

from __future__ import annotations

import logging
import threading

import pytest
from loop_stand import stand_in

from profwin.errors import DeviceBusyError, StateError
from profwin.hooks import Loop
from profwin.loop import BeginStep, CloseWindow, EndStep, OpenWindow, Pause, Resume


@pytest.fixture
def stand(monkeypatch):
    """Put a stand in place of the modules that act."""
    return stand_in(monkeypatch)


def test_actions_go_to_an_injected_performer():
    """With `perform` each action is handed over, in order, and nothing else is touched."""
    actions = []
    with Loop("colocate", perform=actions.append) as loop:
        loop.step_begins(1)
        loop.samples_in_hand()
        loop.devices_to_training()
        loop.devices_to_generation()
        loop.step_ends()
        loop.validation_begins()
        loop.validation_ends()
    assert actions == [
        BeginStep(1),
        OpenWindow(1, "hybrid"),
        CloseWindow(1, "hybrid", "end"),
        OpenWindow(1, "hybrid"),
        CloseWindow(1, "hybrid", "step"),
        EndStep(1),
        Pause(),
        Resume(),
    ]


def test_actions_are_performed_on_windows_steps_and_pauses(stand):
    """A sync loop opens and closes real objects, with the arguments that the loop was given."""
    with Loop("sync", engine="engine", devices=["pretend:0"], name="sample") as loop:
        loop.step_begins(1, weight_version=7)
        loop.samples_in_hand()
        loop.step_ends()
        loop.validation_begins()
        loop.validation_ends()
    assert stand.calls == [
        "enter step 1",
        "open 1",
        "close 1",
        "exit step 1",
        "enter paused",
        "exit paused",
    ]
    expected = {"engine": "engine", "devices": ["pretend:0"], "name": "sample", "weight_version": 7}
    assert stand.arguments == [expected]


def test_the_bodys_exception_passes_and_closes_everything(stand):
    """An exception in the loop's body closes window, step and pause, and arrives unchanged."""
    error = KeyError("body")
    with pytest.raises(KeyError) as caught, Loop("sync") as loop:  # noqa: PT012  # the body is the point
        loop.step_begins(1)
        loop.validation_begins()
        raise error
    assert caught.value is error
    assert stand.calls[-3:] == ["enter paused", "exit step 1", "exit paused"]
    assert "close 1" in stand.calls


@pytest.mark.parametrize("failing", ["enter step 2", "open 2", "close 2", "exit step 2", "enter paused", "exit paused"])
def test_one_failing_action_keeps_no_other_from_being_done(stand, caplog, failing):
    """Whatever a single action raises, all others are done, the loop goes on, and one warning says so."""
    stand.plan[failing] = OSError("broken")
    with caplog.at_level(logging.WARNING, "profwin"), Loop("sync") as loop:
        for step in (1, 2, 3):
            loop.step_begins(step)
            loop.samples_in_hand()
            loop.step_ends()
            loop.validation_begins()
            loop.validation_ends()
    expected = {f"{what} {step}" for what in ("enter step", "open", "close", "exit step") for step in (1, 2, 3)}
    if failing == "enter step 2":
        expected.remove("exit step 2")
    assert expected <= set(stand.calls)
    assert stand.calls.count("open 2") == stand.calls.count("close 2") == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "broken" in caplog.text


def test_strict_errors_and_misuse_pass_after_the_other_actions(stand):
    """What profwin raises on purpose reaches the caller, after everything else of that event was done."""
    stand.plan["close 1"] = StateError("window", "do not")
    stand.plan["open 2"] = DeviceBusyError("gpu", "someone", 1.0)
    loop = Loop("sync")
    loop.step_begins(1)
    with pytest.raises(StateError):
        loop.step_begins(2)
    assert stand.calls == ["enter step 1", "open 1", "close 1", "exit step 1", "enter step 2", "open 2"]


def test_the_bodys_exception_is_not_replaced_by_a_strict_one(stand, caplog):
    """Where body and closing fail, the body's exception is what the caller sees; the other one is logged."""
    stand.plan["close 1"] = DeviceBusyError("gpu", "someone", 1.0)
    with caplog.at_level(logging.WARNING, "profwin"), pytest.raises(KeyError), Loop("sync") as loop:  # noqa: PT012  # as above
        loop.step_begins(1)
        raise KeyError
    assert "gpu" in caplog.text
    assert stand.calls[-1] == "exit step 1"


def test_an_interrupted_closing_is_tried_again_at_the_end(stand):
    """Ctrl-C while a window closes passes at once; the window is closed when the loop fails on it."""
    stand.plan["close 1"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), Loop("sync") as loop:  # noqa: PT012  # the body is the point
        loop.step_begins(1)
        loop.samples_in_hand()
    assert stand.calls == ["enter step 1", "open 1", "close 1", "exit step 1", "close 1"]


def test_an_interrupted_opening_leaves_nothing(stand):
    """Ctrl-C while a window waits for its device passes; the window is closed when the loop fails on it."""
    stand.plan["open 1"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), Loop("sync") as loop:
        loop.step_begins(1)
    assert stand.calls == ["enter step 1", "open 1", "close 1", "exit step 1"]


def test_a_wrong_step_is_refused(stand):
    """A step that is no integer raises ValueError and starts nothing."""
    with pytest.raises(ValueError, match="integer of 0 or more"):
        Loop("sync").step_begins("2")
    assert stand.calls == []


def test_a_wrong_mode_is_refused():
    """An unknown mode raises ValueError when the loop is made."""
    with pytest.raises(ValueError, match="use one of"):
        Loop("other")


@pytest.mark.parametrize("given", [{"hybrid_engine": "engine"}, {"hybrid_devices": ["pretend:0"]}])
@pytest.mark.parametrize("mode", ["sync", "colocate"])
def test_hybrid_devices_beside_others_need_a_mode_that_has_them(mode, given):
    """Where all devices are hybrid, as in "sync" and "colocate", saying which ones raises ValueError."""
    with pytest.raises(ValueError, match="separate or fully_async"):
        Loop(mode, **given)


def test_events_of_several_threads_come_one_after_the_other():
    """Eight threads that say the same thing at once close the window once."""
    actions = []
    loop = Loop("sync", perform=actions.append)
    loop.step_begins(1)
    barrier = threading.Barrier(8)

    def tell():
        barrier.wait()
        loop.samples_in_hand()

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert actions.count(CloseWindow(1, "hybrid", "end")) == 1
