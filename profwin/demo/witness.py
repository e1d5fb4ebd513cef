"""What the files of a run say: the journals' collections, and the traces with their own clocks.

Two independent sources. The journals are profwin's account; a trace's times come from the profiler that
recorded it.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import Counter
from dataclasses import dataclass, field

from profwin.journal import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Collection", "Event", "Evidence", "Trace", "gather", "read_trace"]


@dataclass
class Collection:
    """One recording, as a journal tells it; times are monotonic ns.

    Attributes:
        closed: None where the journal ends before the collection does.
        exports: the journal's records of its traces.
        offset: what makes wall-clock time of this journal's times.
    """

    role: str
    host: str
    purpose: str
    name: str
    step: int
    devices: tuple[str, ...]
    opened: int
    waited: float
    offset: int
    closed: int | None = None
    reason: str = ""
    error: str | None = None
    exports: list[dict[str, Any]] = field(default_factory=list)

    def title(self) -> str:
        """Return what it is, in words."""
        kind = "window" if self.purpose == "rollout" else "stage"
        return f"{kind} {self.name!r} of step {self.step} ({self.role})"


@dataclass(frozen=True)
class Event:
    """A record of a journal that is not a collection's, with the interval that it belongs to, if any."""

    role: str
    time: int
    record: dict[str, Any]
    name: str
    step: int


@dataclass(frozen=True)
class Trace:
    """A trace file; times are wall-clock ns, from the trace itself.

    Attributes:
        path: relative to the run's directory.
        metadata: its ``profwin`` entry, empty where there is none.
        operators: how often each operator or range is in it.
    """

    path: str
    metadata: dict[str, Any]
    started: int
    ended: int
    operators: Counter[str]


@dataclass
class Evidence:
    """Everything that a run's directory holds.

    Attributes:
        manifest: its ``steps``; empty where there is none.
    """

    collections: list[Collection]
    events: list[Event]
    traces: dict[str, Trace]
    unreadable: list[str]
    manifest: dict[str, dict[str, Any]] = field(default_factory=dict)

    def traces_of(self, collection: Collection) -> list[Trace]:
        """Return the traces of a collection that can be read."""
        paths = [record.get("path") for record in collection.exports]
        return [self.traces[path] for path in paths if path in self.traces]

    @property
    def devices(self) -> list[str]:
        """The keys of all devices that something was collected on, sorted."""
        return sorted({key for collection in self.collections for key in collection.devices})


def gather(directory: str) -> Evidence:
    """Read a run's journals and traces."""
    evidence = Evidence([], [], {}, [])
    journals = os.path.join(directory, "journal")
    # With profwin off there are none.
    for name in sorted(os.listdir(journals)) if os.path.isdir(journals) else ():
        if name.endswith(".jsonl"):
            _read_journal(os.path.join(journals, name), evidence)
    for folder, _folders, names in os.walk(directory):
        for name in sorted(names):
            if ".pt.trace.json" not in name:
                continue
            path = os.path.relpath(os.path.join(folder, name), directory)
            try:
                evidence.traces[path] = read_trace(directory, path)
            except (OSError, EOFError, ValueError, KeyError, zlib.error) as error:
                evidence.unreadable.append(f"{path}: {type(error).__name__}: {error}")
    manifest = os.path.join(directory, "manifest.json")
    if os.path.exists(manifest):
        with open(manifest, encoding="utf-8") as file:
            evidence.manifest = json.load(file)["steps"]
    evidence.collections.sort(key=lambda collection: collection.opened)
    evidence.events.sort(key=lambda event: event.time)
    return evidence


def _read_journal(path: str, evidence: Evidence) -> None:
    role, host, offset = "", "", 0
    collections: dict[Any, Collection] = {}
    records = list(read(path))
    for record in records:
        kind, time = record["kind"], record["t"]
        if kind == "process":
            role, host, offset = record.get("role") or "process", record.get("host", ""), record["wall"] - time
        elif kind == "open":
            collections[record["collection"]] = Collection(
                role=role,
                host=host,
                purpose=record["purpose"],
                name=record["name"],
                step=record["step"],
                devices=tuple(record.get("devices") or ()),
                opened=time,
                waited=record.get("waited", 0.0),
                offset=offset,
            )
        elif (collection := collections.get(record.get("collection"))) is None:
            continue
        elif kind == "close":
            collection.closed, collection.reason = time, record.get("reason", "")
            collection.error = record.get("error")
        elif kind == "export":
            collection.exports.append(record)
    evidence.collections += collections.values()
    # An interval's skip is written before its own record, so names are looked up when all records are known.
    intervals = {record["id"]: record for record in records if record["kind"] == "enter"}
    for record in records:
        interval, collection = intervals.get(record.get("id"), {}), collections.get(record.get("collection"))
        name = interval.get("name") or (collection.name if collection else "")
        step = interval.get("step", collection.step if collection else -1)
        evidence.events.append(Event(role, record["t"], record, name, step))


def read_trace(directory: str, path: str) -> Trace:
    """Read one trace.

    Raises:
        OSError, EOFError, zlib.error: the file cannot be read, or is torn.
        ValueError, KeyError: it is no trace of torch's, or holds no events.
    """
    full = os.path.join(directory, path)
    opener = gzip.open if path.endswith(".gz") else open
    with opener(full, "rt", encoding="utf-8") as file:
        content = json.load(file)
    base = int(content["baseTimeNanoseconds"])
    spans = [event for event in content["traceEvents"] if event.get("ph") == "X"]
    if not spans:
        raise ValueError("it holds no events")
    return Trace(
        path=path,
        metadata=content.get("profwin") or {},
        # The profiler's own span, from its start to its stop, is among the events.
        started=base + round(min(event["ts"] for event in spans) * 1000),
        ended=base + round(max(event["ts"] + event["dur"] for event in spans) * 1000),
        operators=Counter(event["name"] for event in spans if event.get("cat") != "Trace"),
    )
