"""A gate: threads, and tasks of event loops, pass one at a time."""

from __future__ import annotations

import threading

__all__ = ["Gate"]

_TURN = 1e-3


class Gate:
    """A thread passes inside ``with gate.lock``, a task inside ``async with gate``; the others wait outside.

    A thread that is inside may enter again. So may plain code in the thread of an event loop, while a task of that
    thread is inside: it cannot wait for the task without stopping it. It finds `engaged` true then, and must leave to
    the task what has to come after.

    Attributes:
        lock: what a thread holds while it is inside; a built-in one, so that Ctrl-C cannot leave it locked.
        engaged: whether a task is inside.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.engaged = False

    async def __aenter__(self) -> None:
        from asyncio import sleep

        while self.engaged or not self.lock.acquire(blocking=False):
            await sleep(_TURN)
        self.engaged = True

    async def __aexit__(self, *exception: object) -> None:
        self.engaged = False
        self.lock.release()
