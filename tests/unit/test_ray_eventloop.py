"""Work in the event loop of an asynchronous actor: one call at a time waits for it there, whatever else comes."""

from __future__ import annotations

import asyncio
import threading

import pytest

pytest.importorskip("ray", reason="ray is not installed: its own ways in are imported")

from profwin.ray import eventloop

PATIENCE = 60.0


class Worker:
    """Ray's core worker, whose thread goes on with other calls while one waits: `meanwhile` is such a call."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.meanwhile = None
        self.waited = 0

    def get_event_loop(self, descriptor, group):
        """Return the loop, and what is not needed."""
        return self.loop, None

    def run_async_func_or_coro_in_event_loop(self, function, descriptor, group, *, is_actor_task):
        """Run a coroutine function in the loop, and wait."""
        self.waited += 1
        future = asyncio.run_coroutine_threadsafe(function(), self.loop)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        future.result(PATIENCE)

    def close(self):
        """End the loop."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()


@pytest.fixture
def worker(monkeypatch):
    """Be the process of an asynchronous actor."""
    found = Worker()
    monkeypatch.setattr(eventloop, "asynchronous", lambda: found)
    yield found
    found.close()


def test_one_call_waits(worker):
    """A call that comes while another one waits begins its work and returns; who comes later waits again."""
    first, second, done = threading.Event(), threading.Event(), []

    def work(name, event):
        async def looped():
            while not event.is_set():
                await asyncio.sleep(0)
            done.append(name)

        yield None, looped

    def meanwhile():
        eventloop.perform(work("second", second))
        assert done == []
        second.set()
        first.set()

    worker.meanwhile = meanwhile
    eventloop.perform(work("first", first))
    assert "first" in done
    eventloop.perform(work("third", first))
    assert sorted(done) == ["first", "second", "third"]
    assert worker.waited == 2


def test_what_a_step_raises_is_the_works_own(worker):
    """It is raised at the step, where it can be dealt with, or passes; and another call waits as before."""
    seen = []

    async def fails():
        raise KeyError

    def careful():
        try:
            yield None, fails
        except KeyError as error:
            seen.append(error)

    def careless():
        yield None, fails

    eventloop.perform(careful())
    with pytest.raises(KeyError):
        eventloop.perform(careless())
    eventloop.perform(careful())
    assert (len(seen), worker.waited) == (2, 3)


def test_without_a_loop(monkeypatch):
    """In an actor without coroutine methods the other form of each step is called, in the same thread."""
    monkeypatch.setattr(eventloop, "asynchronous", lambda: None)
    turns = iter((False, False, True))
    threads = []

    def work():
        yield from eventloop.until(lambda: next(turns))
        yield lambda: threads.append(threading.get_ident()), None

    eventloop.perform(work())
    assert threads == [threading.get_ident()]
