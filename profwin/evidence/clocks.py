"""Clocks between hosts: where one monotonic clock stands against another, by the estimates in journals.

An estimate bounds the difference of two clocks at one moment (see :mod:`profwin.ray.clocks`). At other moments the
bound is wider by what the clocks may have drifted apart meanwhile, and several estimates narrow each other's.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from profwin.evidence.incidents import Estimate

    Point: TypeAlias = tuple[int, int, int]  # a time on a clock, what another is ahead of it, and the uncertainty

__all__ = ["DRIFT", "Clocks", "Link", "drifted"]

DRIFT = 50
"""By how many millionths of the time that passes two clocks may drift apart.

RFC 5905 (NTP) takes 15 for the tolerance of one disciplined clock. Two are 30; the rest is room. While a
time service slews a clock it may be more: Linux allows 500 by frequency, and chrony far more by default
(``maxslewrate``). Where estimates contradict this bound it is not used, and that is said.
"""


def drifted(nanoseconds: int) -> int:
    """Return how far two clocks may drift apart in some time, at most, rounded up."""
    return -(-abs(nanoseconds) * DRIFT // 1_000_000)


class Link:
    """What one clock is ahead of another, at any time.

    Between two estimates the difference is interpolated, outside of them the nearest one's is taken. That never leaves
    the bounds, nor does it change faster than the clocks may drift: bounds that grow at a constant rate on both sides
    of each estimate have both properties, and so has what lies in their middle.

    Args:
        points: the estimates; at least one.

    Attributes:
        best: the smallest uncertainty.
        steady: whether the estimates agree with `DRIFT`. If not, only what lies outside of all neighbours is excluded.
    """

    def __init__(self, points: Iterable[Point]) -> None:
        found = sorted(points)
        self._times = [time for time, _, _ in found]
        self.best = min(uncertainty for _, _, uncertainty in found)
        lows = [offset - uncertainty for _, offset, uncertainty in found]
        highs = [offset + uncertainty for _, offset, uncertainty in found]
        near_lows, near_highs = lows[:], highs[:]
        for way in (range(len(found)), range(len(found) - 1, -1, -1)):
            for before, after in pairwise(way):
                grown = drifted(self._times[after] - self._times[before])
                near_lows[after] = max(near_lows[after], near_lows[before] - grown)
                near_highs[after] = min(near_highs[after], near_highs[before] + grown)
        self.steady = all(low <= high for low, high in zip(near_lows, near_highs, strict=True))
        self._lows, self._highs = (near_lows, near_highs) if self.steady else (lows, highs)

    def at(self, time: int) -> tuple[int, int]:
        """Return what the other clock is ahead when this one shows some time, and the uncertainty."""
        index = bisect_right(self._times, time)
        near = range(max(0, index - 1), min(index + 1, len(self._times)))
        lows = [self._lows[each] - drifted(time - self._times[each]) for each in near]
        highs = [self._highs[each] + drifted(time - self._times[each]) for each in near]
        low, high = (max(lows), min(highs)) if self.steady else (min(lows), max(highs))
        middles = [(self._lows[each] + self._highs[each]) // 2 for each in near]
        offset = middles[0]
        if len(near) == 2:
            first, last = self._times[near[0]], self._times[near[1]]
            offset += (middles[1] - offset) * (time - first) // (last - first)
        return offset, max(high - offset, offset - low)


class Clocks:
    """Put the monotonic clocks of hosts side by side, as far as estimates lead from one to the other.

    Args:
        estimates: of any processes, of each other's hosts or in one direction.
        boots: of the hosts, those first that others are to be compared with.

    Attributes:
        leads: of each boot, the one whose clock its times can be told in: its own where no estimate leads further.
        unsteady: pairs of boots whose estimates contradict `DRIFT`.
    """

    def __init__(self, estimates: Iterable[Estimate], boots: Iterable[str]) -> None:
        points: dict[str, dict[str, list[Point]]] = {}
        for each in estimates:
            own = each.process.boot
            if each.boot == own:
                continue
            points.setdefault(own, {}).setdefault(each.boot, []).append((each.at, each.offset, each.uncertainty))
            # The other way round the moment itself is not exactly known.
            back = each.at + each.offset, -each.offset, each.uncertainty + drifted(each.uncertainty)
            points.setdefault(each.boot, {}).setdefault(own, []).append(back)
        self._links = {own: {other: Link(found) for other, found in of.items()} for own, of in points.items()}
        self.leads: dict[str, str] = {}
        self._next: dict[str, str] = {}
        for boot in boots:
            if boot not in self.leads:
                self._spread(boot)
        self.unsteady = [
            (own, other)
            for own, of in self._links.items()
            for other, link in of.items()
            if not link.steady and self._next.get(other) == own
        ]

    def _spread(self, lead: str) -> None:
        """Find of each clock that can be reached the way to the lead with the least uncertainty."""
        waiting = [(0, lead, lead)]
        while waiting:
            far, boot, towards = heappop(waiting)
            if boot in self.leads:
                continue
            self.leads[boot] = lead
            if boot != lead:
                self._next[boot] = towards
            for other, link in self._links.get(boot, {}).items():
                if other not in self.leads:
                    heappush(waiting, (far + link.best, other, boot))

    def place(self, boot: str, time: int) -> tuple[int, int]:
        """Return a time of one clock on that of its lead, and the uncertainty."""
        uncertainty = 0
        while (towards := self._next.get(boot)) is not None:
            offset, more = self._links[boot][towards].at(time)
            time += offset
            uncertainty += more + drifted(uncertainty)
            boot = towards
        return time, uncertainty
