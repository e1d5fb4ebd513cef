"""The run as its journals tell it: processes, collections, intervals, skips, waits; and where runs lie.

Times are wall-clock nanoseconds, by the anchor of each process's own journal. Within one boot of a host compare
``process.monotonic(time)`` instead: the wall clock may have been set between the anchors of two processes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from profwin.evidence.model import Clock
from profwin.evidence.runs import find_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.evidence.finding import Finding
    from profwin.evidence.incidents import (
        Ask,
        Asked,
        Estimate,
        Lost,
        Mark,
        Note,
        Overlap,
        Pause,
        Remote,
        StepChange,
        Sync,
    )

__all__ = ["Collection", "Export", "Interval", "Process", "Run", "Skip", "Wait", "find_runs", "load", "process_key"]


@dataclass(slots=True, eq=False)
class Process:
    """A process of the run: one journal.

    Attributes:
        journal: the file, relative to the run's directory.
        clock: the monotonic clock of its boot.
        offset: wall time minus monotonic time.
        begin, last: of its first and its last record.
        end: the reason of its last record, or None: it was killed, or is still running.
        dropped: how many records could not be written.
        cut: whether the last line has no end.
    """

    journal: str
    run: str
    attempt: int
    pid: int
    start: int | None
    host: str
    boot: str
    uid: int | None
    role: str | None
    rank: int | None
    world: int | None
    root: bool
    schema: int
    settings: dict[str, Any]
    clock: Clock
    offset: int
    begin: int
    last: int
    end: str | None = None
    dropped: int = 0
    cut: bool = False

    def monotonic(self, wall: int) -> int:
        """Return a time of this process on the monotonic clock of its boot."""
        return wall - self.offset

    @property
    def label(self) -> str:
        """Name it in words."""
        rank = "no rank" if self.rank is None else f"rank {self.rank}"
        return f"{self.role or 'process'} ({rank}, pid {self.pid})"


@dataclass(slots=True, eq=False)
class Export:
    """A finished trace of a collection, or why there is none.

    Attributes:
        path: relative to the run's directory; None if there is none.
        size: in bytes, as the journal says.
        found: size of the file now; -1 if it is not there; None if that was not looked at, as outside the run.
        group_timeout: of the process group, in seconds; None if there was none, or it is not known.
    """

    backend: str
    path: str | None
    size: int | None
    seconds: float
    error: str | None
    at: int
    found: int | None = None
    group_timeout: float | None = None


@dataclass(slots=True, eq=False)
class Collection:
    """A profiler that recorded, from the first lock to the last stop.

    Attributes:
        close, reason: None if it was never closed.
        stop_seconds: what stopping took.
        waited: seconds waited for its devices.
        unlocked: whether its devices are not locked for it, since what it records disturbs nothing there.
        intervals: what it recorded, in order of their entry, those that joined it included.
    """

    process: Process
    identifier: int
    purpose: str
    name: str
    step: int
    occurrence: int
    segment: int
    backends: tuple[str, ...]
    devices: tuple[str, ...]
    open: int
    waited: float = 0.0
    version: int | None = None
    unlocked: bool = False
    close: int | None = None
    reason: str | None = None
    error: str | None = None
    stop_seconds: float = 0.0
    exports: list[Export] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)

    @property
    def keys(self) -> tuple[str, ...]:
        """What it excludes others from: its devices, else the process, which then stands for its device."""
        return self.devices or (process_key(self.process),)


@dataclass(slots=True, eq=False)
class Skip:
    """An interval that ran unrecorded, or a part of it. ``interval`` is None if its entry is not in the journal."""

    process: Process
    at: int
    reason: str
    device: str | None
    holder: str | None
    waited: float
    detail: str | None
    interval: Interval | None = None


@dataclass(slots=True, eq=False)
class Interval:
    """A window, stage or span in its process's code.

    Attributes:
        what: ``"window"``, ``"stage"`` or ``"span"``.
        exit, status: None if the journal does not have its end. ``status`` is ``"ok"`` or ``"error"``.
        collection: the first that recorded it; None if none did.
        collections: all that did, in order: more than one after a pause or a split.
        skip: why it ran unrecorded, or did for a time.
        token: what another process calls it that had this one begin it; None if nobody did.
    """

    process: Process
    identifier: int
    what: str
    name: str
    step: int | None
    occurrence: int
    role: str | None
    enter: int
    thread: int | None
    site: str | None
    devices: tuple[str, ...]
    exit: int | None = None
    status: str | None = None
    error: str | None = None
    collection: Collection | None = None
    collections: list[Collection] = field(default_factory=list)
    skip: Skip | None = None
    token: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Its devices, else the process."""
        return self.devices or (process_key(self.process),)


@dataclass(slots=True, eq=False)
class Wait:
    """Time that something waited for a device. ``outcome`` is ``"recorded"`` or the reason of the skip."""

    process: Process
    start: int
    end: int
    outcome: str
    devices: tuple[str, ...]
    holder: str | None
    interval: Interval | None = None
    collection: Collection | None = None


@dataclass(eq=False)
class Run:
    """One run.

    Attributes:
        directory: where it lies.
        prefix: of paths in findings: ``directory`` relative to what is checked; empty where that is the same.
        name: of the run.
        attempts: numbers of the launches that are in it, sorted.
        manifest: what of ``manifest.json`` is used (``settings``, ``processes``); None if there is none.
        findings: damage in journals and manifest.
    """

    directory: str
    prefix: str = ""
    name: str = ""
    attempts: list[int] = field(default_factory=list)
    manifest: dict[str, Any] | None = None
    processes: list[Process] = field(default_factory=list)
    collections: list[Collection] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    steps: list[StepChange] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    proofs: list[Mark] = field(default_factory=list)
    remotes: list[Remote] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    clocks: list[Estimate] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    uneven: set[tuple[str, str]] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)

    def path(self, file: str) -> str:
        """Return a path of the run, as findings give it."""
        return f"{self.prefix}/{file}" if self.prefix else file


def process_key(process: Process) -> str:
    """Return the key of a process that stands for its device."""
    return f"process {process.pid}-{process.boot[:4]}"


def load(directory: str, *, prefix: str = "", look: bool = True) -> Run:
    """Return a run from its journals and its manifest. Never raises for what is in them: damage is a finding.

    Args:
        directory: of the run.
        prefix: `Run.prefix`.
        look: whether to look for the traces that the journals name.
    """
    from profwin.evidence.journals import Reader

    return Reader(os.fspath(directory), prefix, look=look).read()
