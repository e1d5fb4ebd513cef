"""Sets of time: sorted lists of intervals that do not touch each other. Busy time is the length of such a set."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int]

__all__ = ["bridged", "clipped", "common", "joined", "length", "without"]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the union of intervals, in whatever order they come; empty ones count for nothing."""
    union: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if union and start <= union[-1][1]:
            if end > union[-1][1]:
                union[-1] = union[-1][0], end
        else:
            union.append((start, end))
    return union


def bridged(union: list[Span], most: int) -> list[Span]:
    """Return a union of not many more than ``most`` intervals: of a longer one, the short gaps are closed."""
    if len(union) <= most:
        return union
    gap = (union[-1][1] - union[0][0]) // most
    fewer = [union[0]]
    for start, end in union[1:]:
        if start - fewer[-1][1] <= gap:
            fewer[-1] = fewer[-1][0], end
        else:
            fewer.append((start, end))
    return fewer


def length(union: Iterable[Span]) -> int:
    """Return how much time a union covers."""
    return sum(end - start for start, end in union)


def clipped(union: list[Span], start: int, end: int) -> list[Span]:
    """Return the part of a union that lies in an interval; fast where the union is much longer than that."""
    parts = []
    for index in range(max(0, bisect_right(union, (start, start)) - 1), len(union)):
        first, last = union[index]
        if first >= end:
            break
        if last > start:
            parts.append((max(first, start), min(last, end)))
    return parts


def common(some: Iterable[Span], others: list[Span]) -> list[Span]:
    """Return what two unions have in common."""
    return [part for start, end in some for part in clipped(others, start, end)]


def without(some: Iterable[Span], others: list[Span]) -> list[Span]:
    """Return what a union has beside another one."""
    rest = []
    for start, end in some:
        done = start
        for first, last in clipped(others, start, end):
            if first > done:
                rest.append((done, first))
            done = last
        if end > done:
            rest.append((done, end))
    return rest
