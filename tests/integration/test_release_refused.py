"""Who cannot be asked for a device refuses at once, and who waits then keeps to the wait budget."""

from __future__ import annotations

import time

import pytest
from core_support import Evidence
from release_support import PROMPT, Holder, configure

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.errors import DeviceBusyError

BUDGET = 0.5
LEAST = 0.8 * BUDGET
"""Seconds; what was waited before counts too, so a whole budget may not be left."""


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@training_stage
def update():
    """Train."""


def timed(call):
    """Return how long a call takes."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


REFUSING = {
    "engine": {"engine": "Engine(revocable=False)"},
    "own profilers": {"engine": "None", "window": "rollout_window(step)"},
    "whole steps": {"engine": "None", "window": "rollout_window(step)", "PROFWIN_COLLECT": "step"},
}


@pytest.mark.parametrize("holder", REFUSING.values(), ids=REFUSING)
def test_what_cannot_be_asked_refuses_at_once(output, holder):
    """The refusal is journaled at once; the stage waits within its budget and runs unrecorded; the window goes on."""
    configure(output, wait_budget=BUDGET)
    with Holder(**holder) as other, training_step(1):
        assert LEAST < timed(update) < PROMPT
        assert other.leave() is True
        other.acts()
        pid = other.pid
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (skip,) = evidence.of("skip")
    assert (skip["reason"], skip["device"]) == ("busy", "pretend-card")
    assert f"pid {pid}" in skip["holder"]
    (ask,) = evidence.of("ask")
    assert ask["answer"] == "refused"
    assert skip["t"] - ask["t"] > LEAST * 1e9
    assert not evidence.of("asked")
    assert [each["reason"] for each in evidence.collections()] == ["end"]


def test_the_budget_is_spent_once_a_device_and_step(output):
    """Later stages of the step neither wait nor ask again; another device and the next step have their own budget."""
    configure(output, wait_budget=BUDGET)
    with Holder(**REFUSING["engine"]) as other:
        with training_step(1):
            assert timed(update) > LEAST
            assert timed(lambda: [update() for _ in range(5)]) < BUDGET
            with training_stage("elsewhere", devices="pretend:free"):
                pass
        with training_step(2):
            assert timed(update) > LEAST
        other.leave()
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "busy")] * 7
    assert len(evidence.of("ask")) == 2
    assert evidence.recorded() == ["rollout", "elsewhere"]


def test_strict_names_the_holder(output):
    """Under strict the body does not run, and the error names who has the device."""
    configure(output, wait_budget=BUDGET, strict=True)
    ran = []
    with Holder(**REFUSING["engine"]) as other, training_step(1):
        for block in (training_stage("update"), rollout_window(1, name="reward")):
            with pytest.raises(DeviceBusyError) as caught, block:
                ran.append(1)
            assert f"pid {other.pid}" in str(caught.value)
            assert "rollout window 'rollout' of step 1" in str(caught.value)
        other.leave()
        other.acts()
    assert not ran
    profwin.shutdown()


def test_another_run_is_never_asked(output):
    """An engine of another run goes on although it may be stopped at any time; the stage waits and is skipped."""
    configure(output, wait_budget=BUDGET)
    with Holder(PROFWIN_RUN="other", PROFWIN_PARENT="") as other, training_step(1):
        assert LEAST < timed(update) < PROMPT
        assert other.leave() is True
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("ask")
    assert not evidence.of("asked")
    assert "run other" in evidence.of("skip")[0]["holder"]


def test_who_does_not_wait_does_not_ask(output):
    """With on_busy="skip" neither stages nor windows ask, and the engine goes on."""
    configure(output, on_busy="skip")
    with Holder() as other, training_step(1):
        assert timed(update) < PROMPT
        with rollout_window(1, name="reward"):
            pass
        assert other.leave() is True
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "busy"), ("reward", "busy")]
    assert not evidence.of("ask")
    assert [each["reason"] for each in evidence.collections()] == ["end"]


def test_a_request_that_comes_late_means_nothing(output):
    """A request for an earlier holder does not end the next one: each hold has its own lease."""
    configure(output)
    from profwin.configuration import current
    from profwin.registry.lock import Busy

    registry = current().registry()

    def busy():
        outcome = registry.acquire(["pretend-card"], kind="training", run="mine")
        assert isinstance(outcome, Busy)
        return outcome

    def ask(outcome):
        return registry.ask(outcome, run="mine", purpose="training", name="update", step=1)

    with Holder(steps=(1, 2)) as other:
        earlier = busy()
        assert other.leave() is True
        assert other.hear() == "inside"
        for _ in range(10):
            ask(earlier)
        time.sleep(0.2)
        assert other.leave() is True
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("asked")
    assert [each["reason"] for each in evidence.collections()] == ["end", "end"]
