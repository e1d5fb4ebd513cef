"""Interrupt a process at random moments while it takes and releases devices; print what is left open.

A process of its own: the timer belongs to pytest's time limit elsewhere, and a Ctrl-C that meets a destructor is only
printed by the interpreter.
"""

from __future__ import annotations

import json
import signal
import sys
import time

from lock_support import descriptors

from profwin.registry.lock import Held, Registry

registry = Registry(sys.argv[1])
registry.acquire(["a", "b"], kind="rollout", seconds=20).release()
before, interrupts, refusals = descriptors(), 0, 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
deadline = time.monotonic() + 3
while time.monotonic() < deadline or interrupts <= 200:
    held = None
    try:
        try:
            # The second shot, much later, is for a first one that met a destructor.
            signal.setitimer(signal.ITIMER_REAL, 1e-5 + (interrupts % 197) * 1e-6, 0.1)
            while True:
                held = registry.acquire(["a", "b"], kind="rollout", seconds=5)
                if isinstance(held, Held):
                    held.release()
                else:
                    refusals += 1
                held = None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    if isinstance(held, Held):
        held.release()
del held
after = descriptors()
last = registry.acquire(["a", "b"], kind="rollout", seconds=20)
print(
    json.dumps(
        {
            "leaked": sorted(after - before),
            "interrupts": interrupts,
            "refusals": refusals,
            "free": isinstance(last, Held),
        }
    )
)
