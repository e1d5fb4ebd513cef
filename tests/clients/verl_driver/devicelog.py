"""What happened on the devices, and the judge of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PROFILED", "DeviceLog", "Entry", "Verdict", "judge"]

PROFILED = (1, 2)
"""The steps that are profiled in every scenario."""

_NEEDS = {"generate": "rollout", "work": "training"}


@dataclass(frozen=True)
class Entry:
    """One line.

    Attributes:
        what: ``start`` or ``stop`` of a collector; ``generate`` or ``work`` of a device.
        kind: ``rollout`` or ``training``.
        device: where.
        step: the trainer's step at that moment.
        detail: which engine or stage.
    """

    what: str
    kind: str
    device: str
    step: int
    detail: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        return f"step {self.step}  {self.device:<10}  {self.what:<8}  {self.kind:<8}  {self.detail}"


class DeviceLog:
    """The log of one scenario.

    Attributes:
        entries: in order.
        step: the trainer's step now; the driver keeps it.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.step = 0

    def note(self, what: str, kind: str, device: str, detail: str = "") -> None:
        """Write a line."""
        self.entries.append(Entry(what, kind, device, self.step, detail))


@dataclass
class Verdict:
    """How often each rule was broken.

    Attributes:
        overlaps: a collector was started on a device where one of the other kind recorded.
        second_starts: a collector was started that recorded already.
        stops_of_nothing: a collector was stopped that did not record.
        unrecorded_generation: a device generated in a profiled step and no rollout collector recorded there.
        unrecorded_work: a stage of a profiled step worked and no training collector recorded there.
        left_recording: collectors that recorded yet at the end.
        beyond: generation or work was recorded that belongs to no profiled step, or to a validation. Not among the
            rules that verl itself must keep here, so it makes no scenario unclean.
        where: the entries at which a rule was broken.
    """

    overlaps: int = 0
    second_starts: int = 0
    stops_of_nothing: int = 0
    unrecorded_generation: int = 0
    unrecorded_work: int = 0
    left_recording: int = 0
    beyond: int = 0
    where: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not any(value for name, value in self.counts().items() if name != "beyond")

    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "where"}


def judge(entries: Iterable[Entry]) -> Verdict:
    """Judge a scenario's log, the same way whoever started and stopped the collectors."""
    verdict, recording = Verdict(), set()

    def broken(rule: str, entry: Entry) -> None:
        setattr(verdict, rule, getattr(verdict, rule) + 1)
        verdict.where.append(f"{rule}: {entry}")

    for entry in entries:
        here = {kind for device, kind, _detail in recording if device == entry.device}
        who = (entry.device, entry.kind, entry.detail)
        if entry.what == "start":
            if here - {entry.kind}:
                broken("overlaps", entry)
            if who in recording:
                broken("second_starts", entry)
            recording.add(who)
        elif entry.what == "stop":
            if who not in recording:
                broken("stops_of_nothing", entry)
            recording.discard(who)
        elif entry.step in PROFILED and entry.detail != "validation":
            if _NEEDS[entry.what] not in here:
                broken("unrecorded_generation" if entry.what == "generate" else "unrecorded_work", entry)
        elif _NEEDS[entry.what] in here:
            broken("beyond", entry)
    for device, kind, detail in sorted(recording):
        broken("left_recording", Entry("left", kind, device, 0, detail))
    return verdict
