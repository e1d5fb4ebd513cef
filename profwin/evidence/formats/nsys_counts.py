"""Counts of an nsys export's rows, and the busy time of its devices: SQLite counts, only device rows come over here."""

from __future__ import annotations

from dataclasses import dataclass, field

from profwin.evidence.formats.busy import Busy
from profwin.evidence.formats.nsys_rows import CALL_TABLES, DEVICE_TABLES, RANGE_TYPES, process_of, short, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.database import Database
    from profwin.evidence.model import Tally

__all__ = ["Counts", "count_rows"]


_DEVICES = 4096
"""Devices that are told apart."""


@dataclass
class Counts:
    """What rows there are.

    Attributes:
        extent: first and last moment of any event, ns since the start of the session; None where there is none.
        bad: rows without usable times.
        where: the first of these.
        busy: busy time of each device, by process and ordinal.
    """

    extent: tuple[int, int] | None = None
    bad: int = 0
    where: str = ""
    busy: dict[tuple[int, int | None], Busy] = field(default_factory=dict)


def count_rows(database: Database, tally: Tally) -> Counts:
    """Count kernels, copies, calls and NVTX ranges that have an end."""
    counts = Counts()
    for kind in DEVICE_TABLES:
        tally.device_slices += _count(database, kind, tally, counts)
        _gather(database, kind, counts)
    for kind in (*CALL_TABLES, "NVTX_EVENTS"):
        _count(database, kind, tally, counts)
    return counts


def _count(database: Database, kind: str, tally: Tally, counts: Counts) -> int:
    """Count one table, and return how many rows have usable times."""
    table = database.find(kind)
    if table is None:
        return 0
    known = database.tables[table]
    timed = {"start", "end"} <= set(known)
    usable = "typeof(start) = 'integer' AND typeof(end) = 'integer' AND start >= 0 AND end >= start" if timed else "0"
    start, end = ("start", "end") if timed else ("NULL", "NULL")
    where = "1"
    if kind == "NVTX_EVENTS":
        where = f"eventType IN {RANGE_TYPES}" if "eventType" in known else "1"
        where += " AND NOT (end IS NULL AND typeof(start) = 'integer')" if timed else ""
    inner = f'SELECT CASE WHEN {usable} THEN {start} END s, {end} e FROM "{table}" WHERE {where}'
    query = f"SELECT count(*), count(s), min(s), max(CASE WHEN s IS NOT NULL THEN e END) FROM ({inner})"
    ((total, good, first, last),) = database.query(query)
    if not total:
        return 0
    tally.events += total
    tally.slices += good
    tally.categories[short(kind)] = tally.categories.get(short(kind), 0) + total
    if good:
        before = counts.extent or (first, last)
        counts.extent = min(before[0], first), max(before[1], last)
    if good < total:
        counts.bad += total - good
        counts.where = counts.where or f"row {_first_bad(database, table)} of {short(kind)}"
    return int(good)


def _first_bad(database: Database, table: str) -> int:
    for number, (start, end) in enumerate(database.rows(table, "start", "end"), 1):
        if not isinstance(start, int) or not (isinstance(end, int) or end is None) or (end is not None and end < start):
            return number
    return 0


def _gather(database: Database, kind: str, counts: Counts) -> None:
    of: dict[tuple[object, object], Busy] = {}
    for start, end, process, device in database.rows(kind, "start", "end", "globalPid", "deviceId"):
        if type(start) is int and type(end) is int and 0 <= start <= end:
            busy = of.get((process, device))
            if busy is None:
                key = process_of(whole(process) or 0), whole(device)
                if key not in counts.busy and len(counts.busy) >= _DEVICES:
                    key = 0, None
                if len(of) >= _DEVICES:
                    of.clear()  # a damaged column may hold anything
                busy = of[process, device] = counts.busy.setdefault(key, Busy())
            busy.add(start, end)
