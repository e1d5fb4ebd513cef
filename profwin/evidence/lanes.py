"""Lanes: what each device of a run did, on one time axis.

Times are nanoseconds of the wall clock of the host where the run began, as `profwin.evidence.alignment` places them:
within one boot of a host they keep the distances of its monotonic clock, so a wall clock that was set between two
processes moves none of them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.unions import Span

__all__ = ["Cost", "Lane", "News", "Work"]


@dataclass(frozen=True, slots=True)
class Work:
    """A window, a stage or the body of a weight sync on one device.

    Attributes:
        kind: ``"rollout"``, ``"training"`` or ``"sync"``.
        step: which it belongs to; None for a weight sync that follows no profiled step.
        worker: whose it is, in words: role, rank.
        recorded: whether something recorded it.
        ended: whether the journal has its end; else its end here is the last that the process is known to have done.
    """

    start: int
    end: int
    kind: str
    name: str
    step: int | None
    occurrence: int
    worker: str
    role: str
    rank: int | None
    recorded: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that profiling itself took: ``"start"``, ``"stop"`` or ``"export"`` of a profiler, or a ``"wait"``."""

    start: int
    end: int
    kind: str
    step: int | None
    worker: str


@dataclass(frozen=True, slots=True)
class News:
    """A process learnt which step it is in.

    Attributes:
        fresh: whether with newer weights than before, of which no journal says when they were on their way.
    """

    at: int
    side: str
    step: int
    selected: bool
    fresh: bool


@dataclass
class Lane:
    """A device, or a process that stands for one, in one attempt of the run.

    Attributes:
        key: the device key, or that of the process.
        host: it is of.
        works: sorted by start.
        news: of the processes at work on it, sorted.
        paused: when one of them was inside ``paused()``.
    """

    key: str
    host: str
    attempt: int
    works: list[Work] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    news: list[News] = field(default_factory=list)
    paused: list[Span] = field(default_factory=list)
    _reach: list[int] = field(default_factory=list, repr=False)

    @property
    def workers(self) -> list[str]:
        """Whose windows, stages and weight syncs ran on it."""
        return sorted({work.worker for work in self.works})

    @property
    def label(self) -> str:
        """Name it in few words: the rank where all that ran on it have the same, else who they are."""
        workers, ranks = self.workers, {work.rank for work in self.works}
        if len(ranks) == 1 and None not in ranks:
            return f"rank {ranks.pop()}"
        return ", ".join(workers[:2]) + (f" and {len(workers) - 2} more" if len(workers) > 2 else "")

    def finish(self) -> None:
        """Sort, and prepare `within`."""
        self.works.sort(key=lambda work: (work.start, work.end))
        self.news.sort(key=lambda news: news.at)
        self.costs.sort(key=lambda cost: cost.start)
        highest = -(2**63)
        for work in self.works:
            highest = max(highest, work.end)
            self._reach.append(highest)

    def within(self, start: int, end: int) -> list[Work]:
        """Return the works that reach into an interval."""
        found = []
        for index in range(bisect_right(self._reach, start), len(self.works)):
            work = self.works[index]
            if work.start >= end:
                break
            if work.end > start:
                found.append(work)
        return found

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, Work | None]]:
        """Cut an interval into pieces without gap or overlap: what ran then, or None. Where several did: the latest."""
        works = self.within(start, end)
        cuts = sorted({start, end, *(work.start for work in works), *(work.end for work in works)})
        active: list[tuple[int, int]] = []
        following = 0
        open_piece: tuple[int, int, Work | None] | None = None
        for first, last in pairwise(cuts):
            while following < len(works) and works[following].start <= first:
                heappush(active, (-following, following))
                following += 1
            while active and works[active[0][1]].end <= first:
                heappop(active)
            if first < start or last > end:
                continue
            current = works[active[0][1]] if active else None
            if open_piece is not None and open_piece[2] is current:
                open_piece = open_piece[0], last, current
            else:
                if open_piece is not None:
                    yield open_piece
                open_piece = first, last, current
        if open_piece is not None:
            yield open_piece
