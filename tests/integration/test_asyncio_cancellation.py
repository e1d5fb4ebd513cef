"""Cancellation while waiting and while recording: nothing is left behind, and the next one who waits gets in."""

from __future__ import annotations

import asyncio

import pytest
from asyncio_support import KINDS, LOOPS, Untouched, block, configure, free, run, seen
from core_support import Child, Evidence, holder

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


async def _cancel(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _wait_for(task):
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.05)


async def _timeout(task):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await task


async def _group(task):
    async def fail():
        await asyncio.sleep(0.05)
        raise KeyError("mine")

    async def join():
        await task

    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(join())
            group.create_task(fail())

    with pytest.raises(BaseExceptionGroup) as caught:  # noqa: F821  # Python 3.11
        await both()
    assert caught.group_contains(KeyError)


WAYS = {"cancel": _cancel, "wait_for": _wait_for}
if hasattr(asyncio, "timeout"):  # Python 3.11
    WAYS |= {"timeout": _timeout, "group": _group}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)


@LOOPS
@KINDS
@EVERY_WAY
def test_while_waiting(output, loop, kind, way):
    """A cancelled wait leaves no lock, no descriptor and no watched number; the next task gets in."""
    configure(output)
    ran = []

    async def wait(name):
        async with block(kind):
            ran.append(name)

    async def main(other):
        untouched = Untouched()
        task = asyncio.create_task(wait("cancelled"))
        await seen(untouched.differs)
        await WAYS[way](task)
        untouched.check()
        following = asyncio.create_task(wait("next"))
        await seen(untouched.differs)
        other.say()
        await asyncio.wait_for(following, 20)
        untouched.check()
        await asyncio.get_running_loop().shutdown_default_executor()

    with holder(output) as other, training_step(1):
        run(loop, main(other))
    assert ran == ["next"]
    profwin.shutdown()
    assert len(Evidence(output).recorded()) == 2


@LOOPS
def test_a_cancelled_waiter_takes_no_wake_up_along(output, loop):
    """Cancelled in the very turn in which the device gets free, a waiter lets the others have it at once."""
    configure(output)
    ran = []

    async def wait(name):
        async with training_stage(name):
            ran.append(name)

    async def main():
        child = Child(
            f"profwin.configure(steps='1-9', output={str(output)!r}, devices='pretend:card', run='third')\n"
            "say('ready')\nwith rollout_window(1): say('in')\nprofwin.shutdown()\n"
        )
        with child, holder(output) as other:
            assert await asyncio.to_thread(child.hear) == "ready"
            tasks = [asyncio.create_task(wait(name)) for name in ("first", "second")]
            await asyncio.sleep(0.2)
            other.say()
            tasks[0].cancel()
            await asyncio.wait_for(tasks[1], 20)
            assert await asyncio.to_thread(child.hear) == "in"
            assert (await asyncio.gather(tasks[0], return_exceptions=True))[0] is not None
            assert child.finish()[0] == 0

    with training_step(1):
        run(loop, main())
    assert ran == ["second"]
    profwin.shutdown()


@LOOPS
def test_case_34(output, loop):
    """Case 34: the device of a window that was cancelled while it waited for a holder is free once that is gone."""
    configure(output)

    async def enter_window(seconds=0.0):
        async with rollout_window(1):
            await asyncio.sleep(seconds)

    async def main(other):
        task = asyncio.create_task(enter_window())
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(enter_window(), 0.1)
        other.say()
        assert await asyncio.to_thread(other.hear) == "left"
        await asyncio.sleep(0.3)
        assert free()
        await asyncio.wait_for(asyncio.get_running_loop().shutdown_default_executor(), 20)

    with holder(output) as other:
        run(loop, main(other))
    profwin.shutdown()


@LOOPS
@KINDS
@EVERY_WAY
def test_while_recording(output, loop, kind, way):
    """A cancelled body ends its recording, which is marked as failed, and its device is free."""
    configure(output)

    async def body():
        async with block(kind):
            await asyncio.sleep(60)

    async def main():
        untouched = Untouched()
        task = asyncio.create_task(body())
        await seen(lambda: current().owner.collections)
        assert not free()
        await WAYS[way](task)
        untouched.check()
        assert free()

    with training_step(1):
        run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["failure"]


@LOOPS
def test_a_stage_object_is_used_again_after_a_cancelled_wait(output, loop):
    """A stage object whose wait was cancelled, or refused under strict, serves the next block."""
    configure(output, strict=True, wait_budget=0.2)
    stage = training_stage("update")

    async def body():
        async with stage:
            return "ran"

    async def main():
        task = asyncio.create_task(body())
        await asyncio.sleep(0.05)
        await _cancel(task)
        for _ in range(2):
            with pytest.raises(profwin.DeviceBusyError):
                await body()

    with training_step(1):
        with holder(output):
            run(loop, main())
            with pytest.raises(profwin.DeviceBusyError), stage:
                pass
        current().entrance.forget(2)
        assert run(loop, body()) == "ran"
    profwin.shutdown()
