"""max_seconds of engine windows: on time where the engine may be stopped at any time, else at a safe point."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from terms_support import a_span, configure_fixture, stops  # noqa: F401  # a fixture is used by name

from profwin import rollout_window, training_stage, training_step
from profwin.registry.lock import Held, Registry

PROMPT = 20.0


class Engine:
    """An engine that notes the threads in which it is stopped."""

    def __init__(self, *, revocable):
        self.revocable = revocable

    def start_profile(self):
        """Do nothing."""

    def stop_profile(self):
        """Note it."""
        stops.append(threading.current_thread().name)


def test_an_engine_that_may_be_stopped_at_any_time_is_cut_on_time(configure):
    """Without any safe point the engine is stopped, beside the body, and its device is free."""
    ended = configure()
    with rollout_window(1, engine=Engine(revocable=True), max_seconds=0.2) as window:
        deadline = time.monotonic() + PROMPT
        while window.recorded:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        while not isinstance(held := Registry().acquire(["pretend-0"], kind="training"), Held):
            assert time.monotonic() < deadline
        held.release()
        assert "MainThread" not in stops
    assert len(stops) == 1
    assert ended("close", "reason") == [("cut",)]


def test_an_early_end_takes_the_timer_back(configure):
    """An engine whose window ends before its limit is stopped once, and the next window is not cut by the old limit."""
    ended = configure()
    engine = Engine(revocable=True)
    with rollout_window(1, engine=engine, max_seconds=0.3):
        pass
    with rollout_window(1, engine=engine) as window:
        time.sleep(0.5)
        assert window.recorded
    assert len(stops) == 2
    assert ended("close", "reason") == [("end",), ("end",)]


def test_another_engine_is_cut_at_a_safe_point_in_its_thread(configure):
    """An engine that may not be stopped at any time is stopped by the window's own thread alone."""
    ended = configure()
    with rollout_window(1, engine=Engine(revocable=False), max_seconds=0.05) as window:
        time.sleep(0.2)
        assert window.recorded
        a_span()
        assert not window.recorded
    assert stops == ["MainThread"]
    assert ended("close", "reason") == [("cut",)]


@pytest.mark.parametrize("kind", ["span", "stage"])
def test_an_engine_in_an_event_loop_is_cut_without_blocking_it(configure, kind):
    """A safe point in the loop that the engine's stop needs does not wait for that stop."""
    ended = configure()

    class Coroutines:
        async def start_profile(self):
            """Do nothing."""

        async def stop_profile(self):
            """Take a moment."""
            await asyncio.sleep(0.05)
            stops.append("loop")

    async def main():
        async with rollout_window(1, engine=Coroutines(), max_seconds=0.05):
            await asyncio.sleep(0.1)
            began = time.monotonic()
            if kind == "span":
                a_span()
            else:
                async with training_stage("inner", devices="pretend:1"):
                    pass
            return time.monotonic() - began

    with training_step(1):
        assert asyncio.run(main()) < PROMPT
    assert stops.count("loop") == 1
    assert ("cut",) in ended("close", "reason")
