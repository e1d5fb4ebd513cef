"""Phases: the numbers of a run, step by step: where each device's time went, what was slowest, what profiling cost.

Busy time is the length of a union of intervals, never a sum of them. All times are whole nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from profwin.evidence.bubbles import CAUSES, KINDS, Facts, Piece, Step, cut
from profwin.evidence.lane_maker import make_lanes
from profwin.evidence.unions import common, joined, length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from profwin.evidence.lanes import Cost, Lane, Work
    from profwin.evidence.run import Run
    from profwin.evidence.unions import Span

__all__ = ["COSTS", "DevicePhases", "Ranks", "StepPhases", "count_steps", "measure", "totals"]

COSTS = ("start", "stop", "export", "wait")
MOST_PIECES = 500_000
"""Of the devices' time in an attempt, so that no run fills the memory: of more, the first steps are measured."""
BUSY = ("rollout", "training", "other", "sync", "sync_at_most")


@dataclass
class DevicePhases:
    """One device in one step.

    Attributes:
        pieces: of its time, in order, without gap or overlap.
        kinds: time of each of `KINDS`; together, the step's.
        causes: of the time of ``handover`` and ``idle``, by `CAUSES`.
        stages: time of each stage, by name; nested ones count for the inner.
    """

    lane: Lane
    pieces: list[Piece]
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    causes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    stages: dict[str, int] = field(default_factory=dict)

    @property
    def busy(self) -> int:
        """Time at work."""
        return sum(self.kinds[kind] for kind in BUSY)


@dataclass(frozen=True)
class Ranks:
    """A window, stage or weight sync over all ranks of a role.

    Attributes:
        workers: how many ranks it ran on.
        slowest: the rank that took longest, and ``device`` where it ran.
        longest: its time: of the union of the stage's occurrences.
        typical: the median of the other ranks; None where there is none.
    """

    kind: str
    name: str
    role: str
    workers: int
    slowest: str
    device: str
    longest: int
    typical: int | None

    @property
    def behind(self) -> int:
        """By how much the slowest is slower than the median of the others."""
        return 0 if self.typical is None else self.longest - self.typical


@dataclass
class StepPhases:
    """One profiled step.

    Attributes:
        attempt, step, start, end: which, and when.
        devices: of the run's attempt, in the order of its lanes.
        ranks: windows, stages and weight syncs over their ranks, in order of their first start.
        overlap: how long rollout ran on some devices while training ran on others.
        generated_with, trained_at: weight versions of the samples, and of the training.
        costs: of profiling, by `COSTS`: time of the process that it took longest of.
        cost: all of them together, of the process that they took longest of; of waits only what nothing ran in on the
            device.
        coster: which process that is.
    """

    attempt: int
    step: int
    start: int
    end: int
    devices: list[DevicePhases]
    ranks: list[Ranks]
    overlap: int = 0
    generated_with: list[int] = field(default_factory=list)
    trained_at: list[int] = field(default_factory=list)
    costs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COSTS, 0))
    cost: int = 0
    coster: str = ""

    @property
    def span(self) -> int:
        """How long it took."""
        return self.end - self.start

    @property
    def staleness(self) -> int | None:
        """How many versions the oldest samples were behind; None where it is not known."""
        known = self.generated_with and self.trained_at
        return max(self.trained_at) - min(self.generated_with) if known else None

    def time(self, kind: str) -> int:
        """Return the time of one kind, over all devices."""
        return sum(device.kinds[kind] for device in self.devices)

    def share(self, kind: str) -> float:
        """Return the part of the devices' time that is of one kind, from 0.0 to 1.0."""
        whole = self.span * len(self.devices)
        return self.time(kind) / whole if whole else 0.0

    def bubbles(self) -> list[tuple[DevicePhases, Piece]]:
        """Return the bubbles, longest first."""
        every = [(device, piece) for device in self.devices for piece in device.pieces if piece.cause]
        return sorted(every, key=lambda found: found[1].start - found[1].end)


def measure(run: Run) -> list[StepPhases]:
    """Return the numbers of each step that has a window or stage in the journals, by attempt and number."""
    by_attempt: dict[int, list[Lane]] = {}
    for lane in make_lanes(run):
        by_attempt.setdefault(lane.attempt, []).append(lane)
    return [step for attempt in sorted(by_attempt) for step in _Attempt(run, attempt, by_attempt[attempt]).steps()]


def count_steps(run: Run) -> int:
    """Return how many steps have a window or stage in the journals."""
    return len(
        {(each.process.attempt, each.step) for each in run.intervals if each.what != "span" and each.step is not None}
    )


def totals(steps: Iterable[StepPhases]) -> dict[str, int]:
    """Return the devices' time by kind, over several steps."""
    steps = list(steps)
    return {kind: sum(step.time(kind) for step in steps) for kind in KINDS}


class _Attempt:
    def __init__(self, run: Run, attempt: int, lanes: list[Lane]) -> None:
        # What only takes part in weight syncs is no device of the run, but perhaps its driver.
        self._attempt = attempt
        self._lanes = [lane for lane in lanes if any(work.kind != "sync" for work in lane.works)]
        self._facts = [Facts(lane) for lane in self._lanes]
        self._works: dict[int, list[tuple[Lane, Work]]] = {}
        self._costs: dict[int, list[tuple[Lane, Cost]]] = {}
        for lane in self._lanes:
            for work in lane.works:
                if work.step is not None and work.kind != "sync":
                    self._works.setdefault(work.step, []).append((lane, work))
            for cost in lane.costs:
                if cost.step is not None:
                    self._costs.setdefault(cost.step, []).append((lane, cost))
        for lane in self._lanes:
            for work in lane.works:
                if work.kind == "sync" and work.step in self._works:
                    self._works[work.step].append((lane, work))
        self._generated: dict[int, set[int]] = {}
        self._told: dict[int, set[int]] = {}
        self._trained: dict[int, set[int]] = {}
        self._versions(run)

    def _versions(self, run: Run) -> None:
        """Gather which weights generated and trained, as the manifest does."""
        for change in run.steps:
            if change.process.attempt == self._attempt and change.side == "training" and change.selected:
                self._told.setdefault(change.step, set()).update(change.generated_with)
                if change.version is not None:
                    self._trained.setdefault(change.step, set()).add(change.version)
        for collection in run.collections:
            if collection.process.attempt == self._attempt and collection.version is not None:
                side = self._generated if collection.purpose == "rollout" else self._trained
                side.setdefault(collection.step, set()).add(collection.version)

    def steps(self) -> list[StepPhases]:
        steps: list[StepPhases] = []
        pieces = 0
        for number in sorted(self._works):
            steps.append(self._measure(number))
            pieces += sum(len(device.pieces) for device in steps[-1].devices)
            if pieces > MOST_PIECES:
                break
        return steps

    def _measure(self, number: int) -> StepPhases:
        works, costs = self._works[number], self._costs.get(number, [])
        start = min([work.start for _, work in works] + [each.start for _, each in costs if each.kind == "start"])
        end = max([work.end for _, work in works] + [each.end for _, each in costs if each.kind in ("stop", "export")])
        step = Step(self._attempt, number, start, self._with_sync(number, end), self._lanes)
        phases = StepPhases(
            attempt=self._attempt,
            step=number,
            start=start,
            end=step.end,
            devices=[_device(lane, facts, step) for lane, facts in zip(self._lanes, self._facts, strict=True)],
            ranks=_ranks(works),
            generated_with=sorted(self._told.get(number) or self._generated.get(number) or ()),
            trained_at=sorted(self._trained.get(number) or ()),
        )
        sides: dict[str, list[Span]] = {"rollout": [], "training": []}
        for device in phases.devices:
            for piece in device.pieces:
                if piece.work is not None and piece.work.kind in sides:
                    sides[piece.work.kind].append((piece.start, piece.end))
        phases.overlap = length(common(joined(sides["rollout"]), joined(sides["training"])))
        _add_costs(phases, costs)
        return phases

    def _with_sync(self, number: int, end: int) -> int:
        """Return the end of a step, with the weight sync that follows it where no journal says when it began."""
        last = end
        for lane in {id(lane): lane for lane, work in self._works[number] if work.kind == "rollout"}.values():
            news = next((each for each in lane.news if each.at >= end and each.side == "rollout"), None)
            if news is not None and news.fresh and news.step > number and not lane.within(end, news.at):
                last = max(last, news.at)
        return last


def _device(lane: Lane, facts: Facts, step: Step) -> DevicePhases:
    device = DevicePhases(lane, cut(lane, facts, step))
    for piece in device.pieces:
        took = piece.end - piece.start
        device.kinds[piece.kind] += took
        if piece.cause:
            device.causes[piece.cause] += took
        if piece.kind == "training" and piece.work is not None:
            device.stages[piece.work.name] = device.stages.get(piece.work.name, 0) + took
    return device


def _ranks(works: list[tuple[Lane, Work]]) -> list[Ranks]:
    spans: dict[tuple[str, str, str], dict[str, list[Span]]] = {}
    places: dict[tuple[str, str, str, str], str] = {}
    for lane, work in sorted(works, key=lambda pair: pair[1].start):
        key = work.kind, work.name, work.role
        spans.setdefault(key, {}).setdefault(work.worker, []).append((work.start, work.end))
        places.setdefault((*key, work.worker), lane.key)
    found = []
    for key, workers in spans.items():
        times = sorted((length(joined(every)), worker) for worker, every in workers.items())
        longest, slowest = times[-1]
        typical = times[(len(times) - 2) // 2][0] if len(times) > 1 else None
        found.append(Ranks(*key, len(times), slowest, places[(*key, slowest)], longest, typical))
    return found


def _add_costs(phases: StepPhases, costs: list[tuple[Lane, Cost]]) -> None:
    still = {
        id(device.lane): joined((piece.start, piece.end) for piece in device.pieces if piece.work is None)
        for device in phases.devices
    }
    workers: dict[str, dict[str, list[Span]]] = {}
    for lane, cost in costs:
        span = max(cost.start, phases.start), min(cost.end, phases.end)
        kinds = workers.setdefault(cost.worker, {})
        kinds.setdefault(cost.kind, []).append(span)
        kinds.setdefault("together", []).extend(common([span], still[id(lane)]) if cost.kind == "wait" else [span])
    for worker, kinds in sorted(workers.items()):
        for kind in COSTS:
            phases.costs[kind] = max(phases.costs[kind], length(joined(kinds.get(kind, ()))))
        together = length(joined(kinds["together"]))
        if together > phases.cost:
            phases.cost, phases.coster = together, worker
