"""Events: calls that tell the loop of their owner where it is."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import weakref

import pytest
from patch_support import installed, patch, standing

import profwin
from profwin.configuration import current
from profwin.errors import PlanError
from profwin.patch import owners
from profwin.testing import RecordingEngine

LOOP = '[[loop]]\nmode = "sync"\nowner = "self"\nengine = "self.engine"\n'
BEGIN = patch("mod:Trainer.begin", "events", before='[{ event = "step_begins", number = "self.step" }]')
TEXT = (
    LOOP
    + BEGIN
    + patch("mod:Trainer.collected", "events", after='["samples_in_hand"]')
    + patch("mod:Trainer.end", "events", after='["step_ends"]')
    + patch("mod:Trainer.fail", "events", error='["loop_fails"]')
)


@pytest.fixture
def stand(tmp_path):
    """Give modules to patch."""
    with standing(tmp_path) as stand:
        yield stand


def trainer_of(module, step=2, device="pretend:0"):
    """Return a trainer with an engine of its own."""
    trainer = module.Trainer(step)
    trainer.engine = RecordingEngine(device)
    return trainer


def test_before_after_and_one_loop_for_each_owner(stand):
    """Two trainers have a loop and an engine each; only the selected step is recorded."""
    module = stand.load("mod")
    with installed(TEXT, strict=True):
        stand.configure(devices=None)
        one, two = trainer_of(module, 2), trainer_of(module, 3, "pretend:1")
        for trainer in (one, two):
            trainer.begin()
            assert trainer.engine.recording is (trainer is one)
            assert trainer.collected() == {"count": 4}
            assert not trainer.engine.recording
            trainer.end()
        assert one.engine.order == ["start", "started", "stop", "stopped"]
        assert two.engine.order == []


def test_an_owner_is_held_weakly(stand):
    """The loop of an owner that is gone is gone too, and a new object at its address has a new one."""
    module = stand.load("mod")
    with installed(TEXT, strict=True):
        stand.configure(devices=None)
        trainer = trainer_of(module)
        trainer.begin()
        trainer.end()
        assert len(owners._loops) == 1
        gone = weakref.ref(trainer)
        del trainer
        gc.collect()
        assert gone() is None
        assert not owners._loops


def test_an_error_is_told_and_passes_unchanged(stand):
    """loop_fails closes what is open; the body's exception is the very object."""
    module = stand.load("mod")
    error = KeyError("theirs")
    with installed(TEXT, strict=True):
        stand.configure(devices=None)
        trainer = trainer_of(module)
        trainer.begin()
        with pytest.raises(KeyError) as caught:
            trainer.fail(error)
        assert caught.value is error
        assert trainer.engine.order == ["start", "started", "stop", "stopped"]


def test_a_generator_that_is_closed_early_has_not_failed(stand):
    """Its events are those of a return."""
    module = stand.load("mod")
    begin = '[{ event = "step_begins", number = "n" }]'
    end = '[{ event = "loop_fails", when = "self.config.missing" }]'
    text = LOOP + patch("mod:Trainer.batches", "events", before=begin, after='["step_ends"]', error=end)
    with installed(text, strict=True):
        stand.configure(devices=None)
        trainer = trainer_of(module)
        batches = trainer.batches(2)
        assert next(batches) == 0
        assert trainer.engine.recording
        batches.close()
        assert trainer.engine.order == ["start", "started", "stop", "stopped"]


def test_an_error_stays_the_bodys_even_where_its_events_fail(stand, caplog):
    """What our own part raises after it, under strict too, is only said."""
    module = stand.load("mod")
    text = LOOP + patch("mod:Trainer.fail", "events", error='[{ event = "loop_fails", when = "self.no.such" }]')
    with installed(text, strict=True), caplog.at_level(logging.WARNING, "profwin"):
        stand.configure(devices=None)
        with pytest.raises(KeyError, match="theirs"):
            trainer_of(module).fail(KeyError("theirs"))
    assert "self.no.such" in caplog.text


def test_events_of_a_coroutine_do_not_block_the_event_loop(stand):
    """They are told by Loop.tell: other tasks go on while an engine starts."""
    module = stand.load("mod")
    text = LOOP + patch(
        "mod:Trainer.sync",
        "events",
        before='[{ event = "step_begins", number = "version" }]',
        after='["loop_ends"]',
    )

    async def main():
        trainer = trainer_of(module)
        trainer.engine = RecordingEngine("pretend:0", asynchronous=True)
        released = asyncio.Event()
        trainer.engine.delay("start", released)
        task = asyncio.create_task(trainer.sync(2))
        await asyncio.sleep(0.05)
        assert not task.done()
        released.set()
        assert await task == ("synced", 2)
        assert trainer.engine.order == ["start", "started", "stop", "stopped"]

    with installed(text, strict=True):
        stand.configure(devices=None)
        asyncio.run(main())


def test_what_the_call_returned(stand):
    """An event after the call may be read from its result, and depend on it."""
    module = stand.load("mod")
    text = (
        '[[loop]]\nmode = "fully_async"\nowner = "self"\nengine = "self.engine"\n'
        + patch(
            "mod:Trainer.collected",
            "events",
            after='[{ event = "weights_synced", number = "return.count", when = "return.count" }]',
        )
        + patch("mod:Trainer.sync", "events", after='[{ event = "weights_about_to_sync", number = "return.1" }]')
    )
    with installed(text, strict=True):
        stand.configure(devices=None, steps="5")
        trainer = trainer_of(module)
        assert trainer.collected() == {"count": 4}
        assert trainer.engine.recording
        assert asyncio.run(trainer.sync(5)) == ("synced", 5)
        assert not trainer.engine.recording


def test_a_part_without_devices_is_none(stand):
    """Where the path of the hybrid devices leads to an empty list, the loop has no such part."""
    module = stand.load("mod")
    text = (
        LOOP.replace("sync", "separate")
        + 'hybrid_devices = "self.lent"\n'
        + BEGIN
        + patch("mod:Trainer.end", "events", before='["devices_to_generation"]', after='["step_ends"]')
    )
    with installed(text, strict=True):
        stand.configure(devices=None)
        trainer = trainer_of(module)
        trainer.lent = []
        trainer.begin()
        trainer.end()
        assert [record["name"] for record in stand.records("open")] == ["rollout"]
        other = trainer_of(module, device="pretend:1")
        other.lent = ["pretend:2"]
        other.begin()
        other.end()
        assert [record["name"] for record in stand.records("open")][1:] == ["rollout", "rollout_hybrid"]


def test_training_steps_as_events(stand, monkeypatch):
    """A step that begins ends the one before; without a loop it is the process's, and a session leaves none behind."""
    module = stand.load("mod")
    text = patch("mod:Trainer.begin", "events", before='[{ event = "training_step_begins", number = "self.step" }]')
    text += patch("mod:Trainer.end", "events", after='["training_step_ends"]') + patch("mod:Trainer.update", "stage")
    with installed(text, strict=True):
        stand.configure()
        for step in (1, 2, 3):
            trainer = module.Trainer(step)
            trainer.begin()
            trainer.update(step)
        module.Trainer(0).end()
        module.Trainer(0).end()
        trainer.update(0)
        module.Trainer(2).begin()
        assert len(owners._steps) == 1
        ended = current().position
        profwin.shutdown()
        monkeypatch.setattr(ended, "end_training", None)  # it is not called any more
        stand.configure()
        module.Trainer(3).begin()
        trainer.update(0)
    assert [record["step"] for record in stand.records("enter")] == [2]
    assert not owners._steps


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("self.engine", "self.nothing"), "self.nothing"),
        (TEXT.replace("self.engine", "self.config"), "start_profile"),
        (TEXT.replace("self.step", "self.config"), "step"),
        (TEXT.replace('owner = "self"', 'owner = "self.nothing"'), "self.nothing"),
    ],
)
def test_what_cannot_be_found_leaves_the_calls_alone(stand, caplog, text, words):
    """No event is told then, the body runs and one warning says why; under strict the body does not run."""
    module = stand.load("mod")
    with installed(text), caplog.at_level(logging.WARNING, "profwin"):
        stand.configure()
        for _ in range(2):
            trainer = trainer_of(module)
            trainer.begin()
            assert trainer.collected() == {"count": 4}
            trainer.end()
        assert any(words in message for message in caplog.messages)
        assert stand.entered() == []
    with installed(text, strict=True):
        stand.configure(strict=True)
        with pytest.raises((PlanError, profwin.SettingError), match=words):
            trainer_of(module).begin()


def test_a_forked_child_has_loops_of_its_own(stand):
    """What the parent's loops opened is not the child's to close."""
    module = stand.load("mod")
    with installed(TEXT, strict=True):
        stand.configure(devices=None)
        trainer = trainer_of(module)
        trainer.begin()
        child = os.fork()
        if not child:
            os._exit(len(owners._loops) + len(owners._steps))
        assert os.waitpid(child, 0)[1] == 0
        assert trainer.engine.recording
        trainer.end()
