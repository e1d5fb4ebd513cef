"""What readers hand to those who judge: one description of a recording, whichever profiler made it.

All times are whole nanoseconds on the clock that `Clock` names; none is ever a float.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from profwin.evidence.finding import Finding

__all__ = ["Clock", "Name", "Recording", "Slice", "Tally"]


@dataclass(frozen=True)
class Clock:
    """Which clock times are on.

    Attributes:
        kind: ``"wall"`` (ns since 1970 of one host), ``"monotonic"`` (of one boot), or ``"unknown"``.
        host: what tells two hosts apart, as far as the file says; empty where it does not.
        boot: the boot id, for monotonic clocks.
    """

    kind: str
    host: str = ""
    boot: str = ""


@dataclass(frozen=True)
class Name:
    """What a file's name, folder or embedded metadata says about what it holds; None where nothing does.

    Attributes:
        step, rank, world, occurrence: whole numbers; the rank of an engine's worker may count within its replica.
        replica: number of the engine, where there are several.
        purpose: ``"rollout"`` or ``"training"``.
        role: role of the process.
        stage: name of the stage or window.
        source: who named it: ``"profwin"``, ``"verl"``, ``"vllm"``, ``"sglang"``, ``"ascend"``, ``"metadata"``, ...
    """

    step: int | None = None
    rank: int | None = None
    world: int | None = None
    occurrence: int | None = None
    purpose: str | None = None
    role: str | None = None
    stage: str | None = None
    source: str = ""
    replica: int | None = None


class Slice(msgspec.Struct, frozen=True, gc=False):
    """One event with a length, as ``timeline`` draws it. There are very many: a dataclass takes ten times as long.

    Attributes:
        name: as in the file.
        start, end: ns on the recording's clock.
        track: what it belongs to: process and thread, or device and stream, unique within the recording.
        on_device: whether it is the device's work (a kernel, a copy), not the host's.
        category: as in the file; may be empty.
        kind: ``"slice"``; or, for what has no length (``end`` is ``start``): ``"instant"``, an end of an arrow
            between two slices, ``"flow-start"``, ``"flow-step"``, ``"flow-end"``, or a ``"counter"``'s value.
        flow: which arrow, as in the file: the same for its ends, unique within the recording.
        value: what a counter has from then on; its track is the counter.
    """

    name: str
    start: int
    end: int
    track: str
    on_device: bool
    category: str = ""
    kind: str = "slice"
    flow: int | str = 0
    value: float = 0.0


@dataclass
class Tally:
    """Counts of one recording, gathered while it streams by.

    Attributes:
        events: all of them, of whatever kind.
        slices: those with a length.
        device_slices: those of them that are the device's work.
        launches: host calls that launch device work and should have some.
        launches_without_kernel: those whose device work is missing; see the format for what is excepted.
        missing_at_head: of these, how many come before the first launch that has its device work.
        categories: how often each category occurs.
    """

    events: int = 0
    slices: int = 0
    device_slices: int = 0
    launches: int = 0
    launches_without_kernel: int = 0
    missing_at_head: int = 0
    categories: dict[str, int] = field(default_factory=dict)


@dataclass
class Recording:
    """One profiler output: a trace file, an ``*_ascend_pt`` folder, an nsys export.

    Attributes:
        format: ``"kineto"``, ``"ascend"``, ``"nsys"``, or another that is only named.
        path: relative to the checked directory.
        clock: of all times here.
        window: start and end of what was recorded, by the file's own account; None where it does not say.
        name: what it is of.
        tally: counts.
        device_busy: for each device that the file tells apart (a key that is unique in the file), the merged intervals
            of device work; merged so coarsely, if need be, that memory stays bounded (see the reader).
        physical: for each key of ``device_busy`` the physical identity (UUID), where the file has one.
        device_expected: whether device activity was asked for; None where the file does not say.
        metadata: the ``profwin`` entry of the trace, or other JSON values worth keeping.
        findings: what is wrong with the file itself.
    """

    format: str
    path: str
    clock: Clock
    window: tuple[int, int] | None = None
    name: Name = field(default_factory=Name)
    tally: Tally = field(default_factory=Tally)
    device_busy: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    physical: dict[str, str] = field(default_factory=dict)
    device_expected: bool | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


if TYPE_CHECKING:
    from typing import Protocol

    class Format(Protocol):
        """One module of ``formats``."""

        def recognise(self, path: str, head: bytes) -> bool:
            """Say by its first bytes (inflated, at most 64 KiB), never by its name, if a file is of this format."""

        def read(self, root: str, path: str) -> Recording:
            """Read a file in fixed memory. Never raises for what is in it: damage is a finding. OSError passes."""

        def slices(self, root: str, path: str) -> Iterator[Slice]:
            """Yield the slices of a file, in its order, in fixed memory; stop where it is damaged."""
