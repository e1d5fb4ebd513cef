"""A recording of a whole step can be asked for between its stages, by windows; never by another trainer."""

from __future__ import annotations

import time

import pytest
from core_support import Child, Evidence, once_waiting
from release_support import PROMPT, configure

import profwin
from profwin import rollout_window, training_stage, training_step

TRAINER = """
with training_step(1):
    with training_stage("first"{first}):
        say("first")
        hear()
    say("rest")
    hear()
    with training_stage("second"{second}):
        say("second")
        hear()
    say("between")
    hear()
    with training_stage("third"):
        pass
    say("third")
    hear()
profwin.shutdown()
"""


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@pytest.fixture
def trainer(output):
    """Return a function that starts a trainer that records whole steps, and says at which stage it is."""
    children = []

    def start(first="", second="", **settings):
        configure(output, collect="step", **settings)
        children.append(Child(TRAINER.format(first=first, second=second), **profwin.environment()))
        return children[0]

    yield start
    for child in children:
        child.__exit__()


def follow(child, *words):
    """Let a trainer go on from stage to stage."""
    for word in words:
        assert child.hear() == word
        child.say()


def finish(child):
    """Wait for a trainer's end."""
    status, _, errors = child.finish()
    assert status == 0, errors


def test_asked_between_stages_it_ends_at_once(output, trainer):
    """The window is recorded while the step goes on, and the step's next stage is recorded in a second segment."""
    child = trainer()
    follow(child, "first", "rest", "second")
    assert child.hear() == "between"
    began = time.monotonic()
    with rollout_window(1) as window:
        assert time.monotonic() - began < PROMPT
        assert window.recorded
    child.say()
    follow(child, "third")
    finish(child)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == []
    assert [(each["name"], each["segment"], each["reason"]) for each in evidence.collections()] == [
        ("step", 1, "asked"), ("rollout", 1, "end"), ("step", 2, "step"),
    ]  # fmt: skip
    (ask,) = evidence.of("ask")
    (asked,) = evidence.of("asked")
    assert (ask["answer"], asked["purpose"], asked["name"]) == ("sent", "rollout", "rollout")


def test_asked_during_a_stage_it_ends_with_the_stage(output, trainer):
    """The running stage is recorded to its end, then the window gets the device before the next stage."""
    child = trainer()
    assert child.hear() == "first"
    waiting = Child(
        """
with rollout_window(1) as window:
    say(window.recorded)
    hear()
profwin.shutdown()
""",
        **profwin.environment(),
    )
    with waiting:
        deadline = time.monotonic() + PROMPT
        while not Evidence(output).of("asked"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.1)
        assert not Evidence(output).of("close")
        child.say()
        assert child.hear() == "rest"
        assert waiting.hear() == "True"
        waiting.say()
        finish(waiting)
    child.say()
    follow(child, "second", "between", "third")
    finish(child)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (first, window, *_) = evidence.collections()
    assert (first["reason"], window["name"]) == ("asked", "rollout")
    (left,) = [each for each in evidence.of("exit") if each["id"] == evidence.of("enter", name="first")[0]["id"]][:1]
    assert left["t"] <= first["end"] <= window["t"]
    assert {"first", "rollout"} <= set(evidence.recorded())


def test_another_trainer_never_asks(output, trainer):
    """A stage that meets another process's recording of a step runs unrecorded at once, and does not ask."""
    child = trainer()
    follow(child, "first", "rest", "second")
    assert child.hear() == "between"
    with training_step(1):
        began = time.monotonic()
        with training_stage("theirs"):
            pass
        assert time.monotonic() - began < PROMPT
    child.say()
    follow(child, "third")
    finish(child)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("ask")
    assert evidence.skips() == [("theirs", "peer")]
    assert [each["reason"] for each in evidence.collections()] == ["step"]


def test_devices_that_came_later_can_be_asked_for(output, trainer):
    """A step's recording can be asked for a device that only its second stage brought in."""
    child = trainer(first=', devices="pretend:card"', second=', devices=["pretend:card", "pretend:more"]')
    follow(child, "first", "rest", "second")
    assert child.hear() == "between"
    began = time.monotonic()
    with rollout_window(1, devices="pretend:more") as window:
        assert window.recorded
        assert time.monotonic() - began < PROMPT
    child.say()
    follow(child, "third")
    finish(child)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.collections()[0]["reason"] == "asked"


def test_single_stages_cannot_be_asked_for(output):
    """A stage that is recorded by itself goes on; the window waits for its end and is then recorded."""
    configure(output)
    with Child(TRAINER.format(first="", second=""), **profwin.environment()) as child:
        assert child.hear() == "first"
        with once_waiting(child.say), rollout_window(1) as window:
            assert window.recorded
        follow(child, "rest", "second", "between", "third")
        finish(child)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (asking,) = evidence.of("enter", name="rollout")
    assert [each["answer"] for each in evidence.of("ask", pid=asking["pid"])] == ["refused"]
    assert not evidence.of("asked")
    assert evidence.collections()[0]["reason"] == "end"
