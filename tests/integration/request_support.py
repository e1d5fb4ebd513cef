"""Processes that hold devices and can be asked for them, and requests to them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time

from lock_support import Other

from profwin.registry.lock import Held, Registry

LISTEN = """
from profwin.listener import Listener
listener, asked = Listener(), []

def offer(held, run="run", release=True):
    def on_ask(request):
        asked.append(request.name)
        if release:
            held.release()
    return listener.offer(held, run=run, on_ask=on_ask)

def hold(key, run="run", name="window", **more):
    held = registry.acquire([key], kind="rollout", run=run, name=name, step=1, seconds=20)
    offer(held, run, **more)
    return held

def serve(key, count):
    wrong = []
    for _ in range(count):
        held, done = registry.acquire([key], kind="rollout", run="run", seconds=20), threading.Event()
        mine, known = [], threading.Event()
        def on_ask(request, done=done, held=held, mine=mine, known=known):
            assert known.wait(20)  # it may be asked before its lease is known here
            if request.name != mine[0].lease:
                wrong.append((request.name, mine[0].lease))
            held.release()
            done.set()
        mine.append(listener.offer(held, run="run", on_ask=on_ask))
        known.set()
        assert done.wait(20)
        time.sleep(0.002)
    return wrong

def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
"""


@contextlib.contextmanager
def reachable_registry():
    """Give a registry in a directory that every user can reach, unlike pytest's own."""
    path = tempfile.mkdtemp(prefix="profwin-test-")
    os.chmod(path, 0o1777)
    try:
        yield Registry(path)
    finally:
        shutil.rmtree(path)


def holder(registry, **more):
    """Start a process that can hold devices and be asked for them."""
    other = Other(registry.directory, **more)
    other.ask(LISTEN)
    return other


def busy(registry, key="card"):
    """Begin to wait for a device; return the attempt."""
    attempt = registry.attempt([key], kind="training", run="run", name="stage", step=2)
    assert attempt.step() is None
    return attempt


def ask(registry, attempt, name="stage", run="run"):
    """Ask whoever keeps an attempt from its device."""
    return registry.ask(attempt.busy, run=run, purpose="training", name=name, step=2)


def finish(attempt):
    """Wait for the device and release it; it must come soon."""
    deadline = time.monotonic() + 20
    while (held := attempt.step()) is None:
        assert time.monotonic() < deadline
        attempt.wait(5)
    assert isinstance(held, Held)
    held.release()
