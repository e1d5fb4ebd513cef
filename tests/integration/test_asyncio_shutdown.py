"""The end of a run while engines record or start in an event loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from asyncio_support import LOOPS, configure, run, seen, ticking
from core_support import Evidence
from core_support import run as run_script

import profwin
from profwin import rollout_window
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
def test_shutdown_in_the_loops_thread_while_it_records(output, loop):
    """Shutting down in the event loop that an engine needs waits for nothing, says so, and the engine still stops."""
    configure(output)
    engine = make()

    async def main():
        async with rollout_window(1, engine=engine):
            began = time.monotonic()
            profwin.shutdown()
            assert time.monotonic() - began < 15
            await seen(lambda: not engine.recording)

    run(loop, main())
    assert "late-stop" in codes(output)
    assert engine.order == ["start", "started", "stop", "stopped"]
    configure(output, run="following", wait_budget=5)
    with rollout_window(1):  # the device is free again
        assert current().owner.collections
    profwin.shutdown()


@LOOPS
def test_shutdown_in_the_loops_thread_while_it_starts(output, loop):
    """An engine that starts while its loop's thread shuts down is stopped as soon as it has started."""
    configure(output)
    engine, late = make(), threading.Event()
    engine.delay("start", late)

    async def main():
        async with ticking():
            task = asyncio.create_task(body())
            await seen(lambda: "start" in engine.order)
            profwin.shutdown()
            late.set()
            await task

    async def body():
        async with rollout_window(1, engine=engine):
            assert not engine.recording

    run(loop, main())
    assert engine.order == ["start", "started", "stop", "stopped"]


@LOOPS
def test_shutdown_in_another_thread(output, loop):
    """Shutting down in another thread waits until the loop has stopped its engine."""
    configure(output)
    engine = make()
    engine.delay("stop", 0.2)

    async def main():
        async with ticking(), rollout_window(1, engine=engine):
            await asyncio.to_thread(profwin.shutdown)
            assert not engine.recording

    run(loop, main())
    evidence = Evidence(output)
    evidence.records = [record for record in evidence.records if record["kind"] != "enter"]  # its exit came later
    assert [each["reason"] for each in evidence.collections()] == ["shutdown"]
    assert not evidence.of("finding", code="late-stop")


@pytest.mark.parametrize("end", ["loop.close()", ""])
def test_the_interpreter_ends_first(output, end):
    """A process that ends with a coroutine engine's window open, its loop closed or only stopped, ends soon."""
    began = time.monotonic()
    _, err = run_script(
        f"""
from profwin.testing import RecordingEngine
profwin.configure(steps="1", output={str(output)!r}, devices="pretend:card", run="ends")
engine = RecordingEngine("pretend:card", asynchronous=True)
loop = asyncio.new_event_loop()
async def main():
    window = rollout_window(1, engine=engine)
    await window.aopen()
    return window
window = loop.run_until_complete(main())
{end}
"""
    )
    assert time.monotonic() - began < 20
    assert "Traceback" not in err, err
    assert "never awaited" not in err, err
    assert len(Evidence(output).of("end")) == 1
