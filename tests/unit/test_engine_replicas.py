"""Engines that are several replicas: told together, waited for within the budget, never started while one is late."""

from __future__ import annotations

import asyncio

import pytest

import profwin
from profwin import rollout_window
from profwin.engines import adapt
from profwin.errors import SettingError
from profwin.testing import read_record


class Replica:
    """A replica that notes what it did; `block` keeps its next start or stop, `fail` is what that raises."""

    def __init__(self, told, name):
        self.told, self.name = told, name
        self.block = self.fail = None

    async def start_profile(self, **options):
        """Note it; no options are passed on."""
        assert options == {}
        await self._do("start")

    async def stop_profile(self):
        """Note it."""
        await self._do("stop")

    async def _do(self, what):
        block, self.block, fail, self.fail = self.block, None, self.fail, None
        if block is not None:
            await block.wait()
        if fail is not None:
            raise fail
        self.told.append(f"{what} {self.name}")


class Holder:
    """What holds two replicas."""

    def __init__(self):
        self.told: list[str] = []
        self.replicas = [Replica(self.told, "a"), Replica(self.told, "b")]


@pytest.fixture
def configure(tmp_path):
    """Return a function that sets profwin up, and one that ends it and returns its record."""

    def set_up(**settings):
        profwin.configure(steps="1-9", backend="testing", output=str(tmp_path), run="a", **settings)

        def end():
            profwin.shutdown()
            return read_record(str(tmp_path / "a"))

        return end

    return set_up


def window(step, holder, devices="pretend:engines"):
    """Return a window that the holder's replicas record."""
    return rollout_window(step, engine=holder, devices=devices)


def skips(record):
    """Return the steps of what was not recorded, and why."""
    return [(each.step, each.skip.reason) for each in record.intervals if each.skip is not None]


def test_all_start_and_stop_together(configure):
    """Each window starts all that there are when it begins, and stops those."""
    end, holder = configure(), Holder()

    async def run():
        async with window(1, holder):
            assert holder.told == ["start a", "start b"]
            holder.replicas.pop()
        async with window(2, holder):
            assert holder.told[2:] == ["stop a", "stop b", "start a"]

    asyncio.run(run())
    assert holder.told[5:] == ["stop a"]
    assert skips(end()) == []


def test_one_that_fails_to_start_stops_all(configure):
    """Where one fails, all are told to stop once all have answered, and the next window is recorded."""
    end, holder = configure(), Holder()
    holder.replicas[0].fail = RuntimeError("no")

    async def run():
        holder.replicas[1].block = block = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, block.set)
        for step in (1, 2):
            async with window(step, holder):
                pass

    asyncio.run(run())
    assert holder.told == ["start b", "stop a", "stop b", "start a", "start b", "stop a", "stop b"]
    assert skips(end()) == [(1, "engine")]


@pytest.mark.parametrize("devices", ["pretend:engines", None])
def test_a_late_start_is_followed_by_its_stop(configure, devices):
    """It is not waited for beyond the budget; nothing starts until it has answered and was stopped; then all does."""
    end, holder = configure(wait_budget=0.05), Holder()

    async def run():
        holder.replicas[0].block = block = asyncio.Event()
        for step in (1, 2):
            async with window(step, holder, devices):
                assert holder.told == ["start b"]
        block.set()
        while len(holder.told) < 4:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert holder.told == ["start b", "start a", "stop a", "stop b"]
        async with window(3, holder, devices) as third:
            assert third.recorded

    asyncio.run(run())
    assert holder.told[4:] == ["start a", "start b", "stop a", "stop b"]
    assert skips(end()) == [(1, "engine"), (2, "engine")]


def test_a_stop_that_failed_is_tried_again_before_the_next_start(configure):
    """Only when it is confirmed is anything started; the second try is bounded too."""
    end, holder = configure(wait_budget=0.6), Holder()

    async def run():
        async with window(1, holder):
            holder.replicas[0].fail = RuntimeError("no")
        holder.replicas[0].block = block = asyncio.Event()
        async with window(2, holder) as second:
            assert not second.recorded
        block.set()
        await asyncio.sleep(0.01)
        async with window(3, holder) as third:
            assert third.recorded

    asyncio.run(run())
    assert holder.told == ["start a", "start b", "stop b", "stop b", "stop a", "start a", "start b", "stop a", "stop b"]
    assert skips(end()) == [(2, "engine")]


def test_a_loop_that_ended_forgets_what_was_late(configure):
    """What was late in an event loop that is gone keeps nothing in another one from starting."""
    end, holder = configure(wait_budget=0.05), Holder()

    async def run(step, blocked):
        if blocked:
            holder.replicas[0].block = asyncio.Event()
        async with window(step, holder):
            pass

    asyncio.run(run(1, True))
    asyncio.run(run(2, False))
    assert holder.told[-4:] == ["start a", "start b", "stop a", "stop b"]
    assert skips(end()) == [(1, "engine")]


def test_without_an_event_loop_it_is_not_started(configure):
    """Its methods are coroutine functions: a plain `with` has no event loop for them."""
    end, holder = configure(), Holder()
    with window(1, holder):
        pass
    assert holder.told == []
    assert skips(end()) == [(1, "engine")]


def test_what_an_engine_must_have():
    """An object with its own methods is an engine, whatever its replicas; one with neither is refused."""
    holder = Holder()
    assert adapt(holder).name == "Holder"
    holder.start_profile = holder.stop_profile = lambda: None
    assert adapt(holder).target is holder
    with pytest.raises(SettingError):
        adapt(object())
