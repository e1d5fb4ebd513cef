"""What the tests of the listener share: devices, requests, and what must not be left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time

from profwin.listener import Listener
from profwin.registry.lock import Busy

PATIENCE = 100.0


@contextlib.contextmanager
def fresh_listener():
    """Give a listener, closed in the end; it may leave neither its thread nor a descriptor."""
    gc.collect()
    before = open_now()
    listener = Listener()
    yield listener
    listener.close()
    assert not named("profwin-listener")
    wait_until(lambda: open_now() <= before)


def open_now():
    """Return the FIFOs of requests, and what the thread sleeps on, that this process has open."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.endswith(".ask") or "anon_inode" in target:
            found.add((name, target))
    return found


def named(name):
    """Return the threads of a name."""
    return [thread for thread in threading.enumerate() if thread.name == name]


def wait_until(condition):
    """Wait until something holds, and fail where it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.001)


def take(registry, *keys):
    """Take devices for a window."""
    return registry.take(keys, kind="rollout", run="run", name="window", step=1)


def seen(registry, key="card"):
    """Say who holds a device, as one that waits for it would see it."""
    (state,) = [state for state in registry.survey() if state.key == key]
    return Busy(key, state.holder, "busy")


def ask(registry, busy, name="stage", run="run"):
    """Ask for a device."""
    return registry.ask(busy, run=run, purpose="training", name=name, step=2)
