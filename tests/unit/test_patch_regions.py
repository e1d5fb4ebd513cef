"""What a patched call is: window, stage, step, sync, pause, span or silence; and nothing while profwin is off."""

from __future__ import annotations

import asyncio
import logging

import pytest
from patch_support import installed, patch, standing

import profwin
from profwin.errors import PlanError
from profwin.testing import RecordingEngine

STEP = '{ path = "self.step" }'


@pytest.fixture
def stand(tmp_path):
    """Give modules to patch."""
    with standing(tmp_path) as stand:
        yield stand


def test_window_and_stage(stand):
    """A window and a stage of the selected step are recorded, with their names; of another step they are not."""
    text = patch("mod:Trainer.generate", "window", step=STEP) + patch("mod:Trainer.update", "stage")
    text += patch("mod:free", "stage", name='"loose"', stage_role='"critic"')
    module = stand.load("mod")
    with installed(text, strict=True):
        stand.configure()
        for step in (1, 2, 3):
            trainer = module.Trainer(step)
            assert trainer.generate([1], count=2) == [1, 1]
            assert trainer.update(7) == ("updated", 7)
            assert module.free(1, weight=2) == ("free", 1, 2)
    assert stand.entered() == [("window", "rollout"), ("stage", "update"), ("stage", "loose")]
    assert [record["role"] for record in stand.records("enter")] == ["rollout", "train", "critic"]


def test_what_is_not_in_every_step_is_said_once(stand):
    """The journal says of windows and stages that the plan says it of, where a selected step has one, and once."""
    text = patch("mod:Trainer.generate", "window", step=STEP, every_step="false")
    text += patch("mod:Trainer.update", "stage", every_step="false") + patch("mod:free", "stage")
    module = stand.load("mod")
    with installed(text, strict=True):
        stand.configure(steps="2-3")
        for step in (1, 2, 3):
            trainer = module.Trainer(step)
            trainer.generate([1])
            trainer.update(7)
            module.free(1, weight=2)
            assert bool(stand.records("uneven")) == (step > 1)
    said = [(record["what"], record["name"]) for record in stand.records("uneven")]
    assert said == [("window", "rollout"), ("stage", "update")]


def test_nothing_is_looked_at_while_profwin_is_off(stand):
    """Not one part of a path is read then."""
    module = stand.load("mod")

    class Trap:
        def __getattr__(self, name):
            raise AssertionError("it was read")

    with installed(patch("mod:Trainer.generate", "window", step=STEP, when='"self.x"'), strict=True):
        assert module.Trainer.generate(Trap(), [1]) == [1]


def test_a_stage_is_not_looked_at_in_other_steps(stand):
    """On, but where no stage of the step at hand is recorded, not one part of a path is read."""
    module = stand.load("mod")

    class Trap:
        def __getattr__(self, name):
            raise AssertionError("it was read")

    with installed(patch("mod:Trainer.update", "stage", when='"self.x"'), strict=True):
        stand.configure()
        with profwin.training_step(1):
            assert module.Trainer.update(Trap(), 1) == ("updated", 1)


def test_when_and_unless(stand):
    """A call for which a condition says no runs plain."""
    text = patch("mod:Trainer.generate", "window", step=STEP, unless='["self.evaluating"]', when='"count"')
    module = stand.load("mod")
    trainer = module.Trainer()
    with installed(text, strict=True):
        stand.configure()
        assert trainer.generate([1], count=0) == []
        trainer.evaluating = True
        assert trainer.generate([1]) == [1]
        assert stand.entered() == []
        trainer.evaluating = False
        assert trainer.generate([1]) == [1]
        assert stand.entered() == [("window", "rollout")]


def test_step_span_pause_and_every_kind_of_method(stand):
    """Each role on each kind of callable, which returns what it returned."""
    text = patch("mod:Trainer.batches", "step", step='"n"') + patch("mod:Trainer.update", "stage")
    text += patch("mod:Trainer.loss", "span", name='"deep"') + patch("mod:Trainer.make", "pause")
    text += patch("mod:Trainer.decorated", "stage")
    module = stand.load("mod")
    with installed(text, strict=True):
        stand.configure()
        for item in module.Trainer().batches(2):
            assert module.Trainer().update(item) == ("updated", item)
        with profwin.training_step(2), profwin.training_stage("outer"):
            assert module.Trainer.loss(1) == ("loss", 1)
            assert module.Trainer.make(5).step == 5
        with profwin.training_step(2):
            assert module.Trainer().decorated(1) == ("decorated", 1)
            assert module.Trainer.decorated.attrs_3141562937 == {"kept": True}
    assert stand.entered() == [
        ("stage", "update"), ("stage", "update"), ("stage", "outer"), ("span", "deep"), ("stage", "decorated"),
    ]  # fmt: skip
    assert len(stand.records("paused")) == 1


def test_weight_sync_and_engine_of_a_coroutine(stand):
    """Syncs of a coroutine function close and open windows of an engine that a path gives."""
    text = patch("mod:Trainer.sync", "weight_sync", version='"version"', engine='"self.engine"')
    module = stand.load("mod")
    trainer = module.Trainer()
    trainer.engine = RecordingEngine("pretend:0", asynchronous=True)

    async def main():
        for version in range(3):
            assert await trainer.sync(version) == ("synced", version)

    with installed(text, strict=True):
        stand.configure(devices=None)
        asyncio.run(main())
        profwin.shutdown()
    assert trainer.engine.order == ["start", "started", "stop", "stopped"]
    assert [record["version"] for record in stand.records("open")] == [1]


def test_silence(stand, recwarn):
    """While profwin is on, and only then, the call is not made; a coroutine function gives an awaitable."""
    text = patch("mod:Trainer.update", "silence", when='"batch"') + patch("mod:Trainer.sync", "silence")
    text += patch("mod:Trainer.loss", "silence") + patch("mod:Trainer.make", "silence")
    module = stand.load("mod")
    trainer = module.Trainer()
    with installed(text, strict=True):
        assert trainer.update(1) == ("updated", 1)
        assert asyncio.run(trainer.sync(1)) == ("synced", 1)
        stand.configure()
        assert trainer.update(1) is None
        assert trainer.update(0) == ("updated", 0)
        assert asyncio.run(trainer.sync(1)) is None
        assert trainer.loss(1) is None
        assert module.Trainer.make(1) is None
        profwin.shutdown()
        assert trainer.update(1) == ("updated", 1)
    assert not recwarn.list


def test_silence_of_a_context_manager_is_refused(stand):
    """Its calls stand in a `with`, for which None is nothing."""
    text = "from contextlib import contextmanager\n\n\n@contextmanager\ndef timed(name):\n    yield\n"
    stand.load("mod", text)
    with pytest.raises(PlanError, match="context manager"), installed(patch("mod:timed", "silence"), strict=True):
        pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (patch("mod:Trainer.generate", "window", step='"self.no.such"'), "self.no.such"),
        (patch("mod:Trainer.generate", "window", step='"prompts"'), "step="),
        (patch("mod:Trainer.generate", "window", step=STEP, engine='"prompts"'), "engine"),
        (patch("mod:Trainer.generate", "window", step=STEP, when='"self.no.such"'), "self.no.such"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_leaves_the_call_alone(stand, caplog, text, words):
    """The call runs, one warning says why, the journal has a finding; under strict the call is not made."""
    module = stand.load("mod")
    trainer = module.Trainer()
    with installed(text), caplog.at_level(logging.WARNING, "profwin"):
        stand.configure()
        for _ in range(3):
            assert trainer.generate([1]) == [1]
        (warning,) = caplog.messages
        assert "mod:Trainer.generate" in warning
        assert words in warning
        (finding,) = stand.records("finding")
        assert finding["code"] == "plan-path"
        stand.configure(strict=True)
        with pytest.raises(PlanError, match=words):
            trainer.generate([1])
    assert stand.entered() == []


def test_the_exception_of_the_body_passes_unchanged(stand):
    """It is the very object, out of every role."""
    error = KeyError("theirs")
    for role, others in (("stage", {}), ("span", {}), ("pause", {}), ("step", {"step": '"self.step"'})):
        module = stand.load("mod")
        with installed(patch("mod:Trainer.fail", role, **others)):
            stand.configure()
            with profwin.training_step(2), pytest.raises(KeyError) as caught:
                module.Trainer().fail(error)
            assert caught.value is error
            profwin.shutdown()


def test_an_engine_path_may_lead_to_a_list(stand):
    """All engines there record the call."""
    module = stand.load("mod")
    with installed(patch("mod:Trainer.generate", "window", step=STEP, engine='"self.replicas"'), strict=True):
        stand.configure()
        trainer = module.Trainer(2)
        trainer.replicas = [RecordingEngine(f"pretend:{number}") for number in range(2)]
        trainer.generate([1])
        assert [engine.order for engine in trainer.replicas] == [["start", "started", "stop", "stopped"]] * 2
