"""Sleeping and working beside an event loop: what ends a sleep, what cancellation leaves, where work runs."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from importlib.util import find_spec

import pytest

from profwin.eventloop import beside, in_thread, until

_UVLOOP = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")
LOOPS = pytest.mark.parametrize("loop", ["asyncio", pytest.param("uvloop", marks=_UVLOOP)])


def run(loop, main):
    """Run a coroutine in an event loop of a kind."""
    if loop == "asyncio":
        return asyncio.run(main)
    import uvloop

    return uvloop.run(main)


class Wait:
    """A wait for a descriptor, for so many seconds; notes how it was woken."""

    def __init__(self, seconds, descriptor, further=0.0):
        self.seconds, self.descriptor, self.further = seconds, descriptor, further
        self.ends = []

    def pause(self, seconds):
        """Say how long to sleep and what to watch."""
        assert seconds > 0
        return self.seconds, self.descriptor

    def woken(self, hung_up, slept):
        """Note how a sleep ended."""
        self.ends.append((hung_up, slept))
        return self.further


@pytest.fixture
def pipe():
    """Return both ends of a pipe; those that the test closed are None then."""
    ends = list(os.pipe())
    yield ends
    for number in ends:
        if number is not None:
            os.close(number)


def hang_up(pipe):
    """Close the pipe's write end."""
    os.close(pipe[1])
    pipe[1] = None


def registered(descriptor):
    """Say whether the running loop watches a descriptor."""
    if asyncio.get_running_loop().__class__.__module__.startswith("asyncio"):
        return descriptor in asyncio.get_running_loop()._selector.get_map()
    tags = []
    for name in os.listdir("/proc/self/fdinfo"):
        try:
            with open(f"/proc/self/fdinfo/{name}") as file:
                tags += [int(line.split()[1]) for line in file if line.startswith("tfd:")]
        except OSError:
            continue
    return descriptor in tags


@LOOPS
def test_a_hang_up_ends_the_sleep(loop, pipe):
    """A sleep ends as soon as the other end is closed, is known to have ended so, and watches nothing any more."""
    wait = Wait(60.0, pipe[0])

    async def main():
        task = asyncio.create_task(until(wait))
        await asyncio.sleep(0.02)
        assert registered(pipe[0])
        hang_up(pipe)
        await asyncio.wait_for(task, 20)
        assert not registered(pipe[0])

    run(loop, main())
    assert [hung_up for hung_up, _ in wait.ends] == [True]


@LOOPS
def test_a_sleep_ends_in_time(loop, pipe):
    """Where nothing hangs up the time ends the sleep, and it is known to have ended so."""
    wait = Wait(0.03, pipe[0])

    async def main():
        for _ in range(10):
            await until(wait)
        assert not registered(pipe[0])

    run(loop, main())
    assert [hung_up for hung_up, _ in wait.ends] == [False] * 10
    assert all(slept > 0.015 for _, slept in wait.ends)


@LOOPS
def test_a_sleep_without_descriptor(loop):
    """Without a descriptor only time ends the sleep; of no length, it still lets the loop turn."""
    wait = Wait(0.0, None)
    turned = []

    async def main():
        asyncio.get_running_loop().call_soon(turned.append, 1)
        await until(wait)
        assert turned

    run(loop, main())
    assert wait.ends[0][0] is False


@LOOPS
def test_a_further_sleep(loop, pipe):
    """A wait that was woken for nothing again and again may ask for a further sleep, in which nothing is watched."""
    hang_up(pipe)
    wait = Wait(60.0, pipe[0], further=0.05)

    async def main():
        began = time.monotonic()
        task = asyncio.create_task(until(wait))
        while not wait.ends:
            await asyncio.sleep(0)
        assert not registered(pipe[0])
        await task
        assert time.monotonic() - began >= 0.05

    run(loop, main())


@LOOPS
@pytest.mark.parametrize("when", ["asleep", "woken already"])
def test_cancellation_leaves_nothing_watched(loop, pipe, when):
    """Cancelled asleep or in the very turn of its wake-up, a sleep watches nothing, and its number can be used anew."""
    wait = Wait(60.0, pipe[0])

    async def main():
        task = asyncio.create_task(until(wait))
        await asyncio.sleep(0.02)
        if when == "woken already":
            hang_up(pipe)
            time.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not registered(pipe[0])
        other = os.pipe()
        os.dup2(other[0], pipe[0])  # the same number is another file now
        asyncio.get_running_loop().add_reader(pipe[0], read.set)
        os.write(other[1], b"x")
        await asyncio.wait_for(read.wait(), 20)
        asyncio.get_running_loop().remove_reader(pipe[0])
        for number in other:
            os.close(number)

    read = asyncio.Event()
    run(loop, main())
    assert not wait.ends


@pytest.mark.parametrize("error", [NotImplementedError, OSError])
def test_a_loop_that_cannot_watch(pipe, monkeypatch, error):
    """Where a loop cannot watch a descriptor, the time alone ends the sleep."""
    wait = Wait(0.03, pipe[0])

    def refuse(*_):
        raise error

    async def main():
        monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", refuse)
        if error is NotImplementedError:
            monkeypatch.setattr(asyncio.get_running_loop(), "remove_reader", refuse)
        await until(wait)

    asyncio.run(main())
    assert wait.ends[0][0] is False


@LOOPS
def test_work_runs_beside_the_loop(loop):
    """Work runs in a thread of its own while the loop turns, and has ended when the caller goes on."""
    turns, threads = [], []

    async def tick():
        while True:
            await asyncio.sleep(0.005)
            turns.append(1)

    def work():
        threads.append(threading.current_thread())
        time.sleep(0.2)
        threads.append(len(turns))

    async def main():
        task = asyncio.create_task(tick())
        await in_thread(work)
        task.cancel()

    run(loop, main())
    assert threads[0] is not threading.main_thread()
    assert threads[0].daemon
    assert threads[1] > 5


@LOOPS
@pytest.mark.parametrize("error", [KeyError("mine"), SystemExit(3)])
def test_what_work_raises(loop, error):
    """What the work raises, of any kind, is raised in the coroutine."""

    def fail():
        raise error

    async def main():
        with pytest.raises(type(error)) as caught:
            await in_thread(fail)
        assert caught.value is error

    run(loop, main())


@LOOPS
def test_cancellation_is_delivered_when_the_work_is_done(loop):
    """However often it is cancelled, the caller goes on when the work is done, and is cancelled then."""
    go_on, done = threading.Event(), []

    def work():
        go_on.wait(20)
        done.append(1)

    async def main():
        task = asyncio.create_task(in_thread(work))
        for _ in range(3):
            await asyncio.sleep(0.01)
            task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == [1]

    run(loop, main())


@LOOPS
def test_a_caller_that_is_closed_leaves_the_work_alone(loop):
    """Work goes on to its end where its caller is closed, and the loop too, before it is done."""
    go_on, done = threading.Event(), threading.Event()

    def work():
        go_on.wait(20)
        done.set()

    async def main():
        coroutine = in_thread(work)
        coroutine.send(None)
        coroutine.close()

    run(loop, main())
    go_on.set()
    assert done.wait(20)


def test_where_there_can_be_no_thread(monkeypatch):
    """Where no thread can be started, the work is done in the caller's own."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    threads = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    beside(lambda: threads.append(threading.current_thread()))
    asyncio.run(in_thread(lambda: threads.append(threading.current_thread())))
    assert threads == [threading.main_thread()] * 2
