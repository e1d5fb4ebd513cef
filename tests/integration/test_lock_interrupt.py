"""Ctrl-C and signal handlers at any moment: nothing stays open, nothing stays held."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lock_support import ROOT, Other, descriptors

from profwin.registry.lock import Registry


@pytest.fixture
def registry(tmp_path):
    """Give a registry in a directory of the test's own."""
    return Registry(str(tmp_path / "locks"))


def test_ctrl_c_ends_a_wait_at_once(registry):
    """A process that waits for long is out of the wait at once after SIGINT, and has nothing open."""
    with Other(registry.directory) as other:
        held = registry.acquire(["a"], kind="rollout")
        before = other.ask("len(os.listdir('/proc/self/fd'))")
        other.send("take('a', seconds=60)")
        time.sleep(0.3)
        begun = time.monotonic()
        os.kill(other.pid, signal.SIGINT)
        with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
            other.hear()
        assert time.monotonic() - begun < 20
        assert other.ask("len(os.listdir('/proc/self/fd'))") == before
        held.release()


@pytest.mark.parametrize("contended", [False, True])
def test_interrupts_at_any_moment_lose_no_descriptor(registry, contended):
    """Interrupts at random moments of taking, waiting and releasing leave the device free and nothing open."""
    storm = [sys.executable, str(Path(__file__).with_name("lock_storm.py")), registry.directory]
    with Other(registry.directory) as other:
        if contended:
            other.send("for i in range(10**9):\n    held = take('b', seconds=20)\n    held.release()")
        done = subprocess.run(storm, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        other.kill()
    result = json.loads(done.stdout)
    assert result["leaked"] == []
    assert result["free"]
    assert result["refusals"] == 0
    assert result["interrupts"] > 200


def test_handler_may_release_what_is_being_released(registry):
    """Case 41: a signal handler that releases the hold which its thread is just releasing does no harm."""
    with Other(registry.directory) as other:
        other.ask(HANDLER)
        assert int(other.ask("storm()")) > 500
        assert "Held" in other.ask("take('a', 'b')")


HANDLER = """
def storm():
    current, rounds, deadline = [], 0, time.monotonic() + 2
    signal.signal(signal.SIGALRM, lambda *_: [held.release() for held in current])
    innocent = os.open("/dev/null", os.O_RDONLY)
    while time.monotonic() < deadline or rounds <= 500:
        held = take("a", "b")
        current[:] = [held]
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + (rounds % 20) * 1e-6)
        held.release()
        signal.setitimer(signal.ITIMER_REAL, 0)
        current.clear()
        rounds += 1
        os.fstat(innocent)
    return rounds
"""


def test_refusal_and_error_leave_nothing_open(registry):
    """Refused, timed-out and failed attempts close everything."""
    with Other(registry.directory) as other:
        other.ask("held = take('b')")
        before = descriptors()
        registry.acquire(["a", "b"], kind="rollout", wait_for=lambda _: False)
        registry.acquire(["a", "b"], kind="rollout", seconds=0.05)
        with pytest.raises(ZeroDivisionError):
            registry.acquire(["a", "b"], kind="rollout", wait_for=lambda _: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            registry.acquire(["a", "b"], kind="rollout", seconds=5, on_slow=lambda _: 1 // 0)
        assert descriptors() == before
