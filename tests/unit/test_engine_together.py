"""Calls side by side: where each is made, what is returned of it, and what becomes of one that comes too late."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from profwin.engines.together import LOOP_GONE, in_loop, together


def wait_for(condition, patience=20.0):
    """Wait until something holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_each_has_its_outcome():
    """Those that may be made anywhere are beside each other, all others in this thread, in their order."""
    threads, barrier = {}, threading.Barrier(2, timeout=20)

    def call(name, meets=False):
        threads[name] = threading.get_ident()
        if meets:
            barrier.wait()
        if name == "bad":
            raise ValueError(name)

    calls = [
        (lambda: call("first"), False), (lambda: call("a", True), True), (lambda: call("bad"), False),
        (lambda: call("b", True), True),
    ]  # fmt: skip
    outcomes, interrupt = together(calls)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ValueError, type(None)]
    assert interrupt is None
    here = threading.get_ident()
    assert [threads[name] == here for name in ("first", "bad", "a", "b")] == [True, True, False, False]
    assert list(threads).index("first") < list(threads).index("bad")


def test_one_alone_needs_no_thread():
    """It is made here, wherever it may be made."""
    seen = []
    assert together([(lambda: seen.append(threading.get_ident()), True)]) == ([None], None)
    assert seen == [threading.get_ident()]


@pytest.mark.parametrize("fails", [False, True])
def test_what_comes_too_late_is_undone(fails):
    """It counts as failed; when it has succeeded all the same it is undone, in its own thread."""
    go, undone = threading.Event(), []

    def late():
        go.wait(20)
        if fails:
            raise ValueError

    before = threading.active_count()
    outcomes, interrupt = together([(late, True)], lambda number: undone.append(number), patience=0.01)
    assert (type(outcomes[0]), interrupt) == (TimeoutError, None)
    assert undone == []
    go.set()
    wait_for(lambda: threading.active_count() == before)
    assert undone == ([] if fails else [0])


def test_an_interrupt_in_this_thread_is_returned():
    """The call that it came in has failed by it; the others are waited for."""

    def interrupted():
        raise KeyboardInterrupt

    outcomes, interrupt = together([(interrupted, False), (lambda: None, True)])
    assert isinstance(interrupt, KeyboardInterrupt)
    assert outcomes[0] is interrupt
    assert outcomes[1] is None


def test_ctrl_c_while_it_waits():
    """It is returned, and what had not ended a moment later is undone when it has."""
    go, undone = threading.Event(), []

    def slow():
        os.kill(os.getpid(), signal.SIGINT)
        go.wait(20)

    before = threading.active_count()
    outcomes, interrupt = together([(lambda: None, False), (slow, True)], lambda number: undone.append(number))
    assert isinstance(interrupt, KeyboardInterrupt)
    assert outcomes[0] in (None, interrupt)  # the signal may come before the first call, or after it
    assert isinstance(outcomes[1], TimeoutError)
    go.set()
    wait_for(lambda: threading.active_count() == before)
    assert undone == [1]


def test_work_in_an_event_loop():
    """It is done in the loop's thread, its failure passes, and a loop that was closed is said to be gone."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    seen = []

    def fail():
        raise ValueError("mine")

    try:
        in_loop(loop, lambda: seen.append(threading.get_ident()))
        assert seen == [thread.ident]
        with pytest.raises(ValueError, match="mine"):
            in_loop(loop, fail)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    threading.Timer(0.05, loop.close).start()
    with pytest.raises(RuntimeError, match=LOOP_GONE):
        in_loop(loop, fail)
