"""The conflict rules between processes: who waits for whom, how long, and what is said about it."""

from __future__ import annotations

import logging
import time

import pytest
from core_support import Evidence, holder, once_waiting

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.errors import DeviceBusyError

PROMPT = 15.0
"""Seconds; far above what an entry takes that does not wait, far below the wait budgets here."""


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(**{"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "mine", **more})


@training_stage
def update():
    """Train."""


def test_stage_waits_for_a_rollout_window_elsewhere(output):
    """Case 1: the window of another process has exited before the stage's collection begins, and nothing is skipped."""
    configure(output)
    with holder(output, run="mine") as other, training_step(1):
        with once_waiting(other.say):
            update()
        assert other.hear() == "left"
        other.say()
        other.finish()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["name"] for each in evidence.collections()] == ["rollout", "update"]
    assert evidence.collections(name="update")[0]["waited"] > 0.05


def test_devices_that_are_not_shared_never_wait(output):
    """Case 1: a stage on another device begins while the window of the other process goes on."""
    configure(output, devices="pretend:second")
    with holder(output, run="mine") as other, training_step(1):
        began = time.monotonic()
        update()
        assert time.monotonic() - began < PROMPT
        other.say()
        assert other.hear() == "left"
        other.say()
        other.finish()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (window,) = evidence.collections(name="rollout")
    (stage,) = evidence.collections(name="update")
    assert window["t"] < stage["t"] < stage["end"] < window["end"]


def test_stage_never_waits_for_training_elsewhere(output):
    """A device that another process trains on is skipped at once, as "peer"; nobody's fault, even under strict."""
    configure(output, strict=True)
    with holder(output, 'training_stage("theirs")'), training_step(1):
        began = time.monotonic()
        update()
        assert time.monotonic() - began < PROMPT
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("update", "peer")]
    assert "theirs" in evidence.of("skip")[0]["holder"]


def test_on_busy_skip_does_not_wait(output):
    """With on_busy="skip" nobody waits for a rollout window elsewhere, and the skip names it."""
    configure(output, on_busy="skip")
    with holder(output) as other, training_step(1):
        began = time.monotonic()
        update()
        with rollout_window(1):
            pass
        assert time.monotonic() - began < PROMPT
        pid = other.pid
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("update", "busy"), ("rollout", "busy")]
    assert all(f"pid {pid}" in skip["holder"] and "run other" in skip["holder"] for skip in evidence.of("skip"))


def test_the_budget_is_spent_once_a_step(output, caplog):
    """Once a step's budget for a device is used up, its later stages and windows do not wait; the next step does."""
    configure(output, wait_budget=0.4)
    with holder(output):
        with training_step(1):
            began = time.monotonic()
            update()
            first = time.monotonic() - began
            update()
            with rollout_window(1):
                pass
        with training_step(2):
            began = time.monotonic()
            update()
            second = time.monotonic() - began
    assert first >= 0.4
    assert second >= 0.4
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("update", "busy"), ("update", "busy"), ("rollout", "busy"), ("update", "busy")]
    assert [skip["waited"] >= 0.4 for skip in evidence.of("skip")] == [True, False, False, True]
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_strict_raises_when_the_budget_is_used_up(output):
    """Under strict the body does not run, and the error names device, holder and time waited."""
    configure(output, strict=True, wait_budget=0.2)
    ran = []
    with holder(output) as other, training_step(1):
        for block in (training_stage("update"), rollout_window(1)):
            with pytest.raises(DeviceBusyError) as caught, block:
                ran.append(1)
            assert caught.value.device == "pretend-card"
            assert f"pid {other.pid}" in caught.value.holder
    assert not ran
    profwin.shutdown()


def test_a_wait_of_over_a_second_says_for_whom(output, caplog):
    """While a stage waits for more than a second, the log names the holder, once."""
    configure(output)
    with holder(output) as other, training_step(1):
        with once_waiting(other.say, 3.0):
            update()
        pid = other.pid
    said = [message for message in map(logging.LogRecord.getMessage, caplog.records) if f"pid {pid}" in message]
    assert len(said) == 1
    assert "update" in said[0]
    profwin.shutdown()
    assert Evidence(output).recorded().count("update") == 1


def test_window_waits_for_a_stage_elsewhere(output):
    """A window waits until the stage of another process has ended, and is recorded."""
    configure(output)
    with holder(output, 'training_stage("theirs")', run="mine") as other:
        with once_waiting(other.say), rollout_window(1):
            pass
        assert other.hear() == "left"
        other.say()
        other.finish()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["name"] for each in evidence.collections()] == ["theirs", "rollout"]


def test_window_goes_without_after_its_budget(output):
    """A window that cannot have the device within its budget runs unrecorded, and generation goes on."""
    configure(output, wait_budget=0.2)
    with holder(output, 'training_stage("theirs")'):
        generated = []
        with rollout_window(1) as window:
            generated.append(window.recorded)
    assert generated == [False]
    profwin.shutdown()
    assert Evidence(output).skips() == [("rollout", "busy")]
