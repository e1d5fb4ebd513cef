"""Busy time of a device: the union of intervals, in fixed memory."""

from __future__ import annotations

from itertools import pairwise

__all__ = ["Busy"]

_LIMIT = 2048
"""Intervals that are kept of one device."""


class Busy:
    """A union of intervals that arrive in any order.

    Where more than the limit remain, the shortest gaps between them are filled first: then ``filled`` says how long a
    gap may be that the result does not show. What is busy is always shown as busy.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._intervals: list[tuple[int, int]] = []
        self.filled = 0

    def add(self, start: int, end: int) -> None:
        """Add an interval."""
        self._intervals.append((start, end))
        if len(self._intervals) >= 8 * self._limit:
            self._reduce()

    def extend(self, intervals: list[tuple[int, int]]) -> None:
        """Add many intervals; the result is the same as if they were added one by one."""
        full, done = 8 * self._limit, 0
        while done < len(intervals):
            room = full - len(self._intervals)
            self._intervals += intervals[done : done + room]
            done += room
            if len(self._intervals) >= full:
                self._reduce()

    def update(self, other: Busy) -> None:
        """Add what another union holds."""
        self._intervals.extend(other._intervals)
        self.filled = max(self.filled, other.filled)
        self._reduce()

    def merged(self) -> list[tuple[int, int]]:
        """Return the union in order: no two intervals overlap or touch."""
        self._reduce()
        return list(self._intervals)

    def _reduce(self) -> None:
        union: list[tuple[int, int]] = []
        ordered = sorted(self._intervals)
        first, last = ordered[0] if ordered else (0, 0)
        for start, end in ordered:
            if start > last:
                union.append((first, last))
                first, last = start, end
            elif end > last:
                last = end
        if ordered:
            union.append((first, last))
        if len(union) > self._limit:
            union = self._coarse(union)
        self._intervals = union

    def _coarse(self, union: list[tuple[int, int]]) -> list[tuple[int, int]]:
        gaps = sorted(after[0] - before[1] for before, after in pairwise(union))
        excess = len(union) - self._limit
        longest = gaps[excess - 1]
        # Of gaps of equal length only as many as needed: a regular pattern would else become one interval.
        ties = excess - sum(gap < longest for gap in gaps[:excess])
        self.filled = max(self.filled, longest)
        kept = [union[0]]
        for start, end in union[1:]:
            gap = start - kept[-1][1]
            ties -= gap == longest
            if gap < longest or (gap == longest and ties >= 0):
                kept[-1] = (kept[-1][0], end)
            else:
                kept.append((start, end))
        return kept
