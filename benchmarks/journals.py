"""An independent reader of the journals: it shares no code with profwin and trusts nothing that it reads.

It rebuilds, per device, the intervals in which somebody was collecting, and looks for two that overlap.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Interval", "RunRecords", "overlaps", "read_run"]


class Interval(NamedTuple):
    """A device was being recorded, from its ``open`` record to its ``close`` record.

    Attributes:
        device: the device key.
        start, end: monotonic nanoseconds; where the close is missing, the process's death.
        process: file name of the journal.
        purpose: ``"rollout"`` or ``"training"``.
        closed: whether a close record ends it.
    """

    device: str
    start: int
    end: int
    process: str
    purpose: str
    closed: bool


class RunRecords(NamedTuple):
    """What the journals of one run hold.

    Attributes:
        intervals: one for each collection and device; the device is ``""`` where a collection names none.
        skips: how many blocks ran unrecorded, by (what, reason).
        records, undecodable, truncated: lines; an undecodable one is any that is not the last of its file.
        processes: journals read.
        lost: records that say that a lock file vanished under its holder.
    """

    intervals: list[Interval]
    skips: Counter[tuple[str, str]]
    records: int
    undecodable: int
    truncated: int
    processes: int
    lost: int


def read_run(directory: str, deaths: Mapping[int, int] | None = None) -> RunRecords:
    """Read every ``*.jsonl`` below a directory.

    Args:
        directory: a run's directory, or the output directory above it.
        deaths: monotonic nanoseconds just before the kill of each killed process, by pid: its open
            intervals end there. Without it, they end at the process's last record.
    """
    run = RunRecords([], Counter(), 0, 0, 0, 0, 0)
    for parent, _directories, files in sorted(os.walk(directory)):
        for file in sorted(files):
            if file.endswith(".jsonl"):
                run = _read_process(os.path.join(parent, file), run, deaths or {})
    return run


def _read_process(path: str, run: RunRecords, deaths: Mapping[int, int]) -> RunRecords:
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    truncated = int(lines.pop() != b"")
    records, undecodable = [], 0
    for line in lines:
        try:
            record = json.loads(line)
            record["kind"], record["t"]
        except (ValueError, KeyError, TypeError):  # each line stands alone
            undecodable += 1
        else:
            records.append(record)
    if records:
        _rebuild(os.path.basename(path), records, run, deaths)
    return run._replace(
        records=run.records + len(records),
        undecodable=run.undecodable + undecodable,
        truncated=run.truncated + truncated,
        processes=run.processes + 1,
        lost=run.lost + sum(record["kind"] == "lost" for record in records),
    )


def _rebuild(process: str, records: list[dict[str, Any]], run: RunRecords, deaths: Mapping[int, int]) -> None:
    opened: dict[Any, dict[str, Any]] = {}
    entered: dict[Any, str] = {}
    skipped: list[tuple[Any, str]] = []  # a skip is written before the enter that says what it was
    for record in records:
        kind = record["kind"]
        if kind == "enter":
            entered[record["id"]] = record["what"]
        elif kind == "open":
            opened[record["collection"]] = record
        elif kind == "close":
            first = opened.pop(record["collection"])
            run.intervals.extend(_intervals(first, record["t"], process, closed=True))
        elif kind == "skip":
            skipped.append((record["id"], record["reason"]))
    for identifier, reason in skipped:
        run.skips[entered.get(identifier, "unknown"), reason] += 1
    end = max(records[-1]["t"], deaths.get(records[0].get("pid", -1), 0))
    for first in opened.values():
        run.intervals.extend(_intervals(first, end, process, closed=False))


def _intervals(first: dict[str, Any], end: int, process: str, *, closed: bool) -> Iterable[Interval]:
    for device in first.get("devices") or [""]:
        yield Interval(device, first["t"], end, process, first["purpose"], closed)


def overlaps(intervals: Iterable[Interval]) -> list[tuple[Interval, Interval]]:
    """Give the pairs of intervals of one device and two processes, the second of which began too early."""
    found = []
    last: dict[str, Interval] = {}
    for interval in sorted(intervals, key=lambda each: each.start):
        before = last.get(interval.device)
        if (
            before is not None
            and interval.start < before.end
            and interval.process != before.process
            and interval.device
        ):
            found.append((before, interval))
        if before is None or interval.end > before.end:
            last[interval.device] = interval
    return found
