"""Waiting in an event loop for a device that another process holds: it turns on, and the wait has its rules."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from asyncio_support import KINDS, LOOPS, block, configure, run, seen, ticking, watched
from core_support import Evidence, holder

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@LOOPS
@KINDS
def test_the_loop_turns_while_it_waits(output, loop, kind):
    """The loop turns while a window or stage waits, which begins soon after the release and is recorded."""
    configure(output)
    entered = []

    async def wait():
        async with block(kind):
            entered.append(time.monotonic())

    async def main(other):
        async with ticking() as ticks:
            task = asyncio.create_task(wait())
            await seen(lambda: len(ticks) > 60)
            assert not entered
            released = time.monotonic()
            other.say()
            await task
        assert entered[0] - released < 15

    with holder(output) as other, training_step(1):
        run(loop, main(other))
    profwin.shutdown()
    evidence = Evidence(output)
    assert not evidence.of("skip")
    assert len(evidence.recorded()) == 2


@LOOPS
def test_a_hang_up_ends_the_wait(output, loop, monkeypatch):
    """The holder's end wakes the loop through the FIFO that it watches, not only the backstop that looks again."""
    monkeypatch.setattr("profwin.registry.attempt._LOOK", 60.0)
    monkeypatch.setattr("profwin.registry.attempt._LONGEST_LOOK", 60.0)
    monkeypatch.setattr("profwin.eventloop._LONGEST", 60.0)
    configure(output)

    async def main(other):
        async with ticking():
            before = watched()
            task = asyncio.create_task(wait())
            await seen(lambda: watched() - before)
            other.say()
            await asyncio.wait_for(task, 20)

    async def wait():
        async with rollout_window(1):
            pass

    with holder(output) as other:
        run(loop, main(other))
    profwin.shutdown()
    assert len(Evidence(output).recorded()) == 2


@LOOPS
@KINDS
def test_after_a_second_the_holder_is_named(output, loop, kind, caplog):
    """A wait of over a second logs once for whom, while it goes on."""
    configure(output)
    caplog.set_level(logging.WARNING, "profwin")

    async def wait():
        async with block(kind):
            pass

    async def main(other):
        async with ticking():
            task = asyncio.create_task(wait())
            await seen(lambda: str(other.pid) in caplog.text)
            other.say()
            await task

    with holder(output) as other, training_step(1):
        run(loop, main(other))
        said = [record.getMessage() for record in caplog.records if "has waited for" in record.getMessage()]
        assert len(said) == 1
        assert f"process {other.pid}" in said[0] or f"pid {other.pid}" in said[0]
    profwin.shutdown()


@LOOPS
@KINDS
def test_the_budget_ends_a_wait(output, loop, kind):
    """After the wait budget the body runs unrecorded, and later ones of the step do not wait again."""
    configure(output, wait_budget=1.0)

    async def wait():
        async with block(kind):
            pass

    async def main():
        async with ticking():
            await wait()
            await wait()

    with holder(output), training_step(1):
        run(loop, main())
    profwin.shutdown()
    first, second = Evidence(output).of("skip")
    assert (first["reason"], second["reason"]) == ("busy", "busy")
    assert second["waited"] < 1.0 <= first["waited"] < 15


@LOOPS
@KINDS
def test_on_busy_skip_does_not_wait(output, loop, kind):
    """With on_busy="skip" the body runs unrecorded at once, and says for whom."""
    configure(output, on_busy="skip")

    async def enter():
        async with block(kind):
            pass

    with holder(output), training_step(1):
        run(loop, asyncio.wait_for(enter(), 15))
    profwin.shutdown()
    (skip,) = Evidence(output).of("skip")
    assert skip["reason"] == "busy"
    assert skip["waited"] < 15
    assert "rollout" in skip["holder"]


@LOOPS
def test_a_wait_does_not_hold_up_other_devices(output, loop):
    """While one task waits for a busy device, another one's stage on a free device is recorded."""
    configure(output)

    async def wait():
        async with training_stage("waits", devices="pretend:card"):
            pass

    async def main(other):
        task = asyncio.create_task(wait())
        await asyncio.sleep(0.1)
        async with training_stage("free", devices="pretend:free"):
            assert current().owner.collections
            assert not task.done()
        other.say()
        await task

    with holder(output) as other, training_step(1):
        run(loop, main(other))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("skip")
    assert evidence.recorded()[1:] == ["free", "waits"]


@LOOPS
@KINDS
def test_many_tasks_wait_for_one_device(output, loop, kind):
    """Twenty tasks that wait for a device all get in when it is free, into one recording."""
    configure(output)

    async def wait():
        async with block(kind):
            await asyncio.sleep(0.05)

    async def main(other):
        async with ticking():
            tasks = [asyncio.create_task(wait()) for _ in range(20)]
            await asyncio.sleep(0.2)
            other.say()
            await asyncio.wait_for(asyncio.gather(*tasks), 20)

    with holder(output) as other, training_step(1):
        run(loop, main(other))
    profwin.shutdown()
    evidence = Evidence(output)
    assert len(evidence.recorded()) == 21
    assert len(evidence.collections()) == 2


@LOOPS
def test_two_loops_in_two_threads(output, loop):
    """Tasks of two event loops in two threads take turns on one device without blocking either."""
    configure(output)

    async def work(name):
        async with ticking():
            for _ in range(20):
                async with training_stage(name):
                    await asyncio.sleep(0.001)

    async def main():
        await asyncio.gather(asyncio.to_thread(asyncio.run, work("other")), work("mine"))

    with training_step(1):
        run(loop, main())
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert not evidence.of("skip")
    assert len(evidence.recorded()) == 40
