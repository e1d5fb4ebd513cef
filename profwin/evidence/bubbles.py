"""Bubbles: time in which no window, stage or weight sync ran on a device, and why, as far as that is known."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from profwin.evidence.unions import bridged, clipped, joined, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from profwin.evidence.lanes import Lane, Work
    from profwin.evidence.unions import Span

    Group: TypeAlias = tuple[str, str, int | None, int]

__all__ = ["CAUSES", "KINDS", "Facts", "Piece", "Step", "cut"]

KINDS = ("rollout", "training", "other", "sync", "sync_at_most", "handover", "paused", "unrecorded", "idle")
"""What a device's time is made of; a piece of it is of one kind.

``other``: at work for another profiled step. ``sync_at_most``: what may have been a weight sync, where no journal says.
"""

CAUSES = ("device", "profiling", "rank", "samples", "training", "sync", "unknown")
"""Why a device stood still during ``handover`` and ``idle``; where several hold, the first one counts."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a device's time.

    Attributes:
        kind: one of `KINDS`.
        work: what ran, or None.
        cause: one of `CAUSES` for ``handover`` and ``idle``, else empty.
    """

    start: int
    end: int
    kind: str
    work: Work | None = None
    cause: str = ""


class Step:
    """What all devices of an attempt did in the time of one step: what a bubble may have been waiting for.

    Args:
        attempt, step: which.
        start, end: its time.
        lanes: of its attempt.
    """

    def __init__(self, attempt: int, step: int, start: int, end: int, lanes: list[Lane]) -> None:
        self.attempt, self.step, self.start, self.end = attempt, step, start, end
        spans: dict[str, list[Span]] = {"rollout": [], "training": [], "sync": []}
        groups: dict[Group, list[Span]] = {}
        for lane in lanes:
            for work in lane.within(start, end):
                spans[work.kind].append((max(work.start, start), min(work.end, end)))
                if work.kind == "training":
                    groups.setdefault(group(work), []).append((work.start, work.end))
        # Each of these may cut each bubble of each lane, so they must be few where there are many lanes.
        most = max(8, min(1000, 200_000 // (len(lanes) + 1)))
        self.busy = {kind: bridged(joined(every), most) for kind, every in spans.items()}
        self.groups = {key: bridged(joined(every), most) for key, every in groups.items()}


def group(work: Work) -> Group:
    """Return what tells which stage of all ranks a stage of one rank belongs to."""
    return work.role, work.name, work.step, work.occurrence


class Facts:
    """What the journals say about one lane beside its works."""

    def __init__(self, lane: Lane) -> None:
        self.waits = joined((cost.start, cost.end) for cost in lane.costs if cost.kind == "wait")
        self.profiling = joined((cost.start, cost.end) for cost in lane.costs if cost.kind != "wait")
        self.paused = joined(lane.paused)
        self.unrecorded = _unrecorded(lane)
        self.fresh = sorted(news.at for news in lane.news if news.fresh)


def _unrecorded(lane: Lane) -> list[Span]:
    """Return when a step was on that is not profiled: what ran then is not in the journals."""
    spans: list[Span] = []
    since: dict[str, int] = {}
    for news in lane.news:
        if not news.selected:
            since.setdefault(news.side, news.at)
        elif news.side in since:
            spans.append((since.pop(news.side), news.at))
    spans += [(at, 2**63) for at in since.values()]
    return joined(spans)


def cut(lane: Lane, facts: Facts, step: Step) -> list[Piece]:
    """Cut the step's time on a lane into pieces of one kind and cause each, in order, without gap or overlap."""
    found = list(lane.pieces(step.start, step.end))
    pieces: list[Piece] = []
    for index, (start, end, work) in enumerate(found):
        if work is not None:
            own = work.step == step.step or work.kind == "sync"
            pieces.append(Piece(start, end, work.kind if own else "other", work))
            continue
        before = found[index - 1][2] if index else None
        after = found[index + 1][2] if index + 1 < len(found) else None
        pieces += sorted(_explain((start, end), before, after, step, facts), key=lambda piece: piece.start)
    return pieces


def _explain(gap: Span, before: Work | None, after: Work | None, step: Step, facts: Facts) -> list[Piece]:
    handover = before is not None and after is not None and (before.kind, after.kind) == ("rollout", "training")
    kind = "handover" if handover else "idle"
    pieces: list[Piece] = []
    rest = [gap]

    def take(union: list[Span], kind: str, cause: str = "") -> None:
        nonlocal rest
        taken = [part for start, end in rest for part in clipped(union, start, end)]
        if taken:
            pieces.extend(Piece(start, end, kind, None, cause) for start, end in taken)
            rest = without(rest, taken)

    take(facts.waits, kind, "device")
    take(facts.profiling, kind, "profiling")
    take(facts.paused, "paused")
    if before is not None and before.kind == "training":
        take(step.groups.get(group(before), []), kind, "rank")
    if not handover:
        take(facts.unrecorded, "unrecorded")
    sides = [work.kind for work in (after, before) if work is not None and work.kind != "sync"]
    trains = sides[:1] == ["training"]
    for cause, busy in (("samples", "rollout"), ("training", "training"))[:: 1 if trains else -1]:
        take(step.busy[busy], kind, cause)
    take(step.busy["sync"], kind, "sync")
    fresh = None if handover else _fresh(gap, facts)
    if fresh is not None:
        # No journal says when the sync began. What nothing else explains, before the new weights were there, is it.
        take([(gap[0], fresh)], "sync_at_most")
    pieces += [Piece(start, end, kind, None, "unknown") for start, end in rest]
    return pieces


def _fresh(gap: Span, facts: Facts) -> int | None:
    """Return when, within a gap, a process of the lane first had newer weights."""
    index = bisect_right(facts.fresh, gap[0])
    return facts.fresh[index] if index < len(facts.fresh) and facts.fresh[index] <= gap[1] else None
