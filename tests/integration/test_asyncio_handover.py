"""What ends an engine's window in an event loop before its body is done: a stage, a request, a closed coroutine."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from asyncio_support import LOOPS, configure, run, seen, ticking, turned
from core_support import Evidence, holder

import profwin
from profwin import rollout_window, training_stage
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
@pytest.mark.parametrize("when", ["during the loop", "after the loop"])
def test_a_coroutine_that_is_closed_while_it_records(output, loop, asynchronous, when):
    """A coroutine that is closed stops its engine without waiting; after the loop a coroutine engine cannot be."""
    configure(output, wait_budget=0.3)
    engine = make(asynchronous)

    async def body():
        async with rollout_window(1, engine=engine):
            await asyncio.sleep(60)

    async def main():
        coroutine = body()
        coroutine.send(None)
        await seen(lambda: engine.recording)
        await asyncio.sleep(0.05)
        coroutine.send(None)  # the engine has started: on into the body
        if when == "after the loop":
            return coroutine
        coroutine.close()
        await seen(lambda: not engine.recording and not current().owner.collections)
        return None

    coroutine = run(loop, main())
    if coroutine is not None:
        coroutine.close()
        deadline = time.monotonic() + 20
        while current().owner.collections and time.monotonic() < deadline:
            time.sleep(0.005)
        assert engine.recording is asynchronous
        engine.recording = False
    assert not current().owner.collections
    profwin.shutdown()
    Evidence(output).check()


@LOOPS
@ENGINES
def test_early_end_of_a_generator(output, loop, asynchronous):
    """A window in an async generator that is closed early stops its engine, beside the loop."""
    configure(output)
    engine = make(asynchronous)
    engine.delay("stop", 0.1)

    @rollout_window(1, engine=engine)
    async def generate():
        yield 1
        yield 2

    async def main():
        async with ticking():
            generator = generate()
            assert await anext(generator) == 1
            assert engine.recording
            await generator.aclose()
            async with training_stage("update", devices="pretend:card"):
                assert not engine.recording

    run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("skip")


@LOOPS
def test_a_request_reaches_a_coroutine_engine(output, loop):
    """Another process of the run gets the device of an engine that may be stopped at any time, through its loop."""
    configure(output)
    engine = make(True, revocable=True)

    def ask():
        with holder(output, "training_stage('theirs')", run="mine") as other:
            other.say()
            assert other.hear() == "left"
            other.say()
            assert other.finish()[0] == 0

    async def main():
        async with ticking(), rollout_window(1, engine=engine):
            await asyncio.to_thread(ask)
            assert not engine.recording

    run(loop, main())
    assert {call.thread for call in engine.calls} == {threading.get_ident()}
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections(purpose="rollout")] == ["asked"]
    assert not evidence.of("skip")


@LOOPS
@ENGINES
def test_a_stage_in_a_window_closes_it(output, loop, asynchronous):
    """An async stage in its engine's window ends the window before its body, while the loop turns."""
    configure(output)
    engine, late = make(asynchronous), threading.Event()
    engine.delay("stop", late)

    async def main():
        async with ticking() as ticks, rollout_window(1, engine=engine):
            turns = asyncio.create_task(turned(lambda: "stop" in engine.order, ticks, late))
            async with training_stage("update"):
                assert not engine.recording
            await turns

    run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["handover", "end"]


@LOOPS
@ENGINES
def test_a_stage_does_not_wait_for_ever_for_a_stop(output, loop, asynchronous):
    """A stop that is never confirmed costs an async stage the wait budget, not its life, and not the loop's turns."""
    configure(output, wait_budget=0.3)
    engine, never = make(asynchronous), threading.Event()
    engine.delay("stop", never)
    took = []

    async def main():
        async with ticking():
            window = rollout_window(1, engine=engine)
            await window.aopen()
            began = time.monotonic()
            async with training_stage("update"):
                took.append(time.monotonic() - began)
            never.set()
            await window.aclose()
            await seen(lambda: not current().owner.collections)

    run(loop, main())
    assert took[0] < 15
    profwin.shutdown()
    assert Evidence(output).skips() == [("update", "unknown")]
