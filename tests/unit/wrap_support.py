"""A region that notes when it opens and closes, for tests of profwin.wrap; importable, so that it pickles."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes

from profwin.switch import SWITCH

events = []  # what happened, in order, in this process


class Region:
    """Notes ``open NAME`` and ``close NAME ERROR`` in events."""

    def __init__(self, name="r"):
        self.name = name

    @contextlib.contextmanager
    def enter(self, args, kwargs):
        """Note both ends of one call."""
        events.append(f"open {self.name}")
        try:
            yield
        except BaseException as error:
            events.append(f"close {self.name} {type(error).__name__}")
            raise
        events.append(f"close {self.name}")

    @contextlib.asynccontextmanager
    async def aenter(self, args, kwargs):
        """Note both ends of one call, after giving the event loop a turn."""
        await asyncio.sleep(0)
        with self.enter(args, kwargs):
            yield


@contextlib.contextmanager
def switched(on, word=1):
    """Set the switch for a block and clear events before it."""
    before = SWITCH.on, SWITCH.word
    SWITCH.on, SWITCH.word = on, ctypes.c_int64(word)
    events.clear()
    try:
        yield
    finally:
        SWITCH.on, SWITCH.word = before


def run(coroutine):
    """Run a coroutine to its end in an event loop of its own."""
    return asyncio.run(coroutine)
