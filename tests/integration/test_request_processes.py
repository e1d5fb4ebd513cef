"""Requests to release between real processes: served, late, and with holders that die or fork."""

from __future__ import annotations

import os
import statistics
import time

import pytest
from lock_support import Other
from request_support import ask, busy, finish, holder, reachable_registry


@pytest.fixture
def registry():
    """Give a registry that every user can reach."""
    with reachable_registry() as registry:
        yield registry


def test_a_request_is_served(registry):
    """A process that waits asks the holder, which releases; then it has the device."""
    with holder(registry) as other:
        other.ask("held = hold('card')")
        attempt = busy(registry)
        assert ask(registry, attempt, "update")
        finish(attempt)
        assert other.ask("asked") == "['update']"


def test_three_hundred_requests_reach_whom_they_are_meant_for(registry):
    """Of 300 requests to two processes, whose leases change all the time, none is served by another holder or offer."""
    waits, asked = [], {"a": set(), "b": set()}
    deadline = time.monotonic() + 250
    with holder(registry) as one, holder(registry) as two:
        one.send("serve('a', 150)")
        two.send("serve('b', 150)")
        while any(len(leases) < 150 for leases in asked.values()):
            for key, leases in asked.items():
                attempt, began = registry.attempt([key], kind="training", run="run"), 0.0
                while (held := attempt.step()) is None:
                    assert time.monotonic() < deadline
                    current = attempt.busy.holder
                    # The holder may take the device again before this process does: then it is asked again.
                    if current is not None and current.lease not in leases and ask(registry, attempt, current.lease):
                        leases.add(current.lease)
                        began = time.monotonic()
                    attempt.wait(1)
                if began:
                    waits.append(time.monotonic() - began)
                held.release()
            time.sleep(0.001)
        assert one.hear() == two.hear() == "[]"
    assert statistics.median(waits) < 1


def test_late_and_foreign_requests_are_harmless(registry):
    """A request for an earlier lease, and one of another run, change nothing, and the right one still works."""
    with holder(registry) as other:
        other.ask("held = hold('card')")
        late = busy(registry)
        other.ask("held.release()")
        other.ask("held = hold('card')")
        assert ask(registry, late, "late")
        late.close()
        attempt = busy(registry)
        assert not ask(registry, attempt, "foreign", run="another")
        time.sleep(0.05)
        assert other.ask("(asked, held.keys)") == "([], ('card',))"
        assert ask(registry, attempt, "right")
        finish(attempt)
        assert other.ask("asked") == "['right']"


def test_a_waiter_sees_the_lease_of_an_offer_made_later(registry):
    """An offer that begins while somebody waits is seen at the next try."""
    with holder(registry) as other:
        other.ask("held = take('card')")
        attempt = busy(registry)
        assert attempt.busy.holder.lease == ""
        other.ask("offered = offer(held, 'other')")
        assert attempt.step() is None
        assert attempt.busy.holder.lease
        assert ask(registry, attempt, run="other")
        finish(attempt)


def test_a_killed_holder_refuses_at_once(registry):
    """After SIGKILL nobody listens, and the device is free."""
    with holder(registry) as other:
        other.ask("held = hold('card')")
        attempt = busy(registry)
        other.kill()
        assert not ask(registry, attempt)
        finish(attempt)


def test_sigpipe_does_not_kill_who_asks(registry):
    """A process in which SIGPIPE is not ignored survives holders that stop listening at any moment."""
    script = """
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
def storm():
    sent, deadline = 0, time.monotonic() + 0.5
    attempt = registry.attempt(["card"], kind="training", run="run")
    attempt.step()
    while time.monotonic() < deadline:
        sent += registry.ask(attempt.busy, run="run", purpose="training", name="n", step=1)
    attempt.close()
    return sent
"""
    change = "end = time.monotonic() + 0.8\nwhile time.monotonic() < end:\n    offer(held, release=False).withdraw()"
    with holder(registry) as other, Other(registry.directory) as asker:
        other.ask("held = hold('card', release=False)")
        asker.ask(script)
        asker.send("storm()")
        other.ask(change)
        assert int(asker.hear()) > 0


def test_a_forked_child_disturbs_nothing(registry):
    """A child lets go of what it inherits: the parent is still asked, and when it is killed nobody seems to listen."""
    fork = """
def fork():
    child = os.fork()
    if not child:
        offered.withdraw()
        held.release()
        listener.look()
        empty = not offered.devices and "profwin-listener" not in [each.name for each in threading.enumerate()]
        own = registry.acquire(["own"], kind="rollout", run="run", name="n", step=1)
        mine = listener.offer(own, run="run", on_ask=lambda request: os.write(writer, b"asked"))
        os.write(writer, b"ready" if empty and mine.devices else b"wrong")
        time.sleep(60)
        os._exit(0)
    return child
"""
    with holder(registry) as other:
        other.ask(fork)
        other.ask("reader, writer = os.pipe()")
        other.ask("held = registry.acquire(['card'], kind='rollout', run='run', name='n', step=1)")
        other.ask("offered = offer(held, release=False)")
        child = int(other.ask("fork()"))
        assert other.ask("os.read(reader, 5)") == "b'ready'"
        attempt = busy(registry)
        assert ask(registry, attempt, "parent")
        other.ask("until(lambda: asked == ['parent'])")
        own = busy(registry, "own")
        assert ask(registry, own)
        own.close()
        assert other.ask("os.read(reader, 5)") == "b'asked'"
        other.kill()
        assert not ask(registry, attempt)
        finish(attempt)
        os.kill(child, 9)


def test_a_forked_child_that_does_nothing_hears_nothing(registry):
    """A child that outlives its parent, and has never touched what it inherited, does not seem to listen."""
    with holder(registry) as other:
        other.ask("held = hold('card')")
        other.ask("pipe = os.pipe()")
        child = int(other.ask("os.fork() or (os.write(pipe[1], b'x'), time.sleep(60), os._exit(0))"))
        other.ask("os.read(pipe[0], 1)")  # it has started, and let go of what it inherited
        attempt = busy(registry)
        other.kill()
        refused = not ask(registry, attempt)
        os.kill(child, 9)
        assert refused
        finish(attempt)


def test_a_child_that_is_not_at_its_exec_yet_steals_nothing(registry):
    """While children are started all the time, offers end cleanly and requests reach the one that is valid."""
    storm = (
        "for number in range(30):\n    held = hold('card')\n    child = subprocess.Popen(['true'])\n"
        "    held.release()\n    child.wait()"
    )
    with holder(registry) as other:
        other.ask(storm)
        other.ask("held = hold('card')")
        attempt = busy(registry)
        assert ask(registry, attempt, "last")
        finish(attempt)
        assert other.ask("asked") == "['last']"
