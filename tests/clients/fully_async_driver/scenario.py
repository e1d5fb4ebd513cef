"""The scenarios, and the judge of what happened in one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_driver.devicelog import Entry

__all__ = ["HYBRID", "SCENARIOS", "EngineFaultError", "Scenario", "judge"]

HYBRID = "hybrid"
"""The device that also trains, and its server; in a real Ray, whoever does something there notes it with that."""


class EngineFaultError(Exception):
    """What the start or stop of an engine's profiler raises where a scenario asks for it."""


@dataclass(frozen=True)
class Scenario:
    """One run.

    Attributes:
        name: what tables call it.
        steps: ``global_profiler.steps``.
        versions: how many weight syncs training gets to, beside that of the initial weights.
        rounds: ``trigger_parameter_sync_step``: updates for each sync.
        half: whether there are samples for one update more, after which the run ends between two syncs.
        discrete: ``discrete`` of the training's profiling tool: one recording a stage, not one a step.
        lends: dynamic scheduling: training lends its devices at each sync and takes them back before it trains.
        standalone: whether there are devices that only generate.
        validates: which side validates, at the start and after each sync.
        fault: whether the first update raises, which ends the run.
        start, stop: what the first start or stop of a profiler does in the first engine: ``fail``, ``hang``, or
            ``slow``: it answers when the next version is generated.
    """

    name: str
    steps: tuple[int, ...] = (1, 2)
    versions: int = 3
    rounds: int = 1
    half: bool = False
    discrete: bool = True
    lends: bool = False
    standalone: bool = True
    validates: str = ""
    fault: bool = False
    start: str = ""
    stop: str = ""

    @property
    def late(self) -> bool:
        """Whether an engine does not answer in time."""
        return bool({self.start, self.stop} & {"hang", "slow"})


SCENARIOS = tuple(
    Scenario(**each)
    for each in (
        {"name": "plain"},
        {"name": "two updates a sync", "rounds": 2},
        {"name": "one recording a step", "discrete": False, "rounds": 2},
        {"name": "ends in a profiled step", "versions": 1},
        {"name": "ends between two syncs", "versions": 1, "rounds": 2, "half": True},
        {"name": "ends in a profiled step, last sync", "versions": 1, "validates": "rollouter"},
        {"name": "fault", "fault": True},
        {"name": "validation", "validates": "rollouter"},
        {"name": "validation on lent devices", "validates": "trainer"},
        {"name": "dynamic", "lends": True},
        {"name": "dynamic, one recording a step", "lends": True, "discrete": False},
        {"name": "dynamic, two updates a sync", "lends": True, "rounds": 2},
        {"name": "dynamic, validation", "lends": True, "validates": "trainer"},
        {"name": "dynamic, ends in a profiled step", "lends": True, "versions": 1},
        {"name": "dynamic, no standalone devices", "lends": True, "standalone": False},
        {"name": "start fails", "start": "fail"},
        {"name": "start is slow", "start": "slow", "steps": (1, 2, 3)},
        {"name": "start hangs", "start": "hang"},
        {"name": "stop fails", "stop": "fail", "steps": (1, 2, 3)},
        {"name": "stop is slow", "stop": "slow", "steps": (1, 2, 3)},
        {"name": "stop hangs", "stop": "hang"},
    )
)


def judge(entries: Iterable[Entry], steps: tuple[int, ...]) -> tuple[Counter[str], list[str]]:
    """Return how often each rule was broken, and the entries at which.

    - ``overlaps``: a collector started on a device where one of the other kind recorded.
    - ``second_starts``, ``stops_of_nothing``, ``left_recording``.
    - ``unrecorded_generation``, ``unrecorded_work``: in a profiled step.
    - ``mixed``: a rollout collector recorded the generation of another version than that in which it started.
    - ``synced_inside``: new weights came to a device where a rollout collector recorded.
    - ``beyond``: a validation was recorded, or what belongs to no profiled step.
    """
    found = _Judge(steps)
    for entry in entries:
        getattr(found, f"of_{entry.what}")(entry)
    for who in found.recording:
        found.note("left_recording", who)
    return found.broken, found.where


class _Judge:
    def __init__(self, steps: tuple[int, ...]) -> None:
        self.steps = steps
        self.broken: Counter[str] = Counter()
        self.where: list[str] = []
        self.recording: dict[tuple[str, str, str], int] = {}

    def note(self, rule: str, entry: object) -> None:
        self.broken[rule] += 1
        self.where.append(f"{rule}: {entry}")

    def here(self, entry: Entry) -> dict[str, int]:
        """Return what records on the entry's device, and the step in which it began."""
        return {kind: step for (device, kind, _), step in self.recording.items() if device == entry.device}

    def of_start(self, entry: Entry) -> None:
        who = (entry.device, entry.kind, entry.detail)
        if self.here(entry).keys() - {entry.kind}:
            self.note("overlaps", entry)
        if who in self.recording:
            self.note("second_starts", entry)
        self.recording[who] = entry.step

    def of_stop(self, entry: Entry) -> None:
        if self.recording.pop((entry.device, entry.kind, entry.detail), None) is None:
            self.note("stops_of_nothing", entry)

    def of_sync(self, entry: Entry) -> None:
        if "rollout" in self.here(entry):
            self.note("synced_inside", entry)

    def of_generate(self, entry: Entry) -> None:
        step = self._meant(entry, "unrecorded_generation")
        if step is not None and step != entry.step:
            self.note("mixed", entry)

    def of_work(self, entry: Entry) -> None:
        self._meant(entry, "unrecorded_work")

    def _meant(self, entry: Entry, rule: str) -> int | None:
        """Return the step of the collector that records what shall be recorded."""
        step = self.here(entry).get(entry.kind)
        if entry.detail == "validation" or entry.step not in self.steps:
            if step is not None:
                self.note("beyond", entry)
            return None
        if step is None:
            self.note(rule, entry)
        return step
