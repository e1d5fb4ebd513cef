"""Actions at a time, for the thread that sleeps until the next of them."""

from __future__ import annotations

from profwin import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Timer", "Timers"]

_ALWAYS = float("inf")


class Timer:
    """An action at a time. Made by :meth:`profwin.listener.Listener.at`.

    Attributes:
        deadline: in seconds of ``clock.now()``.
        action: what is to be done then.
    """

    __slots__ = ("_pending", "action", "deadline")

    def __init__(self, pending: dict[Timer, bool], deadline: float, action: Callable[[], None]) -> None:
        self._pending, self.deadline, self.action = pending, deadline, action

    def cancel(self) -> None:
        """Do not begin the action; one that has begun goes on. From any thread, any number of times. Never raises."""
        self._pending.pop(self, False)


class Timers:
    """The timers that are pending. Safe to use from any thread, from signal handlers and in a forked child.

    It has no lock: whoever takes a timer out of the dictionary, which is one operation, has it for himself.
    """

    __slots__ = ("_pending", "_until")

    def __init__(self) -> None:
        self._pending: dict[Timer, bool] = {}
        self._until = _ALWAYS

    def add(self, deadline: float, action: Callable[[], None]) -> tuple[Timer, bool]:
        """Add a timer; give it, and whether who sleeps as :meth:`sleep` said must be woken for it."""
        timer = Timer(self._pending, deadline, action)
        self._pending[timer] = True
        return timer, deadline < self._until

    def sleep(self, longest: float) -> float:
        """Say for how many seconds one may sleep from now, at most ``longest``, without missing a timer."""
        # First: who adds one while the others are looked at wakes the sleeper, for it may not have been seen.
        self._until = _ALWAYS
        now = clock.now()
        self._until = min([timer.deadline for timer in list(self._pending)], default=now + longest)
        return min(max(0.0, self._until - now), longest)

    def due(self) -> list[Timer]:
        """Take out what is due, the earliest first; what another thread takes out meanwhile is not given again."""
        now = clock.now()
        ripe = sorted((timer for timer in list(self._pending) if timer.deadline <= now), key=_deadline)
        return [timer for timer in ripe if self._pending.pop(timer, False)]

    def clear(self) -> None:
        """Drop all."""
        self._pending.clear()


def _deadline(timer: Timer) -> float:
    return timer.deadline
