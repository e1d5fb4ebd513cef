"""Engines of this process behind one window, and what is left of them: shared by the tests of lists."""

from __future__ import annotations

from core_support import Evidence

import profwin
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


def finish(output):
    """End the run; return what its journal says, and the codes and words of its findings."""
    profwin.shutdown()
    evidence = Evidence(output)
    return evidence, [(each["code"], each["detail"]) for each in evidence.of("finding") if each["code"] != "no-stages"]
