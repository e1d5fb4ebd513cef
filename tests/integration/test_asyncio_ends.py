"""Windows of event loops that end another way than their block: a plain close, a limit, a loop that is gone."""

from __future__ import annotations

import asyncio
import time

import pytest
from asyncio_support import LOOPS, configure, run, seen, ticking
from core_support import Evidence, holder

import profwin
from profwin import rollout_window, training_stage
from profwin.configuration import current
from profwin.testing import RecordingEngine


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def make(**more):
    """Return an engine whose methods are coroutine functions."""
    return RecordingEngine("pretend:card", asynchronous=True, **more)


def codes(output):
    """Return the codes of the findings."""
    return [record["code"] for record in Evidence(output).of("finding")]


@LOOPS
@pytest.mark.parametrize("strict", [False, True])
def test_a_plain_close_in_the_loops_thread(output, loop, strict):
    """Closing a coroutine engine's window with close() in its loop's thread does not wait, and is told so."""
    configure(output, strict=strict)
    engine = make()

    async def main():
        window = rollout_window(1, engine=engine)
        await window.aopen()
        began = time.monotonic()
        if strict:
            with pytest.raises(profwin.EngineError, match="event loop"):
                window.close()
        else:
            window.close()
        assert time.monotonic() - began < 15
        await seen(lambda: not current().owner.collections)
        assert not engine.recording

    run(loop, main())
    profwin.shutdown()
    assert "late-stop" in codes(output)


@LOOPS
def test_the_loop_is_closed_before_the_window(output, loop):
    """An engine whose loop is gone cannot confirm its stop: the close says so at once, and its device is unknown."""
    configure(output, wait_budget=0.2)
    engine = make()

    async def main():
        window = rollout_window(1, engine=engine)
        await window.aopen()
        return window

    window = run(loop, main())
    began = time.monotonic()
    window.close()
    assert time.monotonic() - began < 15
    with rollout_window(2, name="other"):
        pass
    engine.recording = False
    profwin.shutdown()
    evidence = Evidence(output)
    assert "event loop that is still running" in evidence.of("close")[0]["error"]
    assert evidence.skips() == [("other", "unknown")]
    assert not evidence.of("finding", code="late-stop")


def test_the_loop_is_closed_while_the_engine_stops(output):
    """A loop that is closed in the middle of an engine's stop ends the wait for it; nothing hangs."""
    configure(output, wait_budget=60)
    engine = make()
    engine.delay("stop", 60.0)
    loop = asyncio.new_event_loop()

    async def main():
        window = rollout_window(1, engine=engine)
        await window.aopen()
        window.close()
        await seen(lambda: "stop" in engine.order)
        for task in asyncio.all_tasks():
            task._log_destroy_pending = False  # the user's fault, which asyncio would log

    loop.run_until_complete(main())
    loop.close()
    deadline = time.monotonic() + 20
    while current().owner.collections and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not current().owner.collections
    engine.recording = False
    profwin.shutdown()
    assert "event loop that is still running" in Evidence(output).of("close")[0]["error"]


@LOOPS
def test_the_loop_ends_during_a_late_stop(output, loop):
    """A stop whose budget is used up, and that the end of the loop cancels, is in the evidence."""
    configure(output, wait_budget=0.1)
    engine = make()
    engine.delay("stop", 0.5)

    async def main():
        async with rollout_window(1, engine=engine), training_stage("update"):
            pass

    run(loop, main())
    engine.recording = False
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "unknown")]
    assert "Cancelled" in evidence.of("close")[0]["error"]


@LOOPS
@pytest.mark.parametrize("how", ["aclose", "close"])
def test_closed_while_it_waits_to_open(output, loop, how):
    """A window that is closed by another task while it still waits for its device is not left open later."""
    configure(output)

    async def main(other):
        window = rollout_window(1)
        opening = asyncio.create_task(window.aopen())
        await asyncio.sleep(0.1)
        if how == "aclose":
            await window.aclose()
        else:
            window.close()
        other.say()
        await asyncio.wait_for(opening, 20)
        assert not window.recorded
        assert not current().owner.collections

    with holder(output) as other:
        run(loop, main(other))
    profwin.shutdown()


@LOOPS
def test_closed_in_the_loop_while_a_thread_opens_it(output, loop):
    """Closing a window in the loop while a thread is in its open() waits for that without blocking the loop."""
    configure(output)

    async def main(other):
        async with ticking():
            window = rollout_window(1)
            opening = asyncio.create_task(asyncio.to_thread(window.open))
            await asyncio.sleep(0.1)
            closing = asyncio.create_task(window.aclose())
            await asyncio.sleep(1.5)
            other.say()
            await asyncio.wait_for(asyncio.gather(opening, closing), 20)
            assert not current().owner.collections

    with holder(output) as other:
        run(loop, main(other))
    profwin.shutdown()


@LOOPS
def test_a_limit_does_not_block_the_loop(output, loop):
    """A window whose time is over is cut when something begins, without blocking the loop that its engine needs."""
    configure(output)
    engine = make()
    engine.delay("stop", 0.1)

    async def main():
        async with ticking(), rollout_window(1, engine=engine, max_seconds=0.05):
            await asyncio.sleep(0.1)
            assert engine.recording  # not revocable: no thread may stop it at any time
            async with training_stage("update"):
                assert not engine.recording

    run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["cut", "end"]
    assert not evidence.of("finding")


def test_an_answer_that_is_not_done_is_no_confirmation(output):
    """A stop that returns something to be awaited, and is no coroutine function, confirms nothing."""
    configure(output, wait_budget=0.1)

    class Engine:
        devices = "pretend:card"

        def start_profile(self):
            pass

        def stop_profile(self):
            return asyncio.get_running_loop().create_future()

    async def main():
        async with rollout_window(1, engine=Engine()):
            pass
        async with rollout_window(2, name="other"):
            pass

    asyncio.run(main())
    profwin.shutdown()
    evidence = Evidence(output)
    assert "not done yet" in evidence.of("close")[0]["error"]
    assert evidence.skips() == [("other", "unknown")]
