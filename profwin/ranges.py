"""Named ranges inside a collection: windows, stages and spans as the trace shows them."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from profwin.backends import Recording

__all__ = ["Ranges"]


class Ranges:
    """The ranges that are open in one collection.

    They end before its profilers stop, whoever is still inside: torch 2.13 crashes the interpreter when a range of one
    profiler ends while a later one records, and ends it safely from any thread before (each tried 1,500 times).

    Args:
        recordings: what is marked.
        complain: called with a sentence when a range fails; a range is decoration, so nothing is raised.
    """

    def __init__(self, recordings: list[Recording], complain: Callable[[str], None]) -> None:
        self._recordings, self._complain = recordings, complain
        # Reentrant, for a signal handler that interrupts its own thread.
        self._mutex = threading.RLock()
        self._open: dict[int, list[AbstractContextManager[object]]] = {}
        self._ended = False

    def begin(self, identifier: int, name: str) -> None:
        """Open a range for an interval, unless the collection is about to stop."""
        with self._mutex:
            if self._ended:
                return
            ranges = self._open[identifier] = []
            try:
                for recording in self._recordings:
                    named = recording.span(name)
                    named.__enter__()
                    ranges.append(named)
            except Exception as problem:  # noqa: BLE001  # a profiler's own failure
                self._complain(f"a named range could not be opened: {problem}")

    def end(self, identifier: int) -> None:
        """Close an interval's range, if it is still open."""
        with self._mutex:
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
