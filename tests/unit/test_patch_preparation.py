"""[configure]: the session is set up from the program's own configuration, before the first call of a target."""

from __future__ import annotations

import asyncio
import logging
import os

import pytest
from patch_support import installed, patch, standing

import profwin
from profwin.configuration import current
from profwin.errors import PlanError

SETTINGS = (
    '[configure]\ntarget = "mod:Trainer.begin"\n[configure.settings]\nsteps = "self.config.steps"\n'
    'collect = { path = "self.discrete", map = { true = "stage", false = "step" } }\ndevices = "self.devices"\n'
    'output = "self.output"\n'
)


@pytest.fixture
def stand(tmp_path):
    """Give modules to patch."""
    with standing(tmp_path) as stand:
        yield stand


def trainer_of(stand, **attributes):
    """Return a trainer whose attributes are the settings."""
    trainer = stand.load("mod").Trainer()
    given = {"discrete": False, "devices": ["pretend:0"], "output": str(stand.directory / "out"), **attributes}
    vars(trainer).update(given)
    return trainer


def test_before_the_first_call_and_once(stand):
    """The session is there inside of the call; a second call changes nothing; children are given the settings."""
    trainer = trainer_of(stand)
    text = SETTINGS + patch("mod:Trainer.begin", "step", step='"self.step"')
    before = dict(os.environ)
    with installed(text, strict=True):
        assert current() is None
        trainer.begin()
        session = current()
        assert (session.settings.collect, session.settings.devices) == ("step", ("pretend:0",))
        assert stand.records("step")
        assert os.environ["PROFWIN_STEPS"] == "2"
        assert os.environ["PROFWIN_COLLECT"] == "step"
        del trainer.config  # it is not read any more
        trainer.begin()
        assert current() is session
        profwin.shutdown()
    assert dict(os.environ) == before


def test_a_coroutine_function_and_a_wrapper_below(stand):
    """It is one still, and what else the target is comes after the settings."""
    trainer = trainer_of(stand)
    text = SETTINGS.replace("Trainer.begin", "Trainer.sync") + patch("mod:Trainer.sync", "step", step='"version"')
    module_dict = dict(vars(type(trainer)))
    with installed(text, strict=True):
        assert asyncio.iscoroutinefunction(type(trainer).sync)
        assert asyncio.run(trainer.sync(2)) == ("synced", 2)
        assert [record["step"] for record in stand.records("step")] == [2]
    assert dict(vars(type(trainer))) == module_dict


def test_variables_win(stand, monkeypatch):
    """What PROFWIN_* gives is left to it, even if the path leads nowhere; None is not given."""
    trainer = trainer_of(stand, discrete=None, devices=None)
    monkeypatch.setenv("PROFWIN_STEPS", "7")
    monkeypatch.setenv("PROFWIN_COLLECT", "step")
    trainer.config = None
    with installed(SETTINGS, strict=True):
        trainer.begin()
        settings = current().settings
        assert settings.steps.text() == "7"
        assert settings.collect == "step"
        assert settings.devices is None


@pytest.mark.parametrize("steps", [None, [], ""])
def test_no_steps_is_off(stand, steps):
    """Without steps nothing is configured and nothing is put into the environment."""
    trainer = trainer_of(stand)
    trainer.config["steps"] = steps
    before = dict(os.environ)
    with installed(SETTINGS, strict=True):
        trainer.begin()
        assert current() is None
        assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [("config", {"steps": "x"}, "steps"), ("config", {}, "steps"), ("discrete", 3, "no entry in the map")],
)
def test_a_wrong_setting_leaves_profwin_off(stand, caplog, attribute, value, words):
    """It is said once and the call goes on; under strict it is raised."""
    trainer = trainer_of(stand, **{attribute: value})
    with installed(SETTINGS), caplog.at_level(logging.WARNING, "profwin"):
        trainer.begin()
        vars(trainer).update(config={"steps": [2]}, discrete=False)  # a session that begins late would lack what was
        trainer.begin()
        (warning,) = caplog.messages
        assert words in warning
        assert profwin.environment() == {}
    vars(trainer).update({attribute: value})
    with installed(SETTINGS, strict=True), pytest.raises(PlanError, match=words):
        trainer.begin()


def test_a_session_that_the_program_made_is_left(stand):
    """profwin.configure in the program's code wins over the plan; a session of the environment alone does not."""
    trainer = trainer_of(stand)
    with installed(SETTINGS, strict=True):
        stand.configure(steps="5")
        session = current()
        trainer.begin()
        assert current() is session
        assert "PROFWIN_STEPS" not in os.environ


def test_a_session_that_inherited_its_settings_is_made_anew(stand, monkeypatch):
    """An earlier call may have made it, before the settings were known."""
    from profwin.switch import SWITCH

    trainer = trainer_of(stand)
    monkeypatch.setenv("PROFWIN_STEPS", "2")
    monkeypatch.setenv("PROFWIN_OUTPUT", str(stand.directory / "out"))
    SWITCH.on = True
    with installed(SETTINGS, strict=True):
        assert current().settings.collect == "stage"
        trainer.begin()
        assert current().settings.collect == "step"


def test_settings_that_stand_in_several_places(stand):
    """Lists of names are put together from all that give something; of others the first that does counts."""
    trainer = trainer_of(stand, actor=True, critic=False, contents=["stack", "cuda"], second="step", first=None)
    text = (
        SETTINGS.replace("collect = { path", "collect = [{ path")
        .replace("self.discrete", "self.first")
        .replace('"step" } }', '"step" } }, "self.second", "self.nowhere"]')
    )
    text += (
        'roles = [{ path = "self.actor", map = { true = "actor,ref" } }, { path = "self.critic", map = { true = "c" }},'
        ' "self.nowhere"]\n'
        'torch_options = { path = "self.contents", map = { stack = "with_stack", shapes = "record_shapes" } }\n'
        'stages = "self.first"\n'
    )
    with installed(text, strict=True):
        trainer.begin()
        settings = current().settings
        assert settings.collect == "step"
        assert "ref" in settings.roles
        assert "c" not in settings.roles
        assert settings.stages is None
        assert settings.torch_options == {"with_stack": True}


def test_an_unused_configuration_is_not_read(stand):
    """Where there are no steps, what else the plan names need not be there."""
    trainer = trainer_of(stand)
    del trainer.discrete
    trainer.config["steps"] = None
    with installed(SETTINGS, strict=True):
        trainer.begin()
        assert current() is None
