"""Stages in executors and threads inside a window of an event loop, and tasks that inherited its context."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from asyncio_support import LOOPS, configure, run, seen, ticking
from core_support import Evidence

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.testing import RecordingEngine


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def engine_of(what):
    """Return what records the window: this process, or an engine."""
    if what == "process":
        return None
    return RecordingEngine("pretend:card", asynchronous=what == "coroutine", revocable=what == "thread")


async def in_executor(stage):
    """Run a stage in the loop's executor."""
    await asyncio.get_running_loop().run_in_executor(None, stage)


async def in_own_executor(stage):
    """Run a stage in an executor of one worker."""
    with ThreadPoolExecutor(1) as executor:
        await asyncio.get_running_loop().run_in_executor(executor, stage)


async def in_plain_thread(stage):
    """Run a stage in a thread that the opener awaits by looking."""
    thread = threading.Thread(target=stage)
    thread.start()
    await seen(lambda: not thread.is_alive())


PLACES = pytest.mark.parametrize("place", [in_executor, in_own_executor, asyncio.to_thread, in_plain_thread])
RECORDERS = pytest.mark.parametrize("what", ["process", "plain", "thread", "coroutine"])


@LOOPS
@RECORDERS
@PLACES
def test_case_25(output, loop, what, place):
    """Case 25: a stage in a thread that the opener awaits ends the window first, and is recorded; no deadlock."""
    configure(output)
    engine = engine_of(what)

    @training_stage
    def helper():
        assert engine is None or not engine.recording
        assert [each.purpose for each in current().owner.collections] == ["training"]

    async def main():
        async with ticking(), rollout_window(1, engine=engine, devices="pretend:card") as window:
            assert window.recorded
            await place(helper)
            assert not window.recorded

    run(loop, asyncio.wait_for(main(), 20))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.recorded() == ["rollout", "helper"]
    assert [each["reason"] for each in evidence.collections()] == ["handover", "end"]
    assert len(evidence.of("overlap")) == 1


@LOOPS
@RECORDERS
def test_an_inherited_context_holds_nothing(output, loop, what):
    """A task made inside a window and run after it takes its own recording; one that runs inside ends the window."""
    configure(output)
    engine = engine_of(what)

    async def later(event):
        await event.wait()
        async with training_stage("later"):
            assert [each.purpose for each in current().owner.collections] == ["training"]

    async def window_of(step, event):
        await event.wait()
        async with rollout_window(step, engine=engine, devices="pretend:card") as window:
            assert window.recorded

    async def main():
        left, right = asyncio.Event(), asyncio.Event()
        async with rollout_window(1, engine=engine, devices="pretend:card"):
            stage = asyncio.create_task(later(left))
            window = asyncio.create_task(window_of(1, right))
            await asyncio.sleep(0.02)
        left.set()
        await stage
        right.set()
        await window

    run(loop, asyncio.wait_for(main(), 20))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.recorded() == ["rollout", "later", "rollout"]
    assert len(evidence.collections()) == 3
    assert not evidence.of("overlap")


@LOOPS
@RECORDERS
def test_entered_in_one_context_and_left_in_another(output, loop, what):
    """Nothing of ours lives in a context: a window may be opened in one task and closed in another."""
    configure(output)
    engine = engine_of(what)

    async def main():
        window = rollout_window(1, engine=engine, devices="pretend:card")
        await asyncio.create_task(window.aopen())
        assert window.recorded
        await asyncio.create_task(window.aclose())
        assert not current().owner.collections
        async with training_stage("outer"):
            contextvars.Context().run(joined)

    @training_stage
    def joined():
        assert len(current().owner.collections) == 1

    run(loop, asyncio.wait_for(main(), 20))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.recorded() == ["rollout", "outer", "joined"]


@LOOPS
@RECORDERS
def test_a_loop_that_joins_the_stages_thread(output, loop, what):
    """A loop blocked by its user until a thread's stage is done costs that stage the budget at most."""
    configure(output, wait_budget=0.3)
    engine = engine_of(what)
    ran = []

    @training_stage
    def helper():
        ran.append(1)

    async def main():
        async with rollout_window(1, engine=engine, devices="pretend:card"):
            thread = threading.Thread(target=helper)
            thread.start()
            began = time.monotonic()
            thread.join(100)
            assert time.monotonic() - began < 15
        await seen(lambda: not current().owner.collections)

    run(loop, main())
    assert ran == [1]
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    expected = [("helper", "unknown")] if what == "coroutine" else []
    assert evidence.skips() == expected


@LOOPS
@RECORDERS
def test_a_plain_stage_in_the_loops_thread(output, loop, what):
    """A plain stage called in a window's own loop ends the window, or goes without at once if that needs the loop."""
    configure(output)
    engine = engine_of(what)
    ran = []

    @training_stage
    def update():
        ran.append(engine is None or not engine.recording)

    async def main():
        async with rollout_window(1, engine=engine, devices="pretend:card"):
            began = time.monotonic()
            update()
            assert time.monotonic() - began < 15

    run(loop, main())
    assert ran == [what != "coroutine"]
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == ([("update", "thread")] if what == "coroutine" else [])


@LOOPS
def test_a_full_executor(output, loop):
    """Neither windows nor their engines need the loop's executor: it may be full, or shut down."""
    configure(output)
    engine = engine_of("thread")
    engine.delay("start", 0.05)
    engine.delay("stop", 0.05)
    release = threading.Event()

    async def main():
        here = asyncio.get_running_loop()
        here.set_default_executor(ThreadPoolExecutor(1))
        busy = here.run_in_executor(None, release.wait)
        async with rollout_window(1, engine=engine) as window:
            assert window.recorded
        release.set()
        await busy
        await here.shutdown_default_executor()
        async with rollout_window(2, engine=engine) as window:
            assert window.recorded

    run(loop, asyncio.wait_for(main(), 20))
    profwin.shutdown()
    Evidence(output).check()


@LOOPS
def test_stages_of_a_loop_and_of_threads_overlap(output, loop):
    """Stages of tasks and of threads that overlap in time are one recording, with an entry and an exit each."""
    configure(output)

    @training_stage
    def plain(number):
        time.sleep(0.002 * number)

    @training_stage
    async def later(number):
        await asyncio.sleep(0.002 * number)

    async def main():
        async with ticking(), training_stage("whole"):
            await asyncio.gather(
                *(asyncio.to_thread(plain, number) for number in range(8)), *(later(number) for number in range(8))
            )

    with training_step(1):
        run(loop, asyncio.wait_for(main(), 20))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert len(evidence.collections()) == 1
    assert len(evidence.recorded()) == 17
