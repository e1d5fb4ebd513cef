"""The record: what collected where, and which windows and stages ran, over all processes of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Collection", "Event", "Interval", "Overlap", "Record", "Skip"]

FOREVER = 1 << 63
_NOISE = 0.02
"""Seconds of waiting below which a loaded machine, not another collection, may be the cause."""


@dataclass(frozen=True)
class Collection:
    """A profiler that recorded.

    Attributes:
        process: which process it is of, in words.
        purpose: ``rollout`` or ``training``.
        name, step, occurrence, segment: as in the journal.
        devices: keys of its devices; the process itself where it has none.
        opened: nanoseconds, as in the journal.
        closed: likewise; None where it never was.
        end: until when it recorded at the least; far in the future where it still does.
        reason: why it was closed.
        site: ``file:line`` of the code it was opened for; ``?`` where it failed to start.
        waited: seconds waited for its devices.
        problems: what went wrong with it, in words.
        elsewhere: whether it recorded in other processes alone, which have journals and devices of their own.
    """

    process: str
    purpose: str
    name: str
    step: int
    devices: tuple[str, ...]
    opened: int
    closed: int | None
    end: int
    reason: str | None
    site: str
    occurrence: int = 1
    segment: int = 1
    waited: float = 0.0
    problems: tuple[str, ...] = ()
    elsewhere: bool = False

    @property
    def wait(self) -> str:
        """What it waited, in words; empty for less than 20 ms, which may be the machine's own doing."""
        return f"waited {self.waited:.3g} s" if self.waited >= _NOISE else ""

    def __str__(self) -> str:
        """Say which one it is, and where."""
        return f"{self.purpose} {self.name!r} of step {self.step} ({self.process}, {self.site})"


@dataclass(frozen=True)
class Skip:
    """Why something ran unrecorded: the journal's ``skip``."""

    time: int
    reason: str
    device: str | None = None
    holder: str | None = None
    waited: float = 0.0
    detail: str | None = None

    def __str__(self) -> str:
        """Say it in one line."""
        text = self.reason
        if self.device:
            text += f", {self.device} is held by {self.holder}"
        if self.waited:
            text += f", after {self.waited:.3g} s"
        return text + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class Interval:
    """A window or stage, from its entry to its exit, whether it was recorded or not.

    Attributes:
        process: which process it is of, in words.
        what: ``window``, ``stage`` or ``span``.
        name, step: as in the journal.
        devices: keys of its devices; the process itself where it has none.
        site: ``file:line`` of the code.
        entered: nanoseconds, as in the journal.
        left: likewise; None where it never was.
        end: until when it lasted at the least; far in the future where it still does.
        collections: what recorded it, one after the other.
        skip: why nothing did.
    """

    process: str
    what: str
    name: str
    step: int
    devices: tuple[str, ...]
    site: str
    entered: int
    left: int | None
    end: int
    collections: tuple[Collection, ...] = ()
    skip: Skip | None = None

    @property
    def paused(self) -> bool:
        """Whether it is unrecorded because the loop itself said so, by ``paused()``."""
        return not self.collections and self.skip is not None and self.skip.reason == "paused"

    @property
    def problem(self) -> str | None:
        """What keeps it from being recorded whole, in words; None if it is, or was paused."""
        if self.paused:
            return None
        if not self.collections:
            return "not recorded: " + (str(self.skip) if self.skip else "the journal does not say why")
        if self.left is None:
            return "never left"
        last = self.collections[-1]
        if last.closed is None:
            return "its recording never ended"
        if last.closed < self.left and last.reason != "paused":
            return f"recorded in part: its recording was closed before its end ({last.reason})"
        problems = [problem for collection in self.collections for problem in collection.problems]
        return "; ".join(problems) or None

    @property
    def recorded(self) -> bool:
        """Whether it was recorded, and whole."""
        return bool(self.collections) and self.problem is None

    def __str__(self) -> str:
        """Say which one it is, and where."""
        return f"{self.what} {self.name!r} of step {self.step} ({self.process}, {self.site})"


@dataclass(frozen=True)
class Overlap:
    """A stage that began inside an open window of its device, which profwin closed there."""

    time: int
    process: str
    devices: tuple[str, ...]
    step: int
    stage: str
    stage_site: str
    window: str
    window_site: str


@dataclass(frozen=True, order=True)
class Event:
    """One line of the record.

    Attributes:
        time: nanoseconds, as in the journal.
        kind: ``opened``, ``closed``, ``skipped`` or ``overlap``.
        device: key of the device; what has several has an event for each.
        purpose, name, step: of the collection, or of what was skipped.
        process: in words.
        detail: seconds waited, why it was closed or skipped, what overlapped.
    """

    time: int
    kind: str
    device: str
    purpose: str
    name: str
    step: int
    process: str
    detail: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        text = f"{self.device}: {self.kind} {self.purpose} {self.name!r} of step {self.step}, {self.process}"
        return text + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class Record:
    """What happened, over all processes; printed, it is a timeline.

    Attributes:
        collections: by the time they opened.
        intervals: windows, stages and spans, by the time they were entered.
        overlaps: handovers that profwin had to enforce.
        findings: code and detail of each finding in the journals.
    """

    collections: tuple[Collection, ...] = ()
    intervals: tuple[Interval, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    directory: str = field(default="", compare=False)

    @property
    def windows(self) -> tuple[Interval, ...]:
        """The rollout windows."""
        return tuple(each for each in self.intervals if each.what == "window")

    @property
    def stages(self) -> tuple[Interval, ...]:
        """The training stages."""
        return tuple(each for each in self.intervals if each.what == "stage")

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps in which a window or stage was entered."""
        return tuple(sorted({each.step for each in self.intervals if each.what != "span"}))

    @property
    def devices(self) -> tuple[str, ...]:
        """The keys of the devices that were recorded, or were to be."""
        named = [each.devices for each in self.collections] + [each.devices for each in self.intervals]
        return tuple(sorted({device for devices in named for device in devices}))

    @property
    def skips(self) -> tuple[Interval, ...]:
        """The windows and stages that ran unrecorded."""
        return tuple(each for each in self.intervals if each.skip is not None and not each.collections)

    @property
    def waits(self) -> tuple[Collection, ...]:
        """The collections that had to wait 20 ms or more for a device; less may be the machine's own doing."""
        return tuple(each for each in self.collections if each.wait)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened on the devices, in order: see :class:`Event`."""
        return tuple(sorted(self._events()))

    def _events(self) -> Iterable[Event]:
        for each in self.collections:
            for device in each.devices:
                yield Event(each.opened, "opened", device, each.purpose, each.name, each.step, each.process, each.wait)
                if each.closed is not None:
                    reason = each.reason or ""
                    yield Event(each.closed, "closed", device, each.purpose, each.name, each.step, each.process, reason)
        for skipped in self.skips:
            purpose = "rollout" if skipped.what == "window" else "training"
            time, why = (skipped.skip.time, str(skipped.skip)) if skipped.skip else (skipped.entered, "")
            for device in skipped.devices:
                yield Event(time, "skipped", device, purpose, skipped.name, skipped.step, skipped.process, why)
        for overlap in self.overlaps:
            where = f"inside window {overlap.window!r}, {overlap.window_site}"
            for device in overlap.devices:
                yield Event(
                    overlap.time, "overlap", device, "training", overlap.stage, overlap.step, overlap.process, where
                )

    def __str__(self) -> str:
        """Draw the timeline."""
        from profwin.testing.timeline import draw

        return draw(self)
