"""What the torch traces of a run hold."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def load(path: Path) -> dict[str, Any]:
    """Return a trace."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        trace: dict[str, Any] = json.load(file)
    return trace


def traces(output: Path, pattern: str = "**") -> list[dict[str, Any]]:
    """Return all traces below an output directory, by name; there must be no half ones."""
    assert not list(output.glob("**/.*"))
    return [load(path) for path in sorted(output.glob(f"*/step_*/{pattern}/*.pt.trace.json*"))]


def names(trace: dict[str, Any]) -> list[str]:
    """Return the names of a trace's complete events, by time."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    return [event["name"] for event in sorted(events, key=lambda event: event["ts"])]


def extent(trace: dict[str, Any], name: str) -> tuple[int, int]:
    """Return when the only event of a name began and ended, in nanoseconds of the wall clock."""
    (event,) = [event for event in trace["traceEvents"] if event.get("name") == name and event.get("ph") == "X"]
    base = int(trace["baseTimeNanoseconds"])
    return base + int(event["ts"] * 1000), base + int((event["ts"] + event["dur"]) * 1000)
