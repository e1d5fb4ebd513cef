"""What an interval that begins can be waiting for, so that threads and event loops can each wait in their own way."""

from __future__ import annotations

import threading
import time

from profwin import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.registry.attempt import Attempt

__all__ = ["TURN", "Job", "LockWait", "Turn"]

TURN = 1e-3
"""Seconds after which a thread that waits for another one of this process looks again."""


class Turn:
    """A short sleep: another thread of this process, or nobody in particular, is waited for."""

    __slots__ = ()

    def block(self, seconds: float) -> None:
        """Sleep in this thread, at most so long."""
        time.sleep(min(seconds, TURN))

    def pause(self, seconds: float) -> tuple[float, int | None]:
        """Return how long an event loop should sleep, and the descriptor whose hang-up ends the sleep, if any."""
        return min(seconds, TURN), None

    def woken(self, hung_up: bool, slept: float) -> float:  # noqa: ARG002  # other waits need them
        """Take note of a sleep; return how long to sleep on."""
        return 0.0


class LockWait:
    """A device lock that another process holds.

    Args:
        attempt: what takes it.
        until: when the wait is over at the latest, on :mod:`profwin.clock`.
    """

    __slots__ = ("_attempt", "_until")

    def __init__(self, attempt: Attempt, until: float) -> None:
        self._attempt, self._until = attempt, until

    def block(self, seconds: float) -> None:
        """Sleep in this thread until the device may be free, at most so long."""
        self._attempt.wait(self._left(seconds))

    def pause(self, seconds: float) -> tuple[float, int | None]:
        """Return how long an event loop should sleep, and the descriptor whose hang-up ends the sleep, if any."""
        return self._attempt.pause(self._left(seconds))

    def woken(self, hung_up: bool, slept: float) -> float:
        """Take note of a sleep; return how long to sleep on."""
        return self._attempt.woken(hung_up, slept)

    def _left(self, seconds: float) -> float:
        return max(0.0, min(seconds, self._until - clock.now()))


class Job:
    """Work that may take long: an engine's start or stop. Whoever waits in an event loop runs it in a thread.

    Args:
        work: called once.
        undo: called after the work, where nobody waits for it any more.
    """

    __slots__ = ("_mutex", "_undo", "_work", "abandoned", "done", "error")

    def __init__(self, work: Callable[[], Any], undo: Callable[[], Any]) -> None:
        self._work, self._undo = work, undo
        self._mutex = threading.Lock()
        self.done = self.abandoned = False
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do the work; what it raises is kept for :meth:`result`."""
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  # raised again where the work was asked for
            self.error = error
        with self._mutex:
            self.done = True
            abandoned = self.abandoned
        if abandoned:
            self._undo()

    def abandon(self) -> None:
        """Say that nobody waits any more: the work is undone, as soon as it is done."""
        with self._mutex:
            self.abandoned = True
            done = self.done
        if done:
            self._undo()

    def result(self) -> None:
        """Raise what the work raised."""
        if self.error is not None:
            raise self.error
