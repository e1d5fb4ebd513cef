"""Event loops for tests, a ticker that shows whether one is blocked, and what a loop watches."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from core_support import descriptors

import profwin
from profwin import rollout_window, training_stage
from profwin.configuration import current
from profwin.registry.device import keys_of
from profwin.registry.lock import Held, Registry

if TYPE_CHECKING:
    import threading
    from collections.abc import Coroutine

_UVLOOP = pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")
LOOPS = pytest.mark.parametrize("loop", ["asyncio", pytest.param("uvloop", marks=_UVLOOP)])
KINDS = pytest.mark.parametrize("kind", ["window", "stage"])
BLOCKED = 3.0
"""Seconds without a turn of the loop that only a blocked one is capable of, on a busy machine too."""


def run(loop: str, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in an event loop of a kind."""
    if loop == "asyncio":
        return asyncio.run(main)
    import uvloop

    return uvloop.run(main)


def configure(output: os.PathLike[str], **more: Any) -> None:
    """Configure this process with the settings that these tests share."""
    profwin.configure(
        **{"steps": "1-9", "output": str(output), "devices": "pretend:card", "run": "mine", "wait_budget": 60.0, **more}
    )


def block(kind: str, name: str = "update", **more: Any) -> Any:
    """Return a window or a stage as a block."""
    return rollout_window(1, **more) if kind == "window" else training_stage(name, **more)


@asynccontextmanager
async def ticking() -> Any:
    """Run a ticker beside the body, and assert that it was never kept waiting for long; yields its ticks."""
    ticks = [time.monotonic()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.005)
            ticks.append(time.monotonic())

    task = asyncio.create_task(tick())
    try:
        yield ticks
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    ticks.append(time.monotonic())
    gap = max(after - before for before, after in pairwise(ticks))
    assert gap < BLOCKED, f"the event loop stood still for {gap:.3f} s"


async def seen(condition: Any, patience: float = 100.0) -> None:
    """Wait in the event loop until something holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.005)


async def turned(condition: Any, ticks: list[float], event: threading.Event) -> None:
    """Set an event once the loop has turned several times since something held: it never comes where that blocks it."""
    await seen(condition)
    before = len(ticks)
    await seen(lambda: len(ticks) > before + 2)
    event.set()


def watched() -> set[Any]:
    """Return what the running loop watches: its selector's numbers, and the FIFOs in any epoll of this process."""
    selector = getattr(asyncio.get_running_loop(), "_selector", None)
    found: set[Any] = set() if selector is None else set(selector.get_map())
    for name in os.listdir("/proc/self/fdinfo"):
        try:
            with open(f"/proc/self/fdinfo/{name}") as file:
                numbers = [line.split()[1] for line in file if line.startswith("tfd:")]
            targets = [os.readlink(f"/proc/self/fd/{number}") for number in numbers]
        except OSError:
            continue
        found.update(target for target in targets if target.endswith(".fifo"))
    return found


def free() -> bool:
    """Say whether another window could have the device now."""
    outcome = Registry(None).acquire(keys_of(("pretend:card",)), kind="rollout", run="probe", name="probe", step=1)
    if isinstance(outcome, Held):
        outcome.release()
    return isinstance(outcome, Held)


class Untouched:
    """What must be the same after a wait as before it: open files, watched descriptors, what is being started."""

    def __init__(self) -> None:
        session = current()
        session.journal.write("paused")  # so that its file is open
        self._before = descriptors(), watched()

    def differs(self) -> bool:
        """Say whether something waits: it has files open, and the loop watches them."""
        files, numbers = self._before
        return descriptors() != files and watched() != numbers

    def check(self) -> None:
        """Assert that nothing is left."""
        assert (descriptors(), watched()) == self._before
        session = current()
        assert not session.entrance.starting
        assert not session.owner.collections
