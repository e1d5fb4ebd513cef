"""Records: the lines of a journal as typed values, read and never trusted."""

from __future__ import annotations

import os
import stat
from typing import Annotated, Any, TypeAlias

import msgspec

from profwin.journal import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LONGEST_LINE", "Record", "open_regular", "read_records"]

LONGEST_LINE = 1 << 20
"""Bytes of the longest line that is taken for a record; profwin writes none of a hundredth of that."""

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


class Lost(Record):
    """A lock file was deleted or replaced."""

    device: str
    collection: Number | None = None


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
    | Lost | Paused | Resumed | Finding | End
)  # fmt: skip

_STRICT = msgspec.json.Decoder(Known)
_LOOSE = msgspec.json.Decoder()


def open_regular(path: str) -> int:
    """Open a regular file for reading and return its descriptor. Never blocks.

    Raises:
        OSError: it is something else, or cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("not a regular file")
    return descriptor


def read_records(path: str, report: Callable[[str, int, str], None]) -> Iterator[tuple[int, int, Record]]:
    """Yield the number of each line, its length and its record, in file order and fixed memory.

    Args:
        path: of the file.
        report: called with a word, the number of the line, and what is wrong, for each line that is not yielded as it
            stands: ``"torn"`` (not JSON), ``"foreign"`` (JSON, but no record), ``"wrong"`` (a known kind with missing
            or wrong fields), ``"kind"`` and ``"field"`` (unknown ones: of a newer version), ``"cut"`` (the last line
            has no newline, as a killed process's may).

    Raises:
        OSError: the file cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        number, skipping = 0, False
        while line := file.readline(LONGEST_LINE):
            number += not skipping
            whole = line.endswith(b"\n")
            if skipping or (not whole and len(line) == LONGEST_LINE):
                if not skipping:
                    report("torn", number, f"a line of over {LONGEST_LINE} bytes")
                skipping = not whole
                continue
            if not whole:
                report("cut", number, f"{len(line)} bytes without a newline at the end")
                return
            try:
                yield number, len(line), _STRICT.decode(line)
            except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError, RecursionError):
                record = _again(line, number, report)
                if record is not None:
                    yield number, len(line), record


def _again(line: bytes, number: int, report: Callable[[str, int, str], None]) -> Record | None:
    """Say what is wrong with a line, and return what of it can be used."""
    try:
        value = _LOOSE.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        report("torn", number, str(error))
        return None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        report("foreign", number, "no object with a kind")
        return None
    kind = value["kind"]
    if kind not in FIELDS:
        report("kind", number, kind)
        return None
    known = {"kind", "t", *FIELDS[kind]}
    unknown = [name for name in value if name not in known]
    try:
        # A field that is null counts as left out.
        record: Record = msgspec.convert({key: value[key] for key in known if value.get(key) is not None}, Known)
    except (msgspec.ValidationError, RecursionError) as error:
        report("wrong", number, f"{kind}: {error}")
        return None
    if unknown:
        report("field", number, f"{kind}: {', '.join(sorted(unknown)[:5])}")
    return record
