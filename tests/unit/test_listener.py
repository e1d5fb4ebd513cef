"""Offers of one process: who is asked, what is ignored, what ends them."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path

import pytest
from listener_support import PATIENCE, ask, fresh_listener, open_now, seen, take, wait_until

from profwin import listener as module
from profwin.registry.lock import Registry
from profwin.registry.request import Offer


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


def test_who_is_asked_is_called_once(registry, listener):
    """The first request of a lease reaches the callback in a thread of its own; further ones are ignored."""
    held = take(registry, "card")
    assert seen(registry).holder.lease == ""
    assert not ask(registry, seen(registry))
    calls, gate = [], threading.Event()

    def on_ask(request):
        calls.append((request.name, threading.current_thread().name))
        gate.wait(PATIENCE)
        held.release()

    offer = listener.offer(held, run="run", on_ask=on_ask)
    assert offer.devices == ("card",)
    busy = seen(registry)
    assert all(ask(registry, busy, name) for name in ("first", "second", "third"))
    wait_until(lambda: calls)
    assert ask(registry, busy, "fourth")
    gate.set()
    wait_until(lambda: take(registry, "card") is not None)
    assert calls == [("first", "profwin-release")]


def test_requests_that_are_not_meant_are_ignored(registry, listener):
    """An old lease and another run reach nobody; the right one is served all the same."""
    held, calls = take(registry, "card"), []
    first = listener.offer(held, run="run", on_ask=lambda _: calls.append("first"))
    old = seen(registry)
    first.withdraw()
    assert not ask(registry, old)
    listener.offer(held, run="run", on_ask=lambda request: calls.append(request.name))
    new = seen(registry)
    assert new.holder.lease not in ("", old.holder.lease)
    assert ask(registry, old, "old")
    assert not ask(registry, new, "foreign", run="other")
    assert ask(registry, new, "new")
    wait_until(lambda: calls)
    assert calls == ["new"]
    held.release()


def test_a_new_offer_ends_the_earlier_one(registry, listener):
    """Of two offers of the same devices the later one counts."""
    held, calls = take(registry, "card"), []
    first = listener.offer(held, run="run", on_ask=lambda _: calls.append("first"))
    listener.offer(held, run="run", on_ask=lambda _: calls.append("second"))
    assert first.devices == ()
    assert ask(registry, seen(registry))
    wait_until(lambda: calls)
    assert calls == ["second"]
    held.release()


def test_several_devices_have_one_lease(registry, listener):
    """Whoever asks for any of several devices asks for the offer, which is served once."""
    held, calls = take(registry, "a", "b"), []
    offer = listener.offer(held, run="run", on_ask=lambda request: calls.append(request.name))
    assert offer.devices == ("a", "b")
    assert ask(registry, seen(registry, "b"), "b")
    wait_until(lambda: calls)
    assert ask(registry, seen(registry, "a"), "a")
    held.release()
    assert calls == ["b"]


@pytest.mark.parametrize("end", ["withdraw", "release", "drop", "close"])
def test_an_offer_ends(registry, listener, end):
    """After withdrawal, release, drop or close, requests are refused at once and nothing stays open."""
    held = take(registry, "card")
    offer = listener.offer(held, run="run", on_ask=print)
    busy = seen(registry)
    if end == "withdraw":
        offer.withdraw()
        assert held.keys == ("card",)
    elif end == "release":
        held.release()
    elif end == "drop":
        del held
        gc.collect()
        assert take(registry, "card") is not None
    else:
        listener.close()
    assert not ask(registry, busy)
    assert offer.devices == ()
    assert not [target for _, target in open_now() if target.endswith(".ask")]
    offer.withdraw()


def test_what_cannot_be_asked_is_no_error(registry, listener, locks):
    """With something planted in the FIFO's place the record has no lease; other devices are not concerned."""
    Path(locks, f"a.{os.geteuid()}.ask").touch(0o600)
    held = take(registry, "a", "b")
    assert listener.offer(held, run="run", on_ask=print).devices == ("b",)
    assert seen(registry, "a").holder.lease == ""
    assert seen(registry, "b").holder.lease
    held.release()
    held = take(registry, "a")
    assert listener.offer(held, run="run", on_ask=print).devices == ()
    held.release()
    assert listener.offer(held, run="run", on_ask=print).devices == ()


def test_a_slow_callback_keeps_nobody_waiting(registry, listener, logged):
    """While one release takes long another is served; what a callback raises is logged and ends nothing."""
    slow, other = take(registry, "slow"), take(registry, "other")
    gate, calls = threading.Event(), []
    listener.offer(slow, run="run", on_ask=lambda _: gate.wait(PATIENCE))

    def fail(_):
        calls.append("other")
        raise SystemExit("on purpose")

    listener.offer(other, run="run", on_ask=fail)
    assert ask(registry, seen(registry, "slow"))
    assert ask(registry, seen(registry, "other"))
    wait_until(lambda: logged)
    assert calls == ["other"]
    assert isinstance(logged[0][2], SystemExit)
    third = take(registry, "third")
    listener.offer(third, run="run", on_ask=lambda _: calls.append("third"))
    assert ask(registry, seen(registry, "third"))
    wait_until(lambda: "third" in calls)
    gate.set()
    for held in (slow, other, third):
        held.release()


def test_a_flood_ends_its_own_inbox_only(registry, listener, logged):
    """Who is flooded cannot be asked any more, which is said once; another device's requests are served meanwhile."""
    flooded, other, calls = take(registry, "flooded"), take(registry, "other"), []
    offer = listener.offer(flooded, run="run", on_ask=lambda _: calls.append("flooded"))
    listener.offer(other, run="run", on_ask=lambda _: calls.append("other"))
    number = os.open(registry.path("flooded")[:-5] + f".{os.geteuid()}.ask", os.O_WRONLY | os.O_NONBLOCK)
    deadline = time.monotonic() + PATIENCE
    asked = False
    while offer.devices:
        assert time.monotonic() < deadline
        try:
            os.write(number, b"x\n" * 2000)
        except BlockingIOError:
            asked = asked or ask(registry, seen(registry, "other"))
        except BrokenPipeError:
            break
    os.close(number)
    wait_until(lambda: calls and logged)
    assert calls == ["other"]
    assert ["flooded" in message for _, message, _ in logged] == [True]
    assert not ask(registry, seen(registry, "flooded"))
    flooded.release()
    other.release()


def test_an_offer_is_in_the_record_when_it_is_made(registry, listener, monkeypatch):
    """Also where another thread was faster in opening its FIFO, but has not written the lease yet."""
    held, serve = take(registry, "card"), listener._serve

    def another_first(new):
        with monkeypatch.context() as patch:
            patch.setattr(Offer, "announce", lambda _: True)
            serve()
        serve(new)

    monkeypatch.setattr(listener, "_serve", another_first)
    offer = listener.offer(held, run="run", on_ask=print)
    assert seen(registry).holder.lease == offer.lease != ""
    held.release()


def test_many_threads_offer_and_withdraw(registry, listener):
    """Offers made, asked for, withdrawn and released by several threads at once lose nothing and mix nothing up."""
    wrong, served = [], []

    def work(key):
        for step in range(60):
            held, asked = take(registry, key), threading.Event()

            def on_ask(request, name=f"{key}-{step}", asked=asked):
                if request.name != name:
                    wrong.append((request.name, name))
                served.append(1)
                asked.set()

            offer = listener.offer(held, run="run", on_ask=on_ask)
            if step % 3 and not (ask(registry, seen(registry, key), f"{key}-{step}") and asked.wait(PATIENCE)):
                wrong.append((key, step))
            if step % 2:
                offer.withdraw()
            held.release()

    threads = [threading.Thread(target=work, args=(key,)) for key in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert len(served) == 4 * 40
