"""What Ray's jobs and actors get of our variables, on stand-ins for Ray; the real one is in the integration tests."""

from __future__ import annotations

import logging
import os
import types

import pytest

import profwin
from profwin.patch import rayhook
from profwin.patch.environment import FOLDER


class ActorClass:
    """As Ray's: gives back what it was called with."""

    def _remote(self, args=None, kwargs=None, **actor_options):
        return actor_options


@pytest.fixture
def ray(monkeypatch):
    """Give a stand-in for ``ray``, followed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FOLDER, "/driver"]))
    monkeypatch.setenv("PROFWIN_PATCH_MODULES", "m")
    monkeypatch.setattr(rayhook, "_known", {})
    actor = types.SimpleNamespace(ActorClass=type("ActorClass", (), {"_remote": ActorClass._remote}))
    worker = types.SimpleNamespace(_maybe_modify_runtime_env=lambda env, skip: env)
    ray = types.SimpleNamespace(_private=types.SimpleNamespace(worker=worker), actor=actor)
    rayhook.follow(ray)
    return ray


class RuntimeEnv(dict):
    """As Ray's: a dict that is made from keyword arguments."""

    def __init__(self, **values):
        super().__init__(values)


@pytest.mark.parametrize("given", [None, {}, {"env_vars": {"A": "1"}, "working_dir": "."}, RuntimeEnv(pip=["x"])])
def test_job(ray, given):
    """A job keeps what it has, and its type, and gets our variables and this process's path with our folder first."""
    found = ray._private.worker._maybe_modify_runtime_env(given, False)
    given = RuntimeEnv() if given is None else given
    variables = found["env_vars"]
    assert {**found, "env_vars": given.get("env_vars")} == {**given, "env_vars": given.get("env_vars")}
    assert variables["PROFWIN_PATCH_MODULES"] == "m"
    assert variables["PYTHONPATH"] == os.pathsep.join([FOLDER, "/driver"])
    assert variables.get("A") == given.get("env_vars", {}).get("A")
    assert isinstance(found, RuntimeEnv) == (type(given) is RuntimeEnv and bool(given))


def test_job_with_its_own(ray):
    """What a job sets itself wins; its PYTHONPATH gets our folder in front and nothing else."""
    own = {"PYTHONPATH": "/mine", "PROFWIN_PATCH_MODULES": "other"}
    found = ray._private.worker._maybe_modify_runtime_env({"env_vars": own}, False)["env_vars"]
    assert found["PYTHONPATH"] == os.pathsep.join([FOLDER, "/mine"])
    assert found["PROFWIN_PATCH_MODULES"] == "other"


@pytest.mark.parametrize("options", [{}, {"runtime_env": None}, {"runtime_env": {"env_vars": {"A": "1"}}, "name": "n"}])
def test_actor_that_lacks_nothing(ray, options):
    """An actor that inherits all from its job is created exactly as it would be, so that it may reuse a worker."""
    assert ray.actor.ActorClass()._remote(**options) == options


def test_actor_of_a_session(ray, tmp_path, monkeypatch):
    """An actor that is created by a process with a session gets that, unless its job has it already."""
    pytest.importorskip("ray", reason="ray is not installed: its RuntimeEnv is needed")
    profwin.configure(steps="1", output=tmp_path, run="r", devices="pretend:0")
    found = ray.actor.ActorClass()._remote()["runtime_env"]["env_vars"]
    assert (found["PROFWIN_RUN"], found["PROFWIN_STEPS"]) == ("r", "1")
    assert "PYTHONPATH" not in found
    ray._private.worker._maybe_modify_runtime_env(None, False)
    assert ray.actor.ActorClass()._remote() == {}


def test_twice(ray):
    """Ray that is loaded again, or followed twice, is wrapped once."""
    before = ray._private.worker._maybe_modify_runtime_env, ray.actor.ActorClass._remote
    rayhook.follow(ray)
    assert (ray._private.worker._maybe_modify_runtime_env, ray.actor.ActorClass._remote) == before


def test_unknown_ray(caplog):
    """A Ray without these functions is left alone, and one warning says what is then out of reach."""
    with caplog.at_level(logging.WARNING, logger="profwin"):
        rayhook.follow(types.SimpleNamespace())
    assert ["this version of Ray is not known" in record.getMessage() for record in caplog.records] == [True]


def test_our_errors(ray, caplog, monkeypatch):
    """Whatever is wrong with us, Ray starts as it would."""
    monkeypatch.setattr(rayhook, "_variables", lambda: 1 / 0)
    with caplog.at_level(logging.WARNING, logger="profwin"):
        assert ray._private.worker._maybe_modify_runtime_env({"pip": []}, False) == {"pip": []}
    assert len(caplog.records) == 1
