"""Engines under `async with`: slow, failing and late ones do not block the loop, and a cancelled start is undone."""

from __future__ import annotations

import asyncio
import threading

import pytest
from asyncio_support import LOOPS, configure, run, seen, ticking, turned
from core_support import Evidence

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.testing import RecordingEngine

ENGINES = pytest.mark.parametrize("asynchronous", [False, True], ids=["thread", "coroutine"])


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def make(asynchronous, **more):
    """Return an engine whose start and stop are coroutine functions, or may be called from any thread."""
    return RecordingEngine("pretend:card", asynchronous=asynchronous, **{"revocable": not asynchronous, **more})


@LOOPS
@ENGINES
def test_slow_start_and_stop(output, loop, asynchronous):
    """The loop turns while an engine starts and stops; both are done before the body, and before the block is left."""
    configure(output)
    engine = make(asynchronous)
    late = {"start": threading.Event(), "stop": threading.Event()}
    for action, event in late.items():
        engine.delay(action, event)

    async def main():
        async with ticking() as ticks:
            turns = [
                asyncio.create_task(turned(lambda action=action: action in engine.order, ticks, event))
                for action, event in late.items()
            ]
            async with rollout_window(1, engine=engine) as window:
                assert late["start"].is_set()
                assert engine.recording
                assert window.recorded
            assert late["stop"].is_set()
            assert not engine.recording
            assert not current().owner.collections
            await asyncio.gather(*turns)

    run(loop, main())
    here = threading.get_ident()
    assert all((call.thread == here) is asynchronous for call in engine.calls)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["end"]


@LOOPS
@ENGINES
@pytest.mark.parametrize("strict", [False, True])
def test_failing_start(output, loop, asynchronous, strict):
    """A start that fails is undone; the body runs unrecorded, or under strict not at all, and the device is free."""
    configure(output, strict=strict)
    engine = make(asynchronous)
    engine.fail("start", times=1)
    ran = []

    async def main():
        async with rollout_window(1, engine=engine):
            ran.append(1)

    if strict:
        with pytest.raises(profwin.EngineError, match="told to fail"):
            run(loop, main())
    else:
        run(loop, main())
    assert ran == ([] if strict else [1])
    assert engine.order == ["start", "failed", "stop"]
    run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == ([] if strict else [("rollout", "engine")])
    assert len(evidence.recorded()) == 1


@LOOPS
@ENGINES
@pytest.mark.parametrize("strict", [False, True])
def test_failing_stop(output, loop, asynchronous, strict):
    """A stop that fails leaves the device unknown: another kind of work goes without, the engine's next window not."""
    configure(output, strict=strict, wait_budget=0.1)
    engine = make(asynchronous)
    engine.fail("stop", times=1)

    async def main():
        async with rollout_window(1, engine=engine):
            pass

    if strict:
        with pytest.raises(profwin.EngineError, match="told to fail"):
            run(loop, main())
        profwin.shutdown()
        assert engine.recording
        return
    run(loop, main())
    with training_step(2), training_stage("update"):
        pass
    engine.recording = False
    profwin.shutdown()
    assert Evidence(output).skips() == [("update", "unknown")]


@LOOPS
@ENGINES
@pytest.mark.parametrize("how", ["cancel", "close"])
def test_an_abandoned_start_is_undone(output, loop, asynchronous, how):
    """An engine whose start was under way when its window was cancelled, or closed, is stopped when it has started."""
    configure(output)
    engine, late = make(asynchronous), threading.Event()
    engine.delay("start", late)

    async def body():
        async with rollout_window(1, engine=engine):
            raise AssertionError

    async def main():
        async with ticking():
            if how == "cancel":
                task = asyncio.create_task(body())
                await seen(lambda: "start" in engine.order)
                task.cancel()
                await asyncio.sleep(0.05)
                task.cancel()
                await asyncio.sleep(0.05)
                assert not task.done()
                late.set()
                assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
                assert engine.order == ["start", "started", "stop", "stopped"]
            else:
                coroutine = body()
                coroutine.send(None)
                await seen(lambda: "start" in engine.order)
                coroutine.close()
                late.set()
            await seen(lambda: not current().owner.collections and engine.order[-1] == "stopped")
            async with rollout_window(1, engine=engine):
                assert engine.recording

    run(loop, main())
    assert engine.order == ["start", "started", "stop", "stopped"] * 2
    assert not current().entrance.starting
    profwin.shutdown()
    assert not Evidence(output).of("skip")


@LOOPS
@ENGINES
def test_cancelled_while_it_stops(output, loop, asynchronous):
    """A window that is cancelled while its engine stops waits for the stop, and is cancelled then."""
    configure(output)
    engine, late = make(asynchronous), threading.Event()
    engine.delay("stop", late)

    async def body():
        async with rollout_window(1, engine=engine):
            pass

    async def main():
        async with ticking():
            task = asyncio.create_task(body())
            await seen(lambda: "stop" in engine.order)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0.02)
            assert not task.done()
            late.set()
            assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
            assert not engine.recording

    run(loop, main())
    profwin.shutdown()
    Evidence(output).check()


@LOOPS
@ENGINES
def test_cancelled_while_it_records(output, loop, asynchronous):
    """A cancelled body stops its engine before the task ends."""
    configure(output)
    engine = make(asynchronous)
    engine.delay("stop", 0.1)

    async def body():
        async with rollout_window(1, engine=engine):
            await asyncio.sleep(60)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(body(), 0.1)
        assert not engine.recording

    run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["failure"]
