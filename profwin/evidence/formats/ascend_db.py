"""The database of an `*_ascend_pt` folder's db export."""

from __future__ import annotations

from bisect import bisect_right

from profwin.evidence.formats.ascend_contents import Contents
from profwin.evidence.formats.busy import Busy
from profwin.evidence.model import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database
    from profwin.evidence.model import Tally

__all__ = ["database_slices", "read_database"]

_HOST = ("PYTORCH_API", "CANN_API", "MSTX_EVENTS")
_DEVICE = ("TASK", "COMMUNICATION_OP")
_STEPS, _DEVICES = 10_000, 1024
_DEFAULT_END = 30 * 60 * 1_000_000_000
"""CANN writes this long a session where it does not know the end."""


def read_database(database: Database, tally: Tally) -> Contents:
    """Read it in fixed memory. Raises ``sqlite3.DatabaseError`` where it is damaged."""
    found = Contents()
    for uid, name in database.rows("HOST_INFO", "hostUid", "hostName", where="LIMIT 1"):
        found.host = (str(uid) if uid is not None else "", name if isinstance(name, str) else "")
    for start, end in database.rows("SESSION_TIME_INFO", "startTimeNs", "endTimeNs", where="LIMIT 1"):
        if _valid(start, end) and end - start != _DEFAULT_END:
            found.session = (start, end)
    steps = sorted(
        (start, end, str(number))
        for number, start, end in database.rows("STEP_TIME", "id", "startNs", "endNs", where=f"LIMIT {_STEPS}")
        if _valid(start, end)
    )
    starts = [start for start, _, _ in steps]
    counts = [0] * len(steps)
    for kind in _DEVICE:
        for start, end, device in database.rows(kind, "startNs", "endNs", "deviceId"):
            if not _valid(start, end):
                found.bad += 1
                continue
            tally.device_slices += 1
            _count(tally, kind)
            first, last = found.extent or (start, end)
            found.extent = min(first, start), max(last, end)
            number = str(device) if isinstance(device, int) and device >= 0 else ""
            if number in found.busy or len(found.busy) < _DEVICES:
                found.busy.setdefault(number, Busy()).add(start, end)
            index = bisect_right(starts, start) - 1
            if kind == "TASK" and index >= 0 and start < steps[index][1]:
                counts[index] += 1
    for kind in _HOST:
        for start, end in database.rows(kind, "startNs", "endNs"):
            if _valid(start, end):
                _count(tally, kind)
            else:
                found.bad += 1
    found.steps = {number: count for (_, _, number), count in zip(steps, counts, strict=True)}
    return found


def database_slices(database: Database) -> Iterator[Slice]:
    """Yield tasks and communication of the device, then calls of the host."""
    strings = database.find("STRING_IDS")
    usable = strings is not None and {"id", "value"} <= set(database.tables[strings])
    for kind, track in (
        ("TASK", "streamId"),
        ("COMMUNICATION_OP", "groupName"),
        *((host, "globalTid") for host in _HOST),
    ):
        table = database.find(kind)
        if table is None:
            continue
        known = database.tables[table]
        chosen = [f't."{column}"' if column in known else "NULL" for column in ("startNs", "endNs", "deviceId", track)]
        joins = ""
        # A task has its name in the table of what it computes; the others in a column of their own.
        name = next((column for column in ("name", "opName", "message") if column in known), "")
        if kind == "TASK" and usable:
            joins, identifier = _task_name(database)
        else:
            identifier = f't."{name}"' if name else ""
        if identifier and usable:
            joins += f' LEFT JOIN "{strings}" s ON s.id = {identifier}'
        for start, end, device, row, text in database.query(
            f'SELECT {", ".join(chosen)}, {"s.value" if identifier and usable else "NULL"} FROM "{table}" t{joins}'
        ):
            if _valid(start, end):
                place = f"NPU {device} {track} {row}" if kind in _DEVICE else f"{kind} {row}"
                yield Slice(text if isinstance(text, str) else kind, start, end, place, kind in _DEVICE, kind)


def _task_name(database: Database) -> tuple[str, str]:
    table, tasks = database.find("COMPUTE_TASK_INFO"), database.find("TASK")
    if table is None or tasks is None:
        return "", ""
    if "globalTaskId" not in database.tables[tasks] or not {"globalTaskId", "name"} <= set(database.tables[table]):
        return "", ""
    return f' LEFT JOIN "{table}" c ON c.globalTaskId = t.globalTaskId', "c.name"


def _valid(start: object, end: object) -> bool:
    return isinstance(start, int) and isinstance(end, int) and 0 <= start <= end


def _count(tally: Tally, kind: str) -> None:
    tally.events += 1
    tally.slices += 1
    tally.categories[kind] = tally.categories.get(kind, 0) + 1
