"""Async windows and stages: waiting, cancellation, and everything that leaves a coroutine or a generator early."""

from __future__ import annotations

import asyncio
import time

import pytest
from core_support import Evidence, descriptors, holder

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(
        **{"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "mine", "wait_budget": 60, **more}
    )


def block(kind):
    """Return a window or a stage as a block."""
    return rollout_window(1) if kind == "window" else training_stage("update")


@pytest.mark.parametrize("kind", ["window", "stage"])
def test_async_wait_does_not_block_the_loop(output, kind):
    """While a window or stage waits for a device, the event loop goes on; then it is recorded."""
    configure(output)

    async def main(other):
        turns = 0

        async def wait():
            async with block(kind):
                return turns

        task = asyncio.create_task(wait())
        while turns < 50:
            await asyncio.sleep(0.005)
            turns += 1
        assert not task.done()
        other.say()
        return await task

    with holder(output) as other, training_step(1):
        assert asyncio.run(main(other)) >= 50
    profwin.shutdown()
    evidence = Evidence(output)
    assert not evidence.of("skip")
    assert len(evidence.recorded()) == 2


@pytest.mark.parametrize("kind", ["window", "stage"])
@pytest.mark.parametrize("how", ["cancel", "wait_for"])
def test_cancellation_while_waiting(output, kind, how):
    """Case 34: a cancelled wait leaves no lock, no descriptor and no claim behind; the next one waits for itself."""
    configure(output)
    ran = []

    async def wait():
        async with block(kind):
            ran.append(1)

    async def main():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0.1)
        assert descriptors() != before
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(task, 0.05)

    with holder(output) as other, training_step(1):
        current().journal.write("paused")
        before = descriptors()
        asyncio.run(main())
        assert not current().entrance.starting
        assert descriptors() == before
        other.kill()
        with block(kind):
            ran.append(2)
    assert ran == [2]
    profwin.shutdown()
    assert len(Evidence(output).recorded()) == 2


@pytest.mark.parametrize("kind", ["window", "stage"])
def test_cancellation_while_recording(output, kind):
    """A cancelled body ends its recording, and the caller sees the cancellation."""
    configure(output)

    async def body():
        async with block(kind):
            await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(body())
        await asyncio.sleep(0.05)
        assert current().owner.collections
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not current().owner.collections

    with training_step(1):
        asyncio.run(main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["failure"]


def test_async_stages_that_interleave_share_one_collection(output):
    """Tasks whose stages overlap in time are recorded together, and each has its own entry and exit."""
    configure(output)

    @training_stage
    async def update(number):
        await asyncio.sleep(0.01 * number)
        return number

    async def main():
        return await asyncio.gather(*(update(number) for number in range(5)))

    with training_step(1):
        assert asyncio.run(main()) == list(range(5))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert len(evidence.collections()) == 1
    assert len(evidence.recorded()) == 5


def test_blocking_stage_beside_an_async_window_that_waits(output):
    """A blocking stage in the event loop's thread, while an async window waits, goes on after its budget."""
    configure(output, wait_budget=0.3)
    ran = []

    async def waiting():
        async with rollout_window(1):
            ran.append("window")

    async def main():
        task = asyncio.create_task(waiting())
        await asyncio.sleep(0.05)
        with training_stage("update"):
            ran.append("stage")
        await task

    with holder(output), training_step(1):
        began = time.monotonic()
        asyncio.run(main())
        assert time.monotonic() - began < 15
    assert sorted(ran) == ["stage", "window"]
    profwin.shutdown()
    assert {reason for _, reason in Evidence(output).skips()} == {"busy"}


def test_generator_stages(output):
    """A generator stage is recorded from its first value to its end: exhausted, closed, thrown into, or dropped."""
    configure(output)

    @training_stage
    def batches():
        yield 1
        yield 2

    def throw(generator):
        with pytest.raises(KeyError):
            generator.throw(KeyError("mine"))

    with training_step(1):
        generator = batches()
        assert not current().owner.collections
        assert list(generator) == [1, 2]
        assert not current().owner.collections
        for leave in (
            lambda g: g.close(),
            throw,
            lambda g: None,
        ):
            generator = batches()
            assert next(generator) == 1
            assert current().owner.collections
            leave(generator)
            del generator
            assert not current().owner.collections
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["end", "end", "failure", "end"]


def test_async_generator_stages(output):
    """An async generator stage ends when it is exhausted or closed."""
    configure(output)

    @training_stage
    async def batches():
        yield 1
        yield 2

    async def main():
        assert [value async for value in batches()] == [1, 2]
        assert not current().owner.collections
        generator = batches()
        assert await anext(generator) == 1
        assert current().owner.collections
        await generator.aclose()
        assert not current().owner.collections

    with training_step(1):
        asyncio.run(main())
    profwin.shutdown()
    Evidence(output).check()


def test_window_decorator_with_a_callable_step(output):
    """A decorated generation takes its step from the call; each call of any kind of callable is its own window."""
    configure(output)

    @rollout_window(lambda step, **_: step)
    def generate(step, *, size=1):
        return size

    @rollout_window(lambda step: step, name="async")
    async def generate_async(step):
        return current().owner.collections[0].step

    assert [generate(step, size=step) for step in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert asyncio.run(generate_async(2)) == 2
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["step"]) for each in evidence.collections()] == [
        ("rollout", 1), ("rollout", 2), ("rollout", 3), ("async", 2),
    ]  # fmt: skip
