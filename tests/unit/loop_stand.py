"""What stands in place of windows, steps and pauses, for tests of `Loop`."""

from __future__ import annotations

import asyncio
import sys


class Stand:
    """Stands for the modules that act; records calls, and raises what is planned for a call."""

    def __init__(self):
        self.calls, self.plan, self.arguments, self.versions = [], {}, [], []

    def do(self, call):
        """Note a call, then raise what is planned for it, once."""
        self.calls.append(call)
        error = self.plan.pop(call, None)
        if error is not None:
            raise error

    def rollout_window(self, step, **arguments):
        """Stand for the real one."""
        self.arguments.append(arguments)
        return Window(self, f"{step}" if not arguments["name"].endswith("_hybrid") else f"{step} {arguments['name']}")

    def training_step(self, step, *, weight_version=None):
        """Stand for the real one."""
        self.versions.append(weight_version)
        return Block(self, f"step {step}")

    def paused(self):
        """Stand for the real one."""
        return Block(self, "paused")


class Block:
    """A context manager that tells its stand."""

    def __init__(self, stand, what):
        self.stand, self.what = stand, what

    def __enter__(self):
        self.stand.do(f"enter {self.what}")

    def __exit__(self, *error):
        assert error == (None, None, None)
        self.stand.do(f"exit {self.what}")

    async def __aenter__(self):
        self.__enter__()

    async def __aexit__(self, *error):
        self.__exit__(*error)


class Window:
    """A window that tells its stand; its async twins let the event loop turn first, and are told as such."""

    def __init__(self, stand, what):
        self.stand, self.what = stand, what

    def open(self):
        """Stand for the real one."""
        self.stand.do(f"open {self.what}")

    def close(self):
        """Stand for the real one."""
        self.stand.do(f"close {self.what}")

    async def aopen(self):
        """Stand for the real one."""
        await asyncio.sleep(0.01)
        self.stand.do(f"aopen {self.what}")

    async def aclose(self):
        """Stand for the real one."""
        await asyncio.sleep(0.01)
        self.stand.do(f"aclose {self.what}")


def stand_in(monkeypatch):
    """Put a stand in place of the modules that act, and return it."""
    stand = Stand()
    monkeypatch.setitem(sys.modules, "profwin.window", stand)
    monkeypatch.setitem(sys.modules, "profwin.step", stand)
    monkeypatch.setitem(sys.modules, "profwin.pause", stand)
    return stand
