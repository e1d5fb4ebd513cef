"""`Loop.tell`: every event of a loop, from coroutines, without blocking their event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest
from loop_stand import stand_in

import profwin
from profwin.errors import DeviceBusyError
from profwin.hooks import Loop
from profwin.journal import read
from profwin.loop import EVENTS, BeginStep, CloseWindow, EndStep, OpenWindow

ENGINES = {"engine": "alone", "hybrid_engine": "shared"}


@pytest.fixture
def stand(monkeypatch):
    """Put a stand in place of the modules that act."""
    return stand_in(monkeypatch)


def test_windows_are_opened_and_closed_without_blocking(stand):
    """Told events use the windows' async twins, and the end of ``async with`` closes what is open."""

    async def train():
        async with Loop("fully_async", **ENGINES) as loop:
            await loop.tell("devices_to_generation")
            await loop.tell("weights_synced", 0)
            await loop.tell("weights_about_to_sync", 1)
            await loop.tell("step_begins", 2, weight_version=9)
            await loop.tell("validation_begins")
            await loop.tell("validation_ends")

    asyncio.run(train())
    first = ["enter step 1", "aopen 1", "aopen 1 rollout_hybrid", "aclose 1", "aclose 1 rollout_hybrid", "exit step 1"]
    assert stand.calls[:6] == first
    assert stand.calls[6:11] == [
        "enter step 2",
        "aopen 2",
        "aopen 2 rollout_hybrid",
        "aclose 2",
        "aclose 2 rollout_hybrid",
    ]
    assert stand.calls[11:13] == ["enter paused", "exit paused"]
    assert stand.calls[-3:] == ["aclose 2", "aclose 2 rollout_hybrid", "exit step 2"]
    assert stand.versions == [0, 9]


def test_every_event_can_be_told():
    """There is a method for each event, told by the same name."""
    numbered = {"step_begins", "weights_about_to_sync", "weights_synced"}

    async def train():
        loop = Loop("separate", perform=lambda action: None)
        for event in EVENTS:
            assert callable(getattr(loop, event))
            await loop.tell(event, 1 if event in numbered else None)
        with pytest.raises(ValueError, match="step_begins"):
            await loop.tell("step_begin", 1)
        with pytest.raises(ValueError, match="integer of 0 or more"):
            await loop.tell("weights_synced")

    asyncio.run(train())


def test_the_event_loop_turns_while_an_engine_stops():
    """An adapter's coroutines are awaited, and other tasks run meanwhile."""
    turns = []

    async def slowly(action):
        if isinstance(action, CloseWindow):
            await asyncio.sleep(0.1)
            turns.append("closed")

    async def train():
        loop = Loop("sync", perform=slowly)
        await loop.tell("step_begins", 1)
        ticking = asyncio.create_task(tick())
        await loop.tell("samples_in_hand")
        ticking.cancel()

    async def tick():
        while True:
            turns.append("tick")
            await asyncio.sleep(0.005)

    asyncio.run(train())
    assert turns.count("tick") >= 5
    assert "closed" in turns


def test_events_of_several_tasks_come_one_after_the_other():
    """Events that are told at once are done one after the other, and a plain one waits its turn."""
    done = []

    async def slowly(action):
        await asyncio.sleep(0.01)
        done.append(action)

    async def train():
        loop = Loop("fully_async", engine="alone", perform=slowly)
        await loop.tell("weights_synced", 0)
        first = asyncio.create_task(loop.tell("weights_about_to_sync", 1))
        await asyncio.sleep(0)
        second = asyncio.create_task(loop.tell("weights_synced", 1))
        await asyncio.sleep(0)
        loop.loop_ends()  # the event loop's thread cannot wait for a task of its own
        await asyncio.gather(first, second)

    asyncio.run(train())
    assert done[:4] == [BeginStep(1), OpenWindow(1, "standalone"), CloseWindow(1, "standalone", "end"), EndStep(1)]
    assert done[4:] == [BeginStep(2), OpenWindow(2, "standalone")]


def test_a_thread_waits_for_what_is_told():
    """A plain event of another thread is done after the told one that is under way, and returns when it is done."""
    done = []

    async def slowly(action):
        await asyncio.sleep(0.05)
        done.append(action)

    async def train():
        loop = Loop("sync", perform=lambda action: slowly(action) if asyncio_thread() else done.append(action))
        await loop.tell("step_begins", 1)
        telling = asyncio.create_task(loop.tell("samples_in_hand"))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(loop.step_ends)
        assert done[-1] == EndStep(1)
        await telling

    here = threading.get_ident()

    def asyncio_thread():
        return threading.get_ident() == here

    asyncio.run(train())
    assert done == [BeginStep(1), OpenWindow(1, "hybrid"), CloseWindow(1, "hybrid", "end"), EndStep(1)]


def test_cancellation_leaves_nothing_open(stand):
    """Cancelled while a window closes: the other actions are done, and the end of the loop closes that window."""

    async def train():
        async with Loop("separate", **ENGINES) as loop:
            await loop.tell("devices_to_generation")
            await loop.tell("step_begins", 1)
            ending = asyncio.create_task(loop.tell("step_ends"))
            await asyncio.sleep(0.001)
            ending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ending
            assert stand.calls[3:] == ["aclose 1 rollout_hybrid", "exit step 1"]

    asyncio.run(train())
    assert stand.calls[3:] == ["aclose 1 rollout_hybrid", "exit step 1", "aclose 1"]


def test_cancelled_before_its_turn_an_event_has_not_happened():
    """Cancelled while it waits for another event, an event changes nothing, and the next one is not kept waiting."""
    done = []

    async def slowly(action):
        await asyncio.sleep(0.03)
        done.append(action)

    async def train():
        loop = Loop("sync", perform=slowly)
        first = asyncio.create_task(loop.tell("step_begins", 1))
        await asyncio.sleep(0)
        second = asyncio.create_task(loop.tell("samples_in_hand"))
        await asyncio.sleep(0.005)
        second.cancel()
        await first
        await asyncio.gather(second, return_exceptions=True)
        await asyncio.wait_for(loop.tell("step_ends"), 5)

    asyncio.run(train())
    assert done == [BeginStep(1), OpenWindow(1, "hybrid"), CloseWindow(1, "hybrid", "step"), EndStep(1)]


def test_the_bodys_exception_is_not_replaced(stand):
    """What the body of ``async with`` raises passes, whatever the closing raises; without it the closing's passes."""
    stand.plan["aclose 1"] = DeviceBusyError("gpu", "someone", 1.0)

    async def train(error):
        async with Loop("sync") as loop:
            await loop.tell("step_begins", 1)
            if error is not None:
                raise error

    with pytest.raises(KeyError):
        asyncio.run(train(KeyError()))
    stand.plan["aclose 1"] = DeviceBusyError("gpu", "someone", 1.0)
    with pytest.raises(DeviceBusyError):
        asyncio.run(train(None))


class SlowEngine:
    """An engine that stops in its own time, and may be asked for that from any thread."""

    revocable = True

    def __init__(self, part):
        self.devices, self.process_ids, self.stopping = [f"pretend:{part}"], [os.getpid()], False

    def start_profile(self):
        """Begin to record."""

    def stop_profile(self):
        """Stop recording, slowly."""
        self.stopping = True
        time.sleep(0.2)
        self.stopping = False


@pytest.mark.parametrize("how", ["loop", "sync"])
def test_a_slow_stop_of_a_real_engine_blocks_nobody(tmp_path, how):
    """While engines take their time to stop, in either form of the fully asynchronous loop, the event loop turns."""
    profwin.configure(steps="1-2", output=tmp_path, devices="pretend:train")
    engine, lent = SlowEngine("alone"), SlowEngine("shared")
    seen = set()

    async def tick():
        while True:
            seen.update(each for each in (engine, lent) if each.stopping)
            await asyncio.sleep(0.001)

    async def train():
        ticking = asyncio.create_task(tick())
        if how == "loop":
            async with Loop("fully_async", engine=engine, hybrid_engine=lent) as loop:
                await loop.tell("devices_to_generation")
                for version in range(2):
                    await loop.tell("weights_about_to_sync", version)
                    await loop.tell("weights_synced", version)
        else:
            for version in range(3):
                async with profwin.weight_sync(version, engine):
                    pass
        ticking.cancel()

    asyncio.run(train())
    profwin.shutdown()
    records = [record for path in tmp_path.glob("*/journal/*.jsonl") for record in read(str(path))]
    closes = [record for record in records if record["kind"] == "close"]
    assert len(closes) == (4 if how == "loop" else 2)
    assert all(record["seconds"] >= 0.2 for record in closes)
    assert seen == ({engine, lent} if how == "loop" else {engine})
