"""Engines that are several: what holds replicas, of which each starts and stops its own recording."""

from __future__ import annotations

import asyncio
import os
from weakref import WeakKeyDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Replicas"]

_unanswered: WeakKeyDictionary[object, asyncio.Task[None]] = WeakKeyDictionary()
"""What a holder's replicas have not answered in time; it ends with their stop."""


class Replicas:
    """Adapt an object whose ``replicas`` are engines with coroutine methods: verl's ``CheckpointEngineManager``.

    All are started and stopped together, in the event loop of the window. A start is waited for no longer than the wait
    budget; one that comes later is followed by a stop at once, and until that is answered nothing is started. So a
    late start never records what a later window is about. Where the window's own start was confirmed, its stop is
    waited for like that of any engine.

    Args:
        holder: its ``replicas`` are read when a window begins.
        patience: says how many seconds a late answer is waited for; None: as long as it takes.

    Attributes:
        process_ids: this process, for the replicas can be told by nobody else, and are no longer when it has ended.
    """

    def __init__(self, holder: Any, patience: Callable[[], float] | None = None) -> None:
        self._holder, self._patience = holder, patience
        self._members: list[Any] | None = None
        self.process_ids = (os.getpid(),)

    async def start_profile(self) -> None:
        """Start all replicas.

        Raises:
            TimeoutError: one has not answered in time.
            RuntimeError: one has not answered what it was told before.
            Exception: what the first that failed raised.
        """
        self._check()
        members = list(self._holder.replicas)
        starting = asyncio.ensure_future(_all([member.start_profile for member in members]))
        if not await self._in_time(starting):
            _unanswered[self._holder] = asyncio.ensure_future(_stop_after(starting, members))
            raise TimeoutError("it has not confirmed its start in time; it is stopped when it has")
        self._members = members
        await starting

    async def stop_profile(self) -> None:
        """Stop all replicas that were started; those of an earlier window, where it was not.

        Raises:
            TimeoutError: the stop of an earlier window was tried again, and is not answered in time.
            RuntimeError: one has not answered what it was told before.
            Exception: what the first that failed raised.
        """
        if self._members is not None:
            await _all([member.stop_profile for member in self._members])
            return
        if self._check():
            return
        stopping = asyncio.ensure_future(_all([member.stop_profile for member in self._holder.replicas]))
        if not await self._in_time(stopping):
            _unanswered[self._holder] = stopping
            raise TimeoutError("it has not confirmed its stop in time")
        await stopping

    def _check(self) -> bool:
        """Return whether what came late has ended well, since it was asked for the last time."""
        late = _unanswered.get(self._holder)
        if late is None:
            return False
        if not late.done():
            raise RuntimeError("it has not answered yet what it was told before")
        del _unanswered[self._holder]
        return not late.cancelled() and late.exception() is None

    async def _in_time(self, task: asyncio.Task[None]) -> bool:
        done, _pending = await asyncio.wait([task], timeout=None if self._patience is None else self._patience())
        return bool(done)


async def _all(methods: list[Any]) -> None:
    """Call methods at the same time, wait for all, and raise what the first of them raised."""
    outcomes = await asyncio.gather(*(method() for method in methods), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def _stop_after(starting: asyncio.Task[None], members: list[Any]) -> None:
    await asyncio.wait([starting])
    if not starting.cancelled():
        starting.exception()  # looked at: whatever it was, all are told to stop
    await _all([member.stop_profile for member in members])
