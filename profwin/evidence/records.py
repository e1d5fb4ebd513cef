"""Records: the kinds of records of a journal, as typed values."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

__all__ = ["Known", "Record"]

# Bounds keep what is computed from the values within 64 bits: a time or a step beyond them is no record of profwin.
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Record(msgspec.Struct, tag_field="kind", tag=str.lower, forbid_unknown_fields=True, gc=False):
    """One line; the attributes are the fields of its kind in `profwin.journal.FIELDS`."""

    t: Time


class Process(Record, gc=True):
    """The process that writes the journal: the first line."""

    schema: Number
    wall: Time
    run: str
    pid: Number
    boot: str
    attempt: Number = 0
    start: Number | None = None
    host: str = ""
    uid: Number | None = None
    role: str | None = None
    rank: Number | None = None
    world: Number | None = None
    root: bool = False
    settings: dict[str, Any] = {}


class Step(Record):
    """It learnt or published a step."""

    side: str
    step: Number
    selected: bool
    version: Number | None = None
    generated_with: tuple[Number, ...] = ()


class Enter(Record):
    """A window, stage or span begins."""

    id: Number
    what: str
    name: str
    step: Number | None = None
    occurrence: Number = 1
    role: str | None = None
    thread: Number | None = None
    site: str | None = None
    devices: tuple[str, ...] = ()
    collection: Number | None = None
    token: str | None = None


class Exit(Record):
    """It has ended."""

    id: Number
    status: str
    error: str | None = None


class Open(Record):
    """A collection begins."""

    collection: Number
    purpose: str
    name: str
    step: Number
    occurrence: Number = 1
    segment: Number = 1
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    waited: Seconds = 0.0
    version: Number | None = None
    unlocked: bool = False


class Close(Record):
    """It has ended."""

    collection: Number
    reason: str
    seconds: Seconds = 0.0
    error: str | None = None


class Join(Record):
    """An interval is recorded on by another collection."""

    id: Number
    collection: Number


class Skip(Record):
    """An interval runs unrecorded."""

    id: Number
    reason: str
    device: str | None = None
    holder: str | None = None
    waited: Seconds = 0.0
    detail: str | None = None


class Export(Record):
    """A trace is complete, or there is none."""

    collection: Number
    backend: str = ""
    path: str | None = None
    bytes: Number | None = None
    seconds: Seconds = 0.0
    error: str | None = None
    group_timeout: Seconds | None = None


class Overlap(Record):
    """A stage began inside an open window."""

    id: Number
    stage: str
    window: str
    stage_site: str | None = None
    window_site: str | None = None


class Ask(Record):
    """An interval asks for a device."""

    id: Number
    device: str
    answer: str
    holder: str | None = None


class Asked(Record):
    """A collection was asked for its device."""

    collection: Number
    asker: Number
    purpose: str | None = None
    name: str | None = None
    step: Number | None = None


class Mark(Record):
    """An engine is about to record."""

    devices: tuple[str, ...] = ()
    processes: tuple[Number, ...] = ()


class Confirmed(Record):
    """Its stop was confirmed."""

    devices: tuple[str, ...] = ()
    processes: tuple[Number, ...] = ()


class Remote(Record):
    """Another process answered that it records, or does no more."""

    token: str
    status: str
    collection: Number | None = None
    engine: str = ""
    pid: Number | None = None
    start: Number | None = None
    boot: str | None = None
    host: str | None = None
    run: str | None = None


class Lost(Record):
    """A lock file was deleted or replaced."""

    device: str
    collection: Number | None = None


class Sync(Record):
    """New weights are on their way."""

    id: Number
    version: Number
    name: str = ""
    side: str = ""
    devices: tuple[str, ...] = ()


class Synced(Record):
    """They have arrived, or not."""

    id: Number
    status: str
    error: str | None = None


class Uneven(Record):
    """Not every step has these."""

    what: str
    name: str


class Clock(Record):
    """Another host's clock was measured."""

    boot: str
    at: Time
    offset: Time
    uncertainty: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    host: str = ""


class Paused(Record):
    """A pause begins."""


class Resumed(Record):
    """It ends."""


class Finding(Record):
    """Something that somebody should know."""

    code: str
    detail: str = ""


class End(Record):
    """The last line."""

    reason: str
    dropped: Number = 0


Known: TypeAlias = (
    Process | Step | Enter | Exit | Open | Close | Join | Skip | Export | Overlap | Ask | Asked | Mark | Confirmed
    | Remote | Lost | Sync | Synced | Uneven | Clock | Paused | Resumed | Finding | End
)  # fmt: skip
