"""Calls that are requests: all are sent before any is waited for, in one thread; who fails or is late gets his own."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import profwin
from profwin.engines.together import Request, together

PATIENCE = 20.0


def wait_for(condition):
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Asked:
    """A request whose answer the test gives."""

    def __init__(self, seconds=PATIENCE):
        self.until, self.given, self.failed = time.monotonic() + seconds, threading.Event(), False

    @property
    def done(self):
        """Whether the answer was given."""
        return self.given.is_set()

    @staticmethod
    def gather(requests, seconds):
        """Wait for the first of them."""
        requests[0].given.wait(min(seconds, 0.05))


class Engine:
    """What is asked, and notes what happens."""

    def __init__(self, name, log, *, answered=True, failed=False, seconds=PATIENCE):
        self.name, self.log, self.asked = name, log, Asked(seconds)
        self.asked.failed = failed
        if answered:
            self.asked.given.set()

    def work(self):
        """Send, then take the answer."""
        self.note("sent")
        yield self.asked
        if not self.asked.given.wait(max(0.0, self.asked.until - time.monotonic())):
            raise TimeoutError(self.name)
        self.note("taken")
        if self.asked.failed:
            raise ValueError(self.name)

    def note(self, what):
        """Write it down, with the thread."""
        self.log.append((self.name, what, threading.get_ident()))


def calls(*engines):
    """Return the calls of engines."""
    return [(Request(engine.work), True) for engine in engines]


def names(log, what):
    """Return of whom something was noted."""
    return [name for name, noted, _ in log if noted == what]


def test_all_are_sent_before_any_is_waited_for():
    """All are sent and taken in this thread, where nothing else is to be done in it."""
    log = []
    engines = [Engine(number, log) for number in range(50)]
    assert together(calls(*engines)) == ([None] * 50, None)
    assert [each[:2] for each in log] == [(number, what) for what in ("sent", "taken") for number in range(50)]
    assert {thread for *_, thread in log} == {threading.get_ident()}


def test_beside_calls_in_this_thread():
    """They are sent in another thread while others are made here, and in any; each has its outcome in its place."""
    log, here = [], threading.get_ident()
    made = []
    outcomes, interrupt = together([
        (lambda: made.append(threading.get_ident()), False), *calls(Engine("a", log)),
        (lambda: made.append(threading.get_ident()), True), *calls(Engine("b", log, failed=True)),
    ])  # fmt: skip
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), type(None), ValueError]
    assert interrupt is None
    assert made.count(here) == 1
    assert here not in {thread for *_, thread in log}


def test_who_has_failed_or_is_late_keeps_nobody():
    """Each of them is dealt with in a thread of its own, as soon as that is seen; who is late may still answer."""
    log, here = [], threading.get_ident()
    late, slow = Engine("late", log, answered=False, seconds=0.0), Engine("slow", log, answered=False)

    class Bad(Engine):
        def work(self):
            yield from super().work()

        def note(self, what):
            super().note(what)
            if what == "taken":
                slow.asked.given.set()  # it is dealt with while the first is waited for

    bad = Bad("bad", log, failed=True)
    outcomes, interrupt = together(calls(slow, late, bad, Engine("good", log)))
    assert [type(outcome) for outcome in outcomes] == [type(None), TimeoutError, ValueError, type(None)]
    assert interrupt is None
    assert [thread == here for name, what, thread in log if what == "taken" and name == "bad"] == [False]


def test_what_cannot_be_sent_or_ends_at_once():
    """Its outcome is there before any answer."""

    def refused():
        raise ValueError("no")
        yield

    def nothing():
        return
        yield

    log = []
    outcomes, interrupt = together([(Request(refused), True), (Request(nothing), True), *calls(Engine("a", log))])
    assert [type(outcome) for outcome in outcomes] == [ValueError, type(None), type(None)]
    assert interrupt is None


def test_what_comes_too_late_is_undone():
    """Who answers after the patience of the caller is undone; who fails then is not."""
    log, undone = [], []
    engines = [Engine(0, log, answered=False), Engine(1, log, answered=False, failed=True), Engine(2, log)]
    before = threading.active_count()
    outcomes, interrupt = together(calls(*engines), undone.append, patience=0.3)
    assert [type(outcome) for outcome in outcomes[:2]] == [TimeoutError, TimeoutError]
    assert (undone, interrupt) == ([], None)
    for engine in engines:
        engine.asked.given.set()
    wait_for(lambda: threading.active_count() == before)
    assert undone in ([0], [0, 2], [2, 0])
    assert (2 in undone) == (outcomes[2] is not None)


def test_late_ones_do_not_wait_for_each_other():
    """Once nobody waits for the round, each is undone when it answers, whatever others do; none is sent any more."""
    log, undone, go = [], [], threading.Event()

    def undo(number):
        undone.append(number)
        if number == 1:
            assert go.wait(PATIENCE)

    def slow_to_send():
        assert go.wait(PATIENCE)
        yield late.asked

    hung, first, late, never = (Engine(name, log, answered=False) for name in ("hung", "first", "late", "never"))
    before = threading.active_count()
    outcomes, _ = together(calls(hung, first), undo, patience=0.1)
    assert {type(outcome) for outcome in outcomes} == {TimeoutError}
    first.asked.given.set()
    wait_for(lambda: undone == [1])
    hung.asked.given.set()
    wait_for(lambda: undone == [1, 0])
    together([(Request(slow_to_send), True), *calls(never)], undo, patience=0.1)
    late.asked.given.set()
    go.set()
    wait_for(lambda: threading.active_count() == before)
    assert names(log, "sent") == ["hung", "first"]


@pytest.mark.parametrize("beside", [False, True])
def test_ctrl_c_while_it_waits(beside):
    """It is returned; who has answered by then counts, and who has not is undone when it has."""
    log, undone = [], []
    hung, good = Engine(0, log, answered=False), Engine(1, log)

    def interrupt_soon():
        wait_for(lambda: len(names(log, "sent")) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    before = threading.active_count()
    thread = threading.Thread(target=interrupt_soon)
    thread.start()
    further = [(lambda: None, False)] if beside else []
    outcomes, interrupt = together([*calls(hung, good), *further], undone.append)
    thread.join()
    assert isinstance(interrupt, KeyboardInterrupt)
    assert isinstance(outcomes[0], TimeoutError)
    assert outcomes[1] is None
    assert undone == []
    hung.asked.given.set()
    wait_for(lambda: threading.active_count() == before)
    assert undone == [0]


def test_ctrl_c_while_one_is_sent():
    """It is the outcome of that one, which may have been sent; no further one is sent."""

    def interrupted():
        raise KeyboardInterrupt
        yield

    log = []
    first, last = Engine("first", log), Engine("last", log)
    outcomes, interrupt = together([*calls(first), (Request(interrupted), True), *calls(last)])
    assert isinstance(interrupt, KeyboardInterrupt)
    assert outcomes[1] is interrupt
    assert names(log, "sent") == ["first"]
    assert outcomes[0] is None
    assert isinstance(outcomes[2], TimeoutError)


def test_threads_that_cannot_be(monkeypatch):
    """Everything is done in this thread then, one after the other."""

    def none(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    log, here = [], threading.get_ident()
    outcomes, interrupt = together([*calls(Engine("a", log), Engine("b", log, failed=True)), (lambda: None, False)])
    assert [type(outcome) for outcome in outcomes] == [type(None), ValueError, type(None)]
    assert interrupt is None
    assert {thread for *_, thread in log} == {here}


class Recorder:
    """An engine in this process that may be told from any thread; its start may wait."""

    revocable = True

    def __init__(self, device, go=None, other=None):
        self.devices, self.go, self.other, self.calls = [device], go, other, []

    def start_profile(self):
        """Have Ctrl-C come when the other has started, and wait; or start at once."""
        if self.go is not None:
            wait_for(lambda: self.other.calls)
            os.kill(os.getpid(), signal.SIGINT)
            assert self.go.wait(PATIENCE)
        self.calls.append("start")

    def stop_profile(self):
        """Note it."""
        self.calls.append("stop")


def test_a_start_that_comes_after_ctrl_c_is_undone(tmp_path):
    """An engine that has started is stopped before the window is left, and a later one when it has started."""
    profwin.configure(steps="1", output=tmp_path, backend="record")
    go, before = threading.Event(), threading.active_count()
    good = Recorder("pretend:a")
    late = Recorder("pretend:b", go, good)
    window = profwin.rollout_window(1, engine=[good, late])
    with pytest.raises(KeyboardInterrupt):
        window.open()
    assert (good.calls, late.calls) == (["start", "stop"], [])
    go.set()
    wait_for(lambda: late.calls == ["start", "stop"])
    wait_for(lambda: threading.active_count() <= before)
