"""Waits and recordings that end from outside: with their loop, their coroutine object, or a Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import signal
import time

import pytest
from asyncio_support import KINDS, LOOPS, Untouched, block, configure, free, run, seen
from core_support import PATIENCE, Child, Evidence, holder

import profwin
from profwin import training_step
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@LOOPS
@KINDS
@pytest.mark.parametrize("where", ["waits", "records"])
def test_the_loop_ends_with_the_task(output, loop, kind, where):
    """A loop that ends while a task of it waits or records leaves nothing behind."""
    configure(output)
    before = []

    async def body():
        async with block(kind):
            await asyncio.sleep(60)

    async def main():
        before.append(Untouched())
        main.task = asyncio.create_task(body())
        await seen(before[0].differs if where == "waits" else lambda: current().owner.collections)

    with training_step(1):
        if where == "waits":
            with holder(output):
                run(loop, main())
        else:
            run(loop, main())
    assert main.task.cancelled()
    assert not current().entrance.starting
    assert not current().owner.collections
    assert free()
    profwin.shutdown()


@LOOPS
@KINDS
@pytest.mark.parametrize("where", ["waits", "records"])
@pytest.mark.parametrize("how", ["closed", "collected", "closed after the loop"])
def test_a_coroutine_that_is_closed(output, loop, kind, where, how):
    """A coroutine object that is closed or collected, during the loop or after it, leaves nothing behind."""
    configure(output)

    async def body():
        async with block(kind):
            await asyncio.sleep(60)

    async def main():
        untouched = Untouched()
        coroutine = body()
        coroutine.send(None)  # as a task does: it is now waiting, or in its body
        await seen(untouched.differs if where == "waits" else lambda: current().owner.collections)
        if how == "closed after the loop":
            return untouched, coroutine
        if how == "closed":
            coroutine.close()
        del coroutine
        gc.collect()
        untouched.check()
        return None

    def both():
        left = run(loop, main())
        if left is not None:
            left[1].close()
        assert not current().entrance.starting
        assert not current().owner.collections

    with training_step(1):
        if where == "waits":
            with holder(output):
                both()
        else:
            both()
    assert free()
    profwin.shutdown()


SCRIPT = """
profwin.configure(steps="1", output={output!r}, devices="pretend:card", run="script", wait_budget=60)
async def main():
    async with rollout_window(1):
        say("recording")
        await asyncio.sleep(60)
try:
    say("begins")
    if {loop!r} == "asyncio":
        asyncio.run(main())
    else:
        import uvloop
        uvloop.run(main())
except KeyboardInterrupt:
    say("interrupted")
from profwin.configuration import current
assert not current().owner.collections and not current().entrance.starting
for thread in threading.enumerate():
    assert thread.daemon or thread is threading.main_thread(), thread
say("clean")
hear()
"""


@LOOPS
@pytest.mark.parametrize("where", ["waits", "records"])
def test_ctrl_c(output, loop, where):
    """Ctrl-C in a loop ends a wait or a recording; while the process goes on, the device is free."""
    script = SCRIPT.format(output=str(output), loop=loop)

    def interrupt(child):
        assert child.hear() == "begins"
        if where == "records":
            assert child.hear() == "recording"
        else:
            time.sleep(0.5)
        child.process.send_signal(signal.SIGINT)
        assert child.hear(PATIENCE) == "interrupted"
        assert child.hear() == "clean"

    if where == "waits":
        with holder(output) as other, Child(script) as child:
            interrupt(child)
            other.kill()
            assert free()
            child.say()
            code, _, err = child.finish()
    else:
        with Child(script) as child:
            interrupt(child)
            assert free()
            child.say()
            code, _, err = child.finish()
    assert code == 0
    assert "Error" not in err, err
    assert "Warning" not in err, err
    evidence = Evidence(output)
    evidence.check(killed=tuple(record["pid"] for record in evidence.of("process", run="other")))
