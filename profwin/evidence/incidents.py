"""Incidents: what processes of a run noted beside their windows, stages and collections.

Times are as in `profwin.evidence.run`.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.run import Collection, Interval, Process

__all__ = ["Ask", "Asked", "Estimate", "Lost", "Mark", "Note", "Overlap", "Pause", "Remote", "StepChange", "Sync"]


@dataclass(slots=True, eq=False)
class StepChange:
    """A process learnt or published the step of one side, ``"rollout"`` or ``"training"``."""

    process: Process
    at: int
    side: str
    step: int
    selected: bool
    version: int | None
    generated_with: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Sync:
    """The body of a weight sync.

    Attributes:
        side: ``"rollout"``, or ``"training"`` where the process only sends the weights.
        step: the profiled step that the process was in before it, if any.
        end, status: None if the journal does not have its end. ``status`` is ``"ok"`` or ``"error"``.
    """

    process: Process
    version: int
    name: str
    side: str
    devices: tuple[str, ...]
    step: int | None
    start: int
    end: int | None = None
    status: str | None = None
    error: str | None = None

    @property
    def label(self) -> str:
        """Name it in words."""
        return f"weight sync v{self.version}"

    @property
    def role(self) -> str:
        """The role of its process in it, as windows and stages have one."""
        return "rollout" if self.side == "rollout" else self.process.role or "train"


@dataclass(slots=True, eq=False)
class Ask:
    """An interval that waits asked the holder of a device to let go; ``answer`` is ``"sent"`` or ``"refused"``."""

    process: Process
    at: int
    device: str
    holder: str | None
    answer: str
    interval: Interval | None = None


@dataclass(slots=True, eq=False)
class Asked:
    """Another process asked for a device of a collection; ``asker`` is its pid."""

    process: Process
    at: int
    collection: Collection | None
    asker: int
    purpose: str | None
    name: str | None
    step: int | None


@dataclass(slots=True, eq=False)
class Mark:
    """A mark on devices where an engine is to record; ``confirmed`` is None if its stop never was."""

    process: Process
    at: int
    devices: tuple[str, ...]
    processes: tuple[int, ...]
    confirmed: int | None = None


@dataclass(slots=True, eq=False)
class Remote:
    """What another process answered that was told to record for a collection.

    Attributes:
        token: what that process calls the window that it began for it.
        status: ``"recording"``, ``"refused"``, ``"unknown"`` (no answer), or at the end ``"stopped"`` or ``"died"``.
        pid, start, boot, host, run: of that process; only where it records.
    """

    process: Process
    at: int
    token: str
    collection: Collection | None
    engine: str
    status: str
    pid: int | None
    start: int | None
    boot: str | None
    host: str | None
    run: str | None


@dataclass(slots=True, eq=False)
class Overlap:
    """A stage that began inside an open window of its device."""

    process: Process
    at: int
    stage: str
    stage_site: str | None
    window: str
    window_site: str | None


@dataclass(slots=True, eq=False)
class Lost:
    """A lock file that was deleted or replaced while it was held."""

    process: Process
    at: int
    device: str
    collection: Collection | None


@dataclass(slots=True, eq=False)
class Estimate:
    """A process measured the monotonic clock of another host.

    Attributes:
        at: when, on the monotonic clock of its own boot.
        boot, host: of the other.
        offset: what the other clock was ahead of its own, in nanoseconds.
        uncertainty: by how much that may be wrong.
    """

    process: Process
    at: int
    boot: str
    host: str
    offset: int
    uncertainty: int


@dataclass(slots=True, eq=False)
class Pause:
    """A ``paused()`` block; ``end`` is None if the journal does not have it."""

    process: Process
    start: int
    end: int | None = None


@dataclass(slots=True, eq=False)
class Note:
    """A finding that a process wrote into its journal."""

    process: Process
    at: int
    code: str
    detail: str
