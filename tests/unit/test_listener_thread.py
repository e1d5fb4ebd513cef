"""The listener's timers, and its thread: when it sleeps, dies, is replaced and ends."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path

import pytest
from listener_support import PATIENCE, ask, fresh_listener, named, open_now, seen, take, wait_until

from profwin import clock
from profwin import listener as module
from profwin.registry.lock import Registry


@pytest.fixture
def registry(locks):
    """Give the registry of the test's own directory."""
    return Registry(locks)


@pytest.fixture
def listener():
    """Give a listener, closed in the end."""
    with fresh_listener() as listener:
        yield listener


@pytest.fixture
def logged(monkeypatch):
    """Collect what the listener logs."""
    found = []
    monkeypatch.setattr(module, "_log", lambda level, message, error=None: found.append((level, message, error)))
    return found


def test_timers_go_by_the_clock(listener, monkeypatch):
    """Actions begin when the clock has reached their time, in their order, and not once cancelled."""
    now, calls = [100.0], []
    monkeypatch.setattr(clock, "now", lambda: now[0])
    later = listener.at(160.0, lambda: calls.append("later"))
    for number in (3, 1, 2):
        listener.at(150.0 + number, lambda number=number: calls.append(number))
    never = listener.at(151.0, lambda: calls.append("never"))
    never.cancel()
    never.cancel()
    listener.look()
    assert calls == []
    now[0] = 155.0
    listener.look()
    wait_until(lambda: len(calls) == 3)
    assert sorted(calls) == [1, 2, 3]
    later.cancel()
    now[0] = 200.0
    listener.look()
    listener.at(190.0, lambda: calls.append("past"))
    wait_until(lambda: "past" in calls)
    assert len(calls) == 4


def test_an_earlier_timer_wakes_the_thread(listener):
    """A timer that is due before the one slept for begins on time, in its own thread."""
    began, done = time.monotonic(), []
    listener.at(clock.now() + 60, lambda: done.append("late"))
    time.sleep(0.05)
    listener.at(clock.now() + 0.05, lambda: done.append(threading.current_thread().name))
    wait_until(lambda: done)
    assert done == ["profwin-release"]
    assert 0.1 <= time.monotonic() - began < 10


def test_idle_costs_nothing(registry, listener):
    """With an offer and a far timer the thread sleeps: it does not wake even once."""
    held = take(registry, "card")
    listener.offer(held, run="run", on_ask=print)
    listener.at(clock.now() + 3600, print)
    time.sleep(0.1)
    (thread,) = named("profwin-listener")
    status = Path(f"/proc/self/task/{thread.native_id}/status")
    switches = [line for line in status.read_text().splitlines() if "ctxt_switches" in line]
    time.sleep(0.5)
    assert [line for line in status.read_text().splitlines() if "ctxt_switches" in line] == switches
    held.release()


def test_a_copy_of_the_fifo_wakes_nobody(registry, listener):
    """A child that is not at its exec yet has copies of the descriptors: after a withdrawal they keep nobody awake."""
    held = take(registry, "card")
    offer = listener.offer(held, run="run", on_ask=print)
    busy, copy = seen(registry), os.dup(offer.inboxes[0].numbers[0])
    offer.withdraw()
    assert ask(registry, busy)
    (thread,) = named("profwin-listener")
    began = time.clock_gettime(_clock(thread))
    time.sleep(0.3)
    assert time.clock_gettime(_clock(thread)) - began < 0.05
    os.close(copy)
    held.release()


def _clock(thread):
    return time.pthread_getcpuclockid(thread.ident)


def _kill(thread, error=SystemExit):
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(error))


@pytest.mark.parametrize("again", ["offer", "timer"])
def test_a_dead_thread_is_replaced(registry, listener, logged, again):
    """When the thread dies requests are refused at once; the next offer or timer revives the open offers."""
    held, calls = take(registry, "card"), []
    offer = listener.offer(held, run="run", on_ask=lambda request: calls.append(request.name))
    done, served = take(registry, "served"), []
    listener.offer(done, run="run", on_ask=served.append)
    assert ask(registry, seen(registry, "served"))
    wait_until(lambda: served)
    old = seen(registry)
    (thread,) = named("profwin-listener")
    _kill(thread)
    listener.look()  # it sees the exception when it wakes
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert logged
    assert not ask(registry, old)
    assert not open_now()
    other = take(registry, "other")
    if again == "offer":
        listener.offer(other, run="run", on_ask=print)
    else:
        listener.at(clock.now(), lambda: calls.append("timer"))
        wait_until(lambda: calls == ["timer"])
        calls.clear()
    assert offer.devices == ("card",)
    assert seen(registry).holder.lease != old.holder.lease
    assert ask(registry, old, "old")
    assert ask(registry, seen(registry), "new")
    wait_until(lambda: calls)
    assert calls == ["new"]
    assert len(served) == 1
    for each in (held, other, done):
        each.release()


def test_close_ends_everything_and_waits_for_no_release(registry, listener):
    """Closing ends thread, offers and timers, from a callback too, again and again; a release in progress goes on."""
    held, calls, gate = take(registry, "card"), [], threading.Event()

    def on_ask(_):
        listener.close()
        calls.append("closed")
        gate.wait(PATIENCE)
        calls.append("released")

    listener.offer(held, run="run", on_ask=on_ask)
    listener.at(clock.now() + 3600, print)
    assert ask(registry, seen(registry))
    wait_until(lambda: calls)
    listener.close()
    assert calls == ["closed"]
    assert not named("profwin-listener")
    assert listener.offer(held, run="run", on_ask=print).devices == ()
    listener.at(clock.now(), lambda: calls.append("never"))
    listener.look()
    gate.set()
    wait_until(lambda: len(calls) == 2)
    assert calls == ["closed", "released"]
    held.release()


def test_without_threads_nobody_can_ask(registry, listener, logged, monkeypatch):
    """Where no thread can be started the offer is empty, nothing is raised, and the next try serves it."""
    held, calls = take(registry, "card"), []

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        offer = listener.offer(held, run="run", on_ask=lambda _: calls.append(1))
    assert offer.devices == ()
    assert logged
    assert not ask(registry, seen(registry))
    listener.at(clock.now() + 60, print)
    assert ask(registry, seen(registry))
    wait_until(lambda: calls)
    held.release()
