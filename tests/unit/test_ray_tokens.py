"""What a driver tells an actor of its windows may come late, twice, or in another order: no two versions are mixed."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("ray", reason="ray is not installed: its own ways in are imported")

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import profwin
from profwin.ray import eventloop, recorder

PATIENCE = 60.0
NUMBERS = strategies.integers(0, 3)


class Actor:
    """An actor that knows for which step it records, and takes nothing twice."""

    def __init__(self):
        self.records: int | None = None

    def start_profile(self, metadata):
        """Record for a step."""
        assert self.records is None, "it records already"
        self.records = metadata["step"]

    def stop_profile(self):
        """Record no more."""
        assert self.records is not None, "it does not record"
        self.records = None


def order(step, name="rollout"):
    """Return what a driver asks for."""
    return {
        "step": step, "name": name, "version": step - 1, "start": "start_profile", "stop": "stop_profile",
        "devices": None, "revocable": False, "max_seconds": None,
    }  # fmt: skip


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Return a function that sets this process up, as an actor's whose calls are not run in an event loop."""
    for module in (recorder, eventloop):
        monkeypatch.setattr(module, "asynchronous", lambda: None)

    def configure():
        for name in ("_windows", "_over", "_newest"):
            monkeypatch.setattr(recorder, name, {})
        profwin.configure(steps="1-99", output=tmp_path, devices="pretend:a")

    return configure


class Messages(RuleBasedStateMachine):
    """One driver's messages to one actor, in any order and any number.

    The driver begins its windows one after the other: step `n` has the token with number `n`. Which of its latest four
    windows a message is about is drawn, so that also the stop of a window comes before its start, or after the start of
    the next two.
    """

    def __init__(self, configure):
        super().__init__()
        configure()
        self.actor, self.begun = Actor(), 1
        self.answers, self.ended, self.whole, self.latest = {}, set(), set(), 0

    @rule()
    def go_on(self):
        """The driver begins the next window; nothing of it has arrived yet."""
        self.begun += 1

    @rule(back=NUMBERS)
    def start_arrives(self, back):
        """A start arrives, for the first time or again."""
        step = max(1, self.begun - back)
        records, before = self.actor.records, self.answers.get(step)
        answer = recorder.begin(self.actor, f"driver.{step}", order(step))
        if step in self.ended or step < self.latest:
            assert answer["reason"] == "ended", "it is over, or a later one has begun"
            assert self.actor.records == records, "and it has changed nothing"
        elif before is not None:
            assert (answer, self.actor.records) == (before, records), "once more, the same"
        else:
            assert (answer["recorded"], self.actor.records) == (True, step), "none of this driver's is in the way"
            self.answers[step], self.latest = answer, step

    @rule(back=NUMBERS)
    def stop_arrives(self, back):
        """A stop arrives, for the first time or again."""
        step = max(1, self.begun - back)
        records = self.actor.records
        answer = recorder.end(self.actor, f"driver.{step}")
        assert answer["detail"] == ""
        # False where it never began, or was ended by a later one's start: then it is not as whole as its driver thinks.
        if step == self.latest:
            self.whole.add(step)
        assert answer["known"] is (step in self.whole)
        self.ended.add(step)
        assert self.actor.records == (None if records == step else records)

    @invariant()
    def what_records_is_the_latest(self):
        """Nothing that is over is recorded, and nothing but the latest window that has begun."""
        assert self.actor.records in (None, self.latest)
        assert self.actor.records not in self.ended
        assert len(recorder._windows) == (self.actor.records is not None)

    def teardown(self):
        """Whatever came, a stop of the latest window leaves nothing recording."""
        recorder.end(self.actor, f"driver.{self.latest}")
        assert self.actor.records is None
        profwin.shutdown()


def test_messages_in_any_order(configured):
    """Each start and stop has its effect once, and none after what makes it late."""
    run_state_machine_as_test(
        lambda: Messages(configured), settings=settings(max_examples=150, stateful_step_count=25, deadline=None)
    )


class Held(Actor):
    """An actor whose methods go on only when they may."""

    def __init__(self):
        super().__init__()
        self.inside, self.may = threading.Event(), threading.Event()

    def start_profile(self, metadata):
        """Record for a step, when it may."""
        self.inside.set()
        assert self.may.wait(PATIENCE)
        super().start_profile(metadata)

    def stop_profile(self):
        """Record no more, when it may."""
        self.inside.set()
        assert self.may.wait(PATIENCE)
        super().stop_profile()


def asked_twice(actor, what, token, *more):
    """Ask for the same in two threads, the second while the first is inside; return both answers."""
    answers = []
    actor.inside.clear()
    actor.may.clear()
    threads = [threading.Thread(target=lambda: answers.append(what(actor, token, *more))) for _ in range(2)]
    threads[0].start()
    assert actor.inside.wait(PATIENCE)
    threads[1].start()
    threads[1].join(0.2)
    assert answers == [], "nobody has an answer before it is so"
    actor.may.set()
    for thread in threads:
        thread.join(PATIENCE)
    return answers


def test_asked_again_meanwhile(configured):
    """Who asks again while a start or a stop is under way hears how that ends, and not before."""
    configured()
    actor = Held()
    assert [each["recorded"] for each in asked_twice(actor, recorder.begin, "driver.1", order(1))] == [True, True]
    assert asked_twice(actor, recorder.end, "driver.1") == [{"known": True, "detail": ""}] * 2
    assert actor.records is None


def test_stop_that_is_not_confirmed(tmp_path, configured):
    """A stop of which the actor's process does not know whether it is done is no confirmation."""
    configured()
    profwin.configure(steps="1-9", output=tmp_path, devices="pretend:a", wait_budget=0.1)
    actor = Held()
    actor.may.set()
    asked = {**order(1), "revocable": True}
    assert recorder.begin(actor, "driver.1", asked)["recorded"]
    actor.may.clear()
    assert "not confirmed" in recorder.end(actor, "driver.1")["detail"]
    assert recorder.begin(actor, "driver.2", {**asked, "step": 2})["reason"] == "unknown"
    actor.may.set()
    profwin.shutdown()
    assert actor.records is None
