"""Loops that take turns under any order of events, with failures anywhere, against a model of the devices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from loop_model import Recorder

from profwin.hooks import Loop

EVENTS_WITHOUT_STEP = [
    "samples_in_hand",
    "devices_to_training",
    "devices_to_generation",
    "validation_begins",
    "validation_ends",
    "step_ends",
    "loop_fails",
    "loop_ends",
]


class AnyOrder(RuleBasedStateMachine):
    """Any event at any time; `owner` is who holds the devices, as the events so far have said."""

    mode = "sync"

    @initialize()
    def begin(self):
        """Start with an idle loop."""
        self.recorder = Recorder()
        self.loop = Loop(self.mode, perform=self.recorder)
        self.under_way, self.owner, self.validating = None, None, False

    def tell(self, event, *step):
        """Raise the event; an interrupt out of it is as good as any other order of things."""
        try:
            getattr(self.loop, event)(*step)
        except KeyboardInterrupt:
            pass

    @rule(step=st.integers(0, 3))
    def step_begins(self, step):
        """A step begins, with or without the one before having ended."""
        self.under_way, self.owner, self.validating = step, "generation", False
        self.tell("step_begins", step)

    @rule(event=st.sampled_from(EVENTS_WITHOUT_STEP))
    def other_event(self, event):
        """Any other event."""
        if event in ("step_ends", "loop_fails", "loop_ends"):
            self.under_way, self.owner = None, None
            self.validating = self.validating and event == "step_ends"
        elif event in ("validation_begins", "validation_ends"):
            self.validating = event == "validation_begins"
        elif self.under_way is not None and event == "devices_to_generation":
            self.owner = "generation"
        elif self.under_way is not None and (event == "devices_to_training" or self.mode == "sync"):
            self.owner = "training"
        self.tell(event)

    @rule(failure=st.sampled_from([OSError("disk"), KeyboardInterrupt(), MemoryError()]))
    def next_action_fails(self, failure):
        """The next action, whichever it is, is done and then raises."""
        self.recorder.next_failure = failure

    @precondition(lambda self: self.owner == "generation" and not self.validating)
    @rule()
    def generation_is_recorded(self):
        """A generation between its events lies in an open window of its step."""
        assert self.recorder.window == self.under_way

    @precondition(lambda self: self.owner == "training")
    @rule()
    def training_is_alone(self):
        """A stage that runs while training holds the devices meets no open window, and its step is known."""
        assert self.recorder.window is None
        assert self.recorder.step == self.under_way

    @precondition(lambda self: self.validating)
    @rule()
    def validation_is_unrecorded(self):
        """Nothing is recorded during a validation."""
        assert self.recorder.paused
        assert self.recorder.window is None

    @invariant()
    def order_is_kept(self):
        """No overlap, no stop without a start, no second start; nothing open outside of a step."""
        if hasattr(self, "recorder"):
            assert self.recorder.breaches == []
            assert self.recorder.step == self.under_way
            assert self.recorder.window is None or self.under_way is not None
            assert self.recorder.paused == self.validating

    def teardown(self):
        """After the loop's end nothing is open."""
        if hasattr(self, "recorder"):
            self.tell("loop_ends")
            assert self.recorder.idle


class AnyOrderColocate(AnyOrder):
    """The same for "colocate"."""

    mode = "colocate"


QUICK = settings(max_examples=200, stateful_step_count=40, deadline=None)
AnyOrder.TestCase.settings = QUICK
AnyOrderColocate.TestCase.settings = QUICK
TestAnyOrderSync = AnyOrder.TestCase
TestAnyOrderColocate = AnyOrderColocate.TestCase

steps_of_a_run = st.lists(
    st.fixed_dictionaries(
        {
            "generations": st.integers(1, 3),
            "stages": st.integers(1, 4),
            "validation": st.sampled_from(["none", "after the step", "after the first generation"]),
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
        announces: whether it says before each generation that the devices generate, also before the first.
    """

    def __init__(self, mode, fails_at, announces):
        self.mode, self.fails_at, self.announces = mode, fails_at, announces
        self.recorder = Recorder()
        self.loop = Loop(mode, perform=self.recorder)
        self.generations = self.bodies = 0

    def body(self, *, window, step, paused=False):
        """Do some work that must be recorded, or not, as said; raise if it is this one's turn."""
        recorder = self.recorder
        assert (recorder.window, recorder.step, recorder.paused) == (window, step, paused)
        self.bodies += 1
        if self.bodies - 1 == self.fails_at:
            raise BodyError

    def validate(self, step):
        """Generate for a validation, which no window may record."""
        self.loop.validation_begins()
        self.body(window=None, step=step, paused=True)
        self.loop.validation_ends()

    def run(self, plan):
        """Train all steps of a plan."""
        with self.loop as loop:
            self.validate(None)
            for number, step in enumerate(plan, start=1):
                loop.step_begins(number)
                for turn in range(step["generations"]):
                    self.generate(number, again=turn > 0)
                    if turn == 0 and step["validation"] == "after the first generation":
                        self.validate(number)
                    for _ in range(step["stages"]):
                        self.body(window=None, step=number)
                loop.step_ends()
                if step["validation"] == "after the step":
                    self.validate(None)

    def generate(self, number, again):
        """Generate samples, whose last requests in "colocate" are in flight until they are aborted."""
        if again or self.announces:
            self.loop.devices_to_generation()
        self.generations += 1
        self.body(window=number, step=number)
        self.loop.samples_in_hand()
        if self.mode == "colocate":
            self.body(window=number, step=number)
        self.loop.devices_to_training()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["colocate", "sync"]), steps_of_a_run, st.booleans())
def test_without_faults_no_generation_is_missed_and_no_window_ends_early(mode, plan, announces):
    """A well-behaved trainer gets a window around each generation, and it ends at its hand-over."""
    trainer = Trainer(mode, None, announces)
    trainer.run(plan)
    assert trainer.recorder.opened == trainer.generations == sum(step["generations"] for step in plan)
    assert trainer.recorder.reasons == ["end"] * trainer.generations
    assert trainer.recorder.idle


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["colocate", "sync"]), steps_of_a_run, st.booleans(), st.integers(0, 40))
def test_a_failure_anywhere_leaves_nothing_open(mode, plan, announces, fails_at):
    """Whichever body raises, its exception passes, all before it was recorded, and nothing stays open."""
    trainer = Trainer(mode, fails_at, announces)
    try:
        trainer.run(plan)
    except BodyError:
        assert trainer.bodies == fails_at + 1
    else:
        assert trainer.bodies <= fails_at
    assert trainer.recorder.opened == trainer.generations == len(trainer.recorder.reasons)
    assert trainer.recorder.idle


def test_a_trainer_that_keeps_its_window_open_is_seen():
    """The checks can fail: a trainer that never says that it goes on to train is caught by its own stage."""
    trainer = Trainer("sync", None, announces=False)
    trainer.loop.samples_in_hand = trainer.loop.devices_to_training = lambda: None
    with pytest.raises(AssertionError):
        trainer.run([{"generations": 1, "stages": 1, "validation": "none"}])
