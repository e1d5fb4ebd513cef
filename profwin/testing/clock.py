"""A clock that moves when it is told to."""

from __future__ import annotations

import threading

from profwin import clock as real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FakeClock"]


class FakeClock:
    """Stands in for the clock by which wait budgets, ``max_seconds`` and the fakes' delays go, in this process.

    As a context manager: while it is entered, time stands still until :meth:`advance`. Times in journals stay real.
    Real seconds still pass where profwin waits: it looks at the clock some twenty times a second.

    Args:
        pace: seconds by which each look at the clock advances it. With 0, a wait ends only when another thread advances
            the clock; with more, also one in the test's own thread does.
    """

    def __init__(self, pace: float = 0.0) -> None:
        self._pace = pace
        self._seconds = real.now()
        self._mutex = threading.Lock()
        self._replaced: list[Callable[[], float]] = []

    def now(self) -> float:
        """Return the seconds on this clock."""
        with self._mutex:
            self._seconds += self._pace
            return self._seconds

    def advance(self, seconds: float) -> None:
        """Move on, and let this process's session close what is over its time, as its own thread would soon.

        Args:
            seconds: how far, 0 or more.

        Raises:
            ValueError: it is negative; this clock never goes back.
        """
        if seconds < 0:
            raise ValueError(f"seconds={seconds!r} is not allowed: use 0 or more")
        with self._mutex:
            self._seconds += seconds
        from profwin import configuration

        # Not `current()`: looking at the clock must not set profwin up.
        session = configuration._session
        if session is not None:
            session.listener().look()

    def __enter__(self) -> FakeClock:
        self._replaced.append(real.now)
        real.now = self.now
        return self

    def __exit__(self, *exception: object) -> None:
        real.now = self._replaced.pop()
