"""Loops with standalone and hybrid devices: any order of events, and trainers that behave well, against a model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from loop_model import NUMBERED, Model, Recorder

from profwin.hooks import Loop
from profwin.loop import EVENTS

OTHER_EVENTS = [event for event in EVENTS if event not in NUMBERED]


class AnyOrder(RuleBasedStateMachine):
    """Any event at any time, and actions that fail anywhere."""

    mode = "separate"

    @initialize()
    def begin(self):
        """Start with an idle loop."""
        self.recorder, self.model = Recorder(), Model(self.mode)
        self.loop = Loop(self.mode, perform=self.recorder)

    def tell(self, event, *number):
        """Raise the event; an interrupt out of it is as good as any other order of things."""
        self.model.hear(event, *number)
        try:
            getattr(self.loop, event)(*number)
        except KeyboardInterrupt:
            pass

    @rule(event=st.sampled_from(NUMBERED), number=st.integers(0, 4))
    def numbered_event(self, event, number):
        """A step begins, or weights are or will be synced: in order, late, twice, or without its counterpart."""
        self.tell(event, number)

    @rule(event=st.sampled_from(OTHER_EVENTS))
    def other_event(self, event):
        """Any other event."""
        self.tell(event)

    @rule(failure=st.sampled_from([OSError("disk"), KeyboardInterrupt(), MemoryError()]))
    def next_action_fails(self, failure):
        """The next action, whichever it is, is done and then raises."""
        self.recorder.next_failure = failure

    @invariant()
    def windows_are_where_generation_is(self):
        """Each part that generates in a step has its window, no other has; nothing is opened twice or out of order."""
        if hasattr(self, "recorder"):
            assert self.recorder.breaches == []
            assert self.recorder.windows == self.model.windows()
            assert (self.recorder.step, self.recorder.paused) == (self.model.step, self.model.validating)

    def teardown(self):
        """After the loop's end nothing is open."""
        if hasattr(self, "recorder"):
            self.tell("loop_ends")
            assert self.recorder.idle


class AnyOrderFullyAsync(AnyOrder):
    """The same for "fully_async"."""

    mode = "fully_async"


QUICK = settings(max_examples=200, stateful_step_count=40, deadline=None)
AnyOrder.TestCase.settings = QUICK
AnyOrderFullyAsync.TestCase.settings = QUICK
TestAnyOrderSeparate = AnyOrder.TestCase
TestAnyOrderFullyAsync = AnyOrderFullyAsync.TestCase

rounds = st.lists(
    st.fixed_dictionaries({"stages": st.integers(0, 3), "lends_again": st.booleans(), "syncs": st.booleans()}),
    min_size=1,
    max_size=3,
)
steps_of_a_run = st.lists(
    st.fixed_dictionaries(
        {
            "lent": st.booleans(),
            "taken_back": st.sampled_from(["before the step", "in the step", "while samples are awaited"]),
            "rounds": rounds,
            "validation": st.sampled_from(["none", "on standalone devices", "on all devices"]),
            "answer": st.sampled_from(["once", "twice", "among late ones", "never"]),
            "announced": st.booleans(),
        }
    ),
    max_size=5,
)


class BodyError(Exception):
    """What a body of the loop raises."""


class Trainer:
    """A trainer that says the right event at the right time, and checks each of its own bodies.

    Args:
        mode: of its loop.
        fails_at: which body raises, counted from 0; None for none.
    """

    def __init__(self, mode, fails_at):
        self.mode, self.fails_at = mode, fails_at
        self.recorder = Recorder()
        self.loop = Loop(mode, perform=self.recorder)
        self.bodies, self.lent, self.expected = 0, False, 0

    def body(self, windows, step, *, paused=False):
        """Do some work while just these windows must be open; raise if it is this one's turn."""
        recorder = self.recorder
        assert (recorder.windows, recorder.step, recorder.paused) == (windows, step, paused)
        self.bodies += 1
        if self.bodies - 1 == self.fails_at:
            raise BodyError

    def lend(self, step=None):
        """Lend the hybrid devices to generation, in a step or outside of one."""
        self.loop.devices_to_generation()
        self.expected += step is not None and not self.lent
        self.lent = True

    def take_back(self):
        """Take the hybrid devices back."""
        self.loop.devices_to_training()
        self.lent = False

    def generate(self, step):
        """Generate where the devices are; each part's generation is recorded."""
        self.body({"standalone": step} | ({"hybrid": step} if self.lent else {}), step)
        self.loop.samples_in_hand()

    def train(self, step, stages):
        """Train on the hybrid devices, while the standalone ones go on generating in their open window."""
        for _ in range(stages):
            self.body({"standalone": step}, step)

    def within(self, number, step):
        """Do a step's rounds, as verl does them: wait for samples, take the devices back, train, sync, maybe lend."""
        self.expected += 1 + self.lent
        for turn in step["rounds"]:
            if self.lent and step["taken_back"] == "in the step":
                self.take_back()
            self.generate(number)
            self.take_back()
            self.train(number, turn["stages"])
            if turn["syncs"] and self.mode == "separate":
                self.loop.weights_about_to_sync(number)
                self.loop.weights_synced(number)
            if turn["lends_again"]:
                self.lend(number)
                self.generate(number)

    def validate(self, step):
        """Generate for a validation, which no window records, after the step."""
        if step["validation"] != "none":
            self.loop.validation_begins()
            if step["validation"] == "on all devices":
                self.lend()
            self.body({}, None, paused=True)
            self.loop.validation_ends()

    def separate(self, plan):
        """Train all steps of a plan in "separate"."""
        for number, step in enumerate(plan, start=1):
            if step["lent"]:
                self.lend()
            if step["taken_back"] == "before the step":
                self.take_back()
            self.loop.step_begins(number)
            self.within(number, step)
            self.loop.step_ends()
            self.body({}, None)
            self.validate(step)

    def fully_async(self, plan, version):
        """Train all steps of a plan in "fully_async", from a version on."""
        for now, step in enumerate(plan, start=version):
            if step["announced"]:
                self.loop.weights_about_to_sync(now)
                self.body({}, None)
            if step["lent"]:
                self.lend()
            self.answer(step["answer"], now)
            if step["answer"] == "never":
                self.loop.weights_about_to_sync(now)
                self.body({}, None)
            else:
                self.within(now + 1, step)

    def answer(self, how, version):
        """Say that a version is synced: once, twice, never, or among late answers of versions before."""
        if how != "never":
            self.loop.weights_synced(version)
        if how == "twice":
            self.loop.weights_synced(version)
        if how == "among late ones" and version:
            self.loop.weights_synced(version - 1)
            self.loop.weights_about_to_sync(version - 1)
            self.loop.step_begins(0)

    def run(self, plan, version=0):
        """Train all steps of a plan."""
        with self.loop:
            self.separate(plan) if self.mode == "separate" else self.fully_async(plan, version)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["separate", "fully_async"]), steps_of_a_run, st.sampled_from([0, 1, 7]))
def test_without_faults_each_part_has_a_window_around_each_generation(mode, plan, version):
    """A well-behaved trainer gets the windows of both parts, no more, and training never meets one."""
    trainer = Trainer(mode, None)
    trainer.run(plan, version)
    assert trainer.recorder.idle
    if mode == "separate":
        assert trainer.recorder.reasons == ["end"] * trainer.recorder.opened
        assert trainer.recorder.opened == trainer.expected


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["separate", "fully_async"]), steps_of_a_run, st.sampled_from([0, 7]), st.integers(0, 40))
def test_a_failure_anywhere_leaves_nothing_open(mode, plan, version, fails_at):
    """Whichever body raises, its exception passes, all before it was recorded, and nothing stays open."""
    trainer = Trainer(mode, fails_at)
    try:
        trainer.run(plan, version)
    except BodyError:
        assert trainer.bodies == fails_at + 1
    else:
        assert trainer.bodies <= fails_at
    assert trainer.recorder.idle
    assert trainer.recorder.opened == len(trainer.recorder.reasons)


@pytest.mark.parametrize("silent", ["devices_to_training", "devices_to_generation", "step_begins"])
def test_a_trainer_that_says_nothing_is_seen(silent):
    """The checks can fail: a trainer that leaves out an event is caught by its own bodies."""
    trainer = Trainer("separate", None)
    setattr(trainer.loop, silent, lambda *step: None)
    turn = {"stages": 1, "lends_again": True, "syncs": False}
    with pytest.raises(AssertionError):
        trainer.run([{"lent": True, "taken_back": "in the step", "rounds": [turn, turn], "validation": "none"}])
