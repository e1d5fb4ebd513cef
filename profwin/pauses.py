"""Pauses of a process: what they stopped, and what goes on after the last of them."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.interval import Interval
    from profwin.owner import Owner

__all__ = ["Pauses"]


class Pauses:
    """Count the pauses that are open in this process, and keep the intervals that they interrupted.

    Args:
        owner: whose collections are closed.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._mutex = threading.Lock()
        self._interrupted: list[Interval] = []
        self.depth = 0

    def begin(self) -> None:
        """Stop everything that records, and remember which intervals are to be recorded on."""
        with self._mutex:
            self.depth += 1
            collections = list(self._owner.collections)
            self._interrupted.extend(interval for collection in collections for interval in collection.members)
        for collection in collections:
            self._owner.close(collection, "paused")

    def end(self) -> list[Interval]:
        """End a pause; return the intervals to take up again, once no pause is left."""
        with self._mutex:
            self.depth -= 1
            if self.depth:
                return []
            interrupted, self._interrupted = self._interrupted, []
        return [interval for interval in interrupted if not interval.left]
