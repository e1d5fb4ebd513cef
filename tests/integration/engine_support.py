"""Engines of this process behind one window, and what is left of them: shared by the tests of lists."""

from __future__ import annotations

from core_support import Evidence

import profwin
from profwin.registry.device import keys_of
from profwin.registry.lock import Held, Registry
from profwin.testing import RecordingEngine


def configure(output, **more):
    """Set profwin up, with a budget that no test uses up unless it wants to."""
    profwin.configure(
        **{"steps": "1-9", "backend": "record", "output": str(output), "run": "mine", "wait_budget": 60.0, **more}
    )


def engines(*devices, kind="thread", **more):
    """Return an engine for each device: for any thread, with coroutine functions, or neither."""
    return [
        RecordingEngine(f"pretend:{each}", revocable=kind == "thread", asynchronous=kind == "coroutine", **more)
        for each in devices
    ]


def taken(device):
    """Try to take a device as another one would; return why not, or None."""
    outcome = Registry(None).acquire(keys_of((f"pretend:{device}",)), kind="training", run="probe", name="p", step=1)
    if isinstance(outcome, Held):
        outcome.release()
        return None
    return outcome.reason


def finish(output):
    """End the run; return what its journal says, and the codes and words of its findings."""
    profwin.shutdown()
    evidence = Evidence(output)
    return evidence, [(each["code"], each["detail"]) for each in evidence.of("finding") if each["code"] != "no-stages"]
