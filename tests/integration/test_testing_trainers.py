"""A trainer with the hooks of verl's three, wired to profwin, and what tests of its order find when a hook is wrong.

Bare, these are the cases of verl's own mock tests of its profiler calls: rollout stops after sampling, only after the
replicas sleep, before the first training stage; the standalone engine's at the step's end; once each.
"""

from __future__ import annotations

import pytest

from profwin import rollout_window, training_stage, training_step
from profwin.testing import Host, assert_all_recorded, assert_no_overlap, assert_rollout_before_training

STAGES = ["old_log_prob", "advantage", "update_actor"]
ALL = [assert_no_overlap, assert_rollout_before_training, assert_all_recorded]


class Trainer:
    """The order of calls of a verl trainer: what a mode does is in its hooks.

    Args:
        devices: those that train.
        engine: what generates.
    """

    def __init__(self, devices, engine):
        self.devices, self.engine = devices, engine
        self.step = 0
        self.window = None
        self.log = []

    def fit(self, steps):
        """Run the loop."""
        for self.step in steps:
            with training_step(self.step):
                self.on_step_begin()
                self.on_sample_begin()
                self.log.append("generate")
                self.on_sample_end()
                for name in STAGES:
                    with training_stage(name, devices=self.devices):
                        self.log.append(name)
                self.on_step_end()

    def on_step_begin(self):
        """Begin to record the rollout."""
        self.window = rollout_window(self.step, engine=self.engine)
        self.window.open()

    def on_sample_begin(self):
        """Do nothing."""

    def on_sample_end(self):
        """Send the replicas to sleep."""
        self.log.append("sleep")

    def on_step_end(self):
        """Send the weights."""
        self.log.append("sync")


class Sync(Trainer):
    """Rollout is over when the samples are there and the replicas sleep."""

    def on_sample_end(self):
        """End the rollout."""
        super().on_sample_end()
        self.window.close()


class Colocate(Trainer):
    """Requests in flight are aborted before the replicas sleep."""

    def on_sample_end(self):
        """End the rollout, after the last request."""
        self.log.append("abort")
        super().on_sample_end()
        self.window.close()


class Separate(Trainer):
    """A standalone engine goes on until the step ends; the hybrid one lends the training devices in some steps."""

    def __init__(self, devices, engine, hybrid):
        super().__init__(devices, engine)
        self.hybrid, self.lent = hybrid, None

    def on_sample_begin(self):
        """Lend the training devices to generation in every other step."""
        if self.step % 2:
            self.lent = rollout_window(self.step, engine=self.hybrid, name="rollout_hybrid")
            self.lent.open()

    def on_sample_end(self):
        """Take them back before training."""
        super().on_sample_end()
        if self.lent is not None:
            self.lent.close()
            self.lent = None

    def on_step_end(self):
        """End the standalone rollout and send the weights."""
        self.window.close()
        super().on_step_end()


class Forgetful(Sync):
    """Ends the rollout at the step's end, like the trainers before their profilers were kept apart."""

    def on_sample_end(self):
        """Send the replicas to sleep, and forget the rest."""
        Trainer.on_sample_end(self)

    def on_step_end(self):
        """End the rollout too late."""
        self.window.close()
        super().on_step_end()


class Keeping(Separate):
    """Keeps the lent devices over training."""

    def on_sample_end(self):
        """Forget to take the devices back."""
        Trainer.on_sample_end(self)

    def on_step_end(self):
        """Take them back too late."""
        super().on_step_end()
        Separate.on_sample_end(self)


@pytest.fixture
def host(tmp_path):
    """Return a pretend host that records steps 1 and 3 of 1 to 4."""
    with Host(tmp_path) as found:
        found.configure(steps="1,3")
        yield found


def make(kind, host):
    """Return a trainer on the devices that it has in its mode, and its engines."""
    shared, standalone = host.devices(2)
    if issubclass(kind, Separate):
        engine, hybrid = host.engine(standalone), host.engine(shared)
        return kind(shared, engine, hybrid), [engine, hybrid]
    engine = host.engine(shared)
    return kind(shared, engine), [engine]


@pytest.mark.parametrize("kind", [Sync, Colocate, Separate])
def test_right_hooks(host, kind):
    """In each mode the order is right, all that is selected is recorded, and engines start and stop once a step."""
    trainer, engines = make(kind, host)
    trainer.fit([1, 2, 3, 4])
    record = host.record
    for check in ALL:
        check(record)
    names = ["rollout", "rollout_hybrid"] if kind is Separate else ["rollout"]
    assert_all_recorded(record, steps=[1, 3], stages=STAGES, windows=names)
    assert record.steps == (1, 3)
    for engine in engines:
        assert engine.order == ["start", "started", "stop", "stopped"] * 2


def test_separate_overlaps_on_other_devices_only(host):
    """The standalone rollout spans the training of its step, on its own device, and that is no overlap."""
    trainer, _engines = make(Separate, host)
    trainer.fit([1])
    record = host.record
    (standalone,) = [each for each in record.collections if each.name == "rollout"]
    trained = [each for each in record.collections if each.purpose == "training"]
    assert [each.name for each in trained] == STAGES
    assert all(standalone.opened < each.opened and each.end < standalone.end for each in trained)
    assert_no_overlap(record)


@pytest.mark.parametrize("kind", [Forgetful, Keeping])
@pytest.mark.parametrize("check", ALL)
def test_wrong_hooks(host, kind, check):
    """A hook that ends a window after the training fails every assertion, which shows the window and the stage."""
    trainer, engines = make(kind, host)
    trainer.fit([1, 2, 3, 4])
    with pytest.raises(AssertionError) as caught:
        check(host.record)
    said = str(caught.value)
    assert __file__ in said
    assert ("rollout_hybrid" if kind is Keeping else "'rollout'") in said
    assert check is assert_all_recorded or "'old_log_prob' of step 1" in said
    assert "pretend-0\n" in said
    # profwin kept them apart all the same: the engine was stopped before the first stage.
    assert [engine.order for engine in engines] == [["start", "started", "stop", "stopped"] * 2] * len(engines)


def test_stage_that_never_ran(host):
    """A stage that the loop left out is missed where it is asked for by name."""
    trainer, _engines = make(Sync, host)
    trainer.fit([1])
    assert_all_recorded(host.record)
    with pytest.raises(AssertionError, match="step 1 has no recorded stage 'update_critic'"):
        assert_all_recorded(host.record, steps=1, stages=[*STAGES, "update_critic"])


def test_engine_that_is_slow_to_stop(host):
    """With a stop that takes long, training begins only when it is confirmed: no overlap, and the order is right."""
    trainer, (engine,) = make(Sync, host)
    engine.delay("stop", 0.1)
    trainer.fit([1])
    for check in ALL:
        check(host.record)
    stopped = next(call for call in engine.calls if call.what == "stopped")
    assert stopped.time < host.record.stages[0].entered
