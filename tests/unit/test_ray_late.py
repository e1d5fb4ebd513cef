"""Actors that never answer: how long training waits for them, without a cluster."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be named")

import ray

import profwin
from profwin.ray import actors
from profwin.testing import read_record

pytestmark = pytest.mark.timeout(60)


class Handle:
    """A handle of an actor that gets every call and answers none."""

    def __init__(self):
        self.__ray_call__, self._actor_id = self, SimpleNamespace(hex=lambda: "ab" * 16)

    def remote(self, work):
        """Take the call."""
        return SimpleNamespace(future=Future)


def test_training_goes_on_though_what_is_late_to_start_never_stops(tmp_path, monkeypatch):
    """It is told to stop, since it may start yet; that is not waited for as the stop of a recording is, for minutes."""
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    module = sys.modules["profwin.ray.actors"]  # the package has a function of that name
    asked = []

    class Noted(module.Call):
        def __init__(self, handle, work, seconds):
            asked.append((work.func.__name__, seconds))
            super().__init__(handle, work, seconds)

    for name, value in {"_START": 0.0, "_STOP": 1.0, "_UNDONE": 0.1, "Call": Noted}.items():
        monkeypatch.setattr(module, name, value)
    profwin.configure(steps="1", output=str(tmp_path), run="a", backend="record", wait_budget=0.2)

    async def loop():
        async with profwin.rollout_window(1, engine=actors(Handle())) as window:
            assert not window.recorded

    asyncio.run(loop())
    profwin.shutdown()
    assert asked == [("begin", 0.2), ("end", 0.1)]
    [window] = read_record(str(tmp_path / "a")).intervals
    assert window.skip.reason == "engine"
