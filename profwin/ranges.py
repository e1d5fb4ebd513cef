"""Named ranges inside a collection: windows, stages and spans as the trace shows them."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import LastingRange, Recording
    from profwin.interval import Interval

__all__ = ["Ranges"]


class Ranges:
    """The ranges that are open in one collection.

    They end before its profilers stop, whoever is still inside: torch 2.13 crashes the interpreter when a range of one
    profiler ends while a later one records, and ends it safely from any thread before (each tried 1,500 times).

    Of a recording that has ``lasting_range``, ranges belong to what they mark. They end with it, in its own thread,
    also long after the collection; those of a recording that they shall not outlast are ended before it stops as far
    as that can be done from the thread that stops it.

    Args:
        recordings: what is marked.
        complain: called with a sentence when a range fails; a range is decoration, so nothing is raised.
    """

    def __init__(self, recordings: list[Recording], complain: Callable[[str], None]) -> None:
        self._complain = complain
        self._recordings = [recording for recording in recordings if not hasattr(recording, "lasting_range")]
        lasting: Any = next((each for each in recordings if hasattr(each, "lasting_range")), None)
        self._lasting, self._outlast = lasting, lasting is None or lasting.ranges_outlast_it
        # Reentrant, for a signal handler that interrupts its own thread.
        self._mutex = threading.RLock()
        self._open: dict[int, list[AbstractContextManager[object]]] = {}
        self._to_end: dict[int, LastingRange] = {}
        self._ended = False

    def begin(self, interval: Interval, purpose: str, *, resumed: bool = False) -> None:
        """Open the ranges of an interval, unless the collection is about to stop.

        Args:
            interval: what begins, or is taken up again.
            purpose: ``"rollout"`` or ``"training"``.
            resumed: whether it is taken up again, perhaps in another thread than its own.
        """
        with self._mutex:
            if self._ended:
                return
            try:
                lasting, begun = self._lasting, interval.lasting_range
                if lasting is not None and (begun is None or not begun.open):
                    loose = resumed or not interval.scoped
                    begun = lasting.lasting_range(interval.name, purpose, interval.role, loose=loose)
                    interval.lasting_range = begun
                    if not self._outlast:
                        self._to_end[interval.identifier] = begun
                if self._recordings:
                    self._begin(interval)
            except Exception as problem:  # noqa: BLE001  # a profiler's own failure
                self._complain(f"a named range could not be opened: {problem}")

    def _begin(self, interval: Interval) -> None:
        ranges: list[AbstractContextManager[object]] = []
        self._open[interval.identifier] = ranges
        for recording in self._recordings:
            make = recording.span if interval.scoped else getattr(recording, "loose_span", None)
            if make is not None:
                named = make(interval.name)
                named.__enter__()
                ranges.append(named)

    def end(self, identifier: int) -> None:
        """Close an interval's ranges, if they are still open; but not one that lasts as long as the interval."""
        if not self._open and not self._to_end:
            return
        with self._mutex:
            self._to_end.pop(identifier, None)
            ranges = self._open.pop(identifier, [])
            while ranges:
                try:
                    ranges.pop().__exit__(None, None, None)
                except Exception as problem:  # noqa: BLE001  # a profiler's own failure
                    self._complain(f"a named range could not be closed: {problem}")

    def end_all(self) -> None:
        """Close every range, the latest first, and open no more."""
        with self._mutex:
            self._ended = True
            for identifier in reversed(list(self._open)):
                self.end(identifier)
            while self._to_end:
                self._to_end.popitem()[1].end()
