"""Writes small traces, draws timelines of them, and reads these again."""

from __future__ import annotations

import gzip
import json
from typing import Any

from journal_builder import WALL
from perfetto_decoder import read

from profwin.evidence.timeline import draw_timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def write_trace(directory: Path, path: str, events: list[dict[str, Any]], base: int | None = WALL) -> str:
    """Write a trace of the profiler; times in the events are microseconds after the base."""
    whole = directory / path
    whole.parent.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {"schemaVersion": 1, "traceEvents": events}
    if base is not None:
        content = {"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": events}
    with gzip.open(whole, "wt") as file:
        json.dump(content, file)
    return path


def event(name: str, start: float, length: float, thread: int = 1, category: str = "cpu_op") -> dict[str, Any]:
    """Return an event with a length."""
    return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, "ts": start, "dur": length}


def draw(directory: Path, **options: Any) -> Any:
    """Draw a directory; return what is said of it, and the tracks."""
    output = directory.parent / f"{directory.name}.pftrace.gz"
    timeline = draw_timeline(str(directory), str(output), force=True, **options)
    return timeline, read(output)


def paths(tracks: Any) -> set[tuple[str, ...]]:
    """Return the names of the rows that hold anything, each after its groups."""
    return {track.path for track in tracks.values() if track.slices or track.instants}


def named(tracks: Any, *path: str) -> Any:
    """Return the one row of that name."""
    (track,) = (track for track in tracks.values() if track.path == path)
    return track
