"""Coroutines and async generators as stages: early ends, failures, cancellation, and stages that overlap in time."""

from __future__ import annotations

import asyncio
import gc

import pytest
from asyncio_support import LOOPS, configure, run, seen
from core_support import Evidence

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@training_stage
async def batches(*, fail=False, forever=False):
    """Yield two batches, then fail or wait if told so."""
    yield 1
    if fail:
        raise KeyError("mine")
    if forever:
        await asyncio.sleep(60)
    yield 2


def finish(output, *reasons):
    """Shut down and assert the reasons for which recordings ended, in order."""
    assert not current().owner.collections
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == list(reasons)
    return evidence


@LOOPS
def test_ends_of_an_async_generator(output, loop):
    """Exhausted, closed early, thrown into, failed or dropped: the recording ends with the generator."""
    configure(output)

    async def main():
        assert [value async for value in batches()] == [1, 2]
        assert not current().owner.collections
        generator = batches()
        assert not current().owner.collections
        assert await anext(generator) == 1
        assert current().owner.collections
        await generator.aclose()
        assert not current().owner.collections
        generator = batches()
        await anext(generator)
        with pytest.raises(ZeroDivisionError):
            await generator.athrow(ZeroDivisionError())
        assert not current().owner.collections
        generator = batches(fail=True)
        await anext(generator)
        with pytest.raises(KeyError, match="mine"):
            await anext(generator)
        assert not current().owner.collections
        generator = batches()
        await anext(generator)
        del generator
        gc.collect()
        await seen(lambda: not current().owner.collections)  # the loop closes it

    with training_step(1):
        run(loop, main())
    finish(output, "end", "end", "failure", "failure", "end")


@LOOPS
@pytest.mark.parametrize("where", ["inside", "outside"])
def test_cancelled_async_generator(output, loop, where):
    """Cancelled while it awaits, or while its consumer does, a generator's recording ends with it."""
    configure(output)

    async def consume():
        generator = batches(forever=where == "inside")
        try:
            async for _ in generator:
                if where == "outside":
                    await asyncio.sleep(60)
        finally:
            await generator.aclose()

    async def main():
        task = asyncio.create_task(consume())
        await seen(lambda: current().owner.collections)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not current().owner.collections

    with training_step(1):
        run(loop, main())
    finish(output, "failure" if where == "inside" else "end")


@LOOPS
@pytest.mark.parametrize("on", [True, False])
def test_a_loop_that_ends_closes_its_generators(output, loop, on):
    """Generators that nobody closes are closed by the end of their loop, each once, and the recording with them."""
    if on:
        configure(output)
    kept, left = [], []

    @training_stage
    async def slow_to_leave(number):
        try:
            yield number
        finally:
            await asyncio.sleep(0.001)
            left.append(number)

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context["message"]))
        for number in range(20):
            kept.append(slow_to_leave(number))
            assert await anext(kept[-1]) == number

    with training_step(1):
        run(loop, main())
    assert sorted(left) == list(range(20))
    if on:
        finish(output, "end")


@LOOPS
def test_generators_that_interleave(output, loop):
    """Several generators and coroutines whose bodies overlap are one recording, whichever of them ends first."""
    configure(output)

    @training_stage
    async def critic():
        await asyncio.sleep(0.02)

    async def main():
        first, second = batches(), batches()
        assert await anext(first) == 1
        other = asyncio.create_task(critic())
        assert await anext(second) == 1
        assert [value async for value in first] == [2]
        await other
        assert len(current().owner.collections) == 1
        await second.aclose()
        assert not current().owner.collections

    with training_step(1):
        run(loop, main())
    evidence = finish(output, "end")
    assert evidence.recorded() == ["batches", "batches", "critic"]


@LOOPS
def test_a_stage_joins_another_tasks_stage_and_outlives_it(output, loop):
    """A stage that joined another task's is recorded on after that one was cancelled."""
    configure(output)

    async def first():
        async with training_stage("first"):
            await asyncio.sleep(60)

    async def second(release):
        async with training_stage("second"):
            await release.wait()
            assert current().owner.collections

    async def main():
        release = asyncio.Event()
        tasks = asyncio.create_task(first()), asyncio.create_task(second(release))
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        release.set()
        await tasks[1]

    with training_step(1):
        run(loop, main())
    evidence = finish(output, "end")
    assert evidence.recorded() == ["first", "second"]
    assert [record["status"] for record in evidence.of("exit")] == ["error", "ok"]


@LOOPS
def test_gather_of_many_stages_and_windows(output, loop):
    """Hundreds of stages at once, and a window among them, need one recording and leave nothing."""
    configure(output)

    @training_stage
    async def update(number):
        await asyncio.sleep(0.0001 * (number % 7))
        return number

    async def window():
        async with rollout_window(1):
            await asyncio.sleep(0)

    async def main():
        results = await asyncio.gather(*(update(number) for number in range(300)), window(), return_exceptions=True)
        assert results == [*range(300), None]

    with training_step(1):
        run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert len(evidence.recorded()) == 301
    assert not evidence.of("skip")


@LOOPS
def test_a_generator_may_be_driven_by_several_tasks(output, loop):
    """Each value of a recorded generator may be asked for by another task; the last one ends the recording."""
    configure(output)

    async def ask(generator):
        return await anext(generator, None)

    async def main():
        generator = batches()
        assert [await asyncio.create_task(ask(generator)) for _ in range(3)] == [1, 2, None]

    with training_step(1):
        run(loop, main())
    finish(output, "end")
