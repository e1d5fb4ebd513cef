"""Traces as ``torch.profiler`` (Kineto) writes them, of 2021 as of today; vLLM's and SGLang's are such traces too."""

from __future__ import annotations

import os
import re

from profwin.evidence import codes_files as codes
from profwin.evidence.formats.damage import Damage
from profwin.evidence.formats.event import nanoseconds
from profwin.evidence.formats.kineto_events import CUT, Gathering
from profwin.evidence.formats.kineto_metadata import (
    base_of,
    clock_of,
    examine,
    kept,
    name_in,
    physical_of,
)
from profwin.evidence.formats.kineto_rows import DRAWN, Rows
from profwin.evidence.formats.names import combined, name_of
from profwin.evidence.formats.stream import Trace
from profwin.evidence.formats.text import Text
from profwin.evidence.model import Recording, Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["read", "recognise", "slices"]

_EVENT = re.compile(rb'"ph"\s*:\s*"')
_HEAD = re.compile(rb'"(?:traceEvents|deviceProperties)"\s*:|\A\s*\{\s*"schemaVersion"\s*:\s*\d')
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})(?!\d)')
_TAIL = 1 << 16


def recognise(path: str, head: bytes) -> bool:  # noqa: ARG001  # as all formats
    """Say by its first bytes whether a file is a JSON trace: an object with its events in it, or a list of them."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{":
        return bool(_HEAD.search(text))
    return text[:1] == b"[" and bool(_EVENT.search(head))


def read(root: str, path: str) -> Recording:
    """Read a file in fixed memory. Raises nothing for what is in it; OSError passes."""
    damage = Damage(path)
    text = Text(os.path.join(root, path), damage)
    trace = Trace(text.pieces(), damage, text.place)
    gathering = Gathering(damage)
    for batch in trace.batches():
        gathering.take(batch)
    metadata = trace.metadata
    base = base_of(metadata)
    recording = Recording(format="kineto", path=path, clock=clock_of(metadata, base, gathering.sample))
    recording.name = combined(
        name_in(metadata),
        name_of(path.replace(os.sep, "/")),
        name_in(metadata, distributed=True),
    )
    recording.metadata = kept(metadata)
    messages = examine(metadata, damage)
    gathering.finish(recording, base or 0, messages.expected)
    recording.physical = physical_of(metadata, recording.device_busy)
    if recording.clock.kind == "unknown" and recording.tally.slices and not damage.has(*CUT):
        damage.add(codes.NO_CLOCK, "there is no base time, and the times are no times of day")
    recording.findings = damage.findings()
    return recording


def slices(root: str, path: str, base: int | None = None) -> Iterator[Slice]:
    """Yield the slices of a file in its order, in fixed memory; stop where it cannot be read on.

    Args:
        root: the checked directory.
        path: relative to it.
        base: what `read` put under ``base`` into the recording's metadata; without it the file is read twice, since
            older files have it at their end.
    """
    full = os.path.join(root, path)
    if base is None:
        base = _search_base(full)
    text = Text(full, Damage(path))
    rows = Rows()
    for batch in Trace(text.pieces(), text.damage, text.place).batches():
        for event in batch:
            try:
                if event.ph == "X":
                    # The usual case, in line.
                    track, on_device = rows.track(event)
                    start, length = (
                        base + nanoseconds(bytes(event.ts)),
                        nanoseconds(bytes(event.dur)),
                    )
                    if length >= 0:
                        yield Slice(
                            event.name,
                            start,
                            start + length,
                            track,
                            on_device,
                            event.cat,
                        )
                elif event.ph in DRAWN and (found := rows.draw(event, base)) is not None:
                    yield found
            except (ValueError, OverflowError):
                continue


def _search_base(path: str) -> int:
    """Return the base time of a file; 0 where it has none. It stands before the first event or after the last."""
    found, rest, first = 0, b"", True
    for piece in Text(path, Damage("")).pieces():
        if first and (match := _BASE.search(piece.partition(b'"traceEvents"')[0])):
            return int(match[1])
        first = False
        rest = (rest + piece)[-_TAIL:]
    for match in _BASE.finditer(rest):
        found = int(match[1])
    return found
