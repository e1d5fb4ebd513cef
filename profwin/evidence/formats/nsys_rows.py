"""Rows of nsys tables, as one kind of value."""

from __future__ import annotations

import heapq
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database

__all__ = [
    "CALL_TABLES", "DEVICE_TABLES", "RANGE_TYPES", "Row", "call_track", "device_keys", "device_rows", "host_rows",
    "process_of", "ranges", "short", "whole",
]  # fmt: skip

DEVICE_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)  # fmt: skip
CALL_TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
RANGE_TYPES = (59, 60)
"""Types of NVTX events that are ranges: push and pop, start and end."""
_LONGEST, _OPEN, _NAME = 256, 100, 500


class Row(NamedTuple):
    """One event; times in ns since the start of the session, both 0 where ``valid`` is false."""

    kind: str
    number: int
    name: str
    start: int
    end: int
    valid: bool
    process: int
    thread: int
    device: object
    track: str


def process_of(identifier: int) -> int:
    """Return the process id inside a global process or thread id."""
    return (identifier >> 24) & 0xFFFFFF


def whole(value: object) -> int | None:
    """Return a value that is a whole number, else None: columns of sqlite hold whatever was put there."""
    return value if isinstance(value, int) else None


def short(table: str) -> str:
    """Return a table's name without what all have."""
    return table.removeprefix("CUPTI_ACTIVITY_KIND_")


def call_track(thread: object) -> str:
    """Return the name of a thread's row of CUDA calls."""
    return f"pid {process_of(whole(thread) or 0)} thread {(whole(thread) or 0) & 0xFFFFFF} CUDA"


def device_rows(database: Database) -> Iterator[Row]:
    """Yield kernels, copies and the like."""
    for kind in DEVICE_TABLES:
        columns = ("start", "end", "globalPid", "deviceId", "streamId")
        for number, (start, end, process, device, stream, *names) in enumerate(
            _named(database, kind, columns, ("shortName", "demangledName", "mangledName")), 1
        ):
            name = next((text for text in names if text), short(kind).lower())
            yield _row(kind, number, name, start, end, process, None, device, f"stream {whole(stream)}")


def host_rows(database: Database) -> Iterator[Row]:
    """Yield CUDA calls and NVTX ranges; those without an end are left to `ranges`."""
    for kind in CALL_TABLES:
        columns = ("start", "end", "globalTid")
        for number, (start, end, thread, name) in enumerate(_named(database, kind, columns, ("nameId",)), 1):
            yield _row(kind, number, name or kind, start, end, None, thread, None, call_track(thread))
    for row in _nvtx(database):
        if row.end >= 0:
            yield row


def ranges(database: Database) -> tuple[list[Row], list[Row]]:
    """Return the longest NVTX ranges, in order of time, and the first of those that have no end."""
    longest: list[tuple[int, int, Row]] = []
    opened: list[Row] = []
    for number, row in enumerate(_nvtx(database)):
        if row.end < 0:
            opened += [row._replace(name=row.name[:_NAME])] if len(opened) < _OPEN else []
        elif row.valid:
            entry = (row.end - row.start, -number, row._replace(name=row.name[:_NAME]))
            if len(longest) < _LONGEST:
                heapq.heappush(longest, entry)
            else:
                heapq.heappushpop(longest, entry)
    return sorted((row for _, _, row in longest), key=lambda row: (row.start, row.end)), opened


def device_keys(database: Database) -> dict[tuple[int, object], str]:
    """Map process and CUDA ordinal to the UUID where the export has it, else to the number of the physical device."""
    uuids = {}
    for number, uuid in database.rows("TARGET_INFO_GPU", "id", "uuid", where="LIMIT 4096"):
        if isinstance(uuid, str) and uuid:
            uuids[number] = _uuid(uuid)
    keys: dict[tuple[int, object], str] = {}
    columns = ("pid", "cudaId", "gpuId", "uuid")
    for process, ordinal, number, uuid in database.rows("TARGET_INFO_CUDA_DEVICE", *columns, where="LIMIT 65536"):
        if isinstance(process, int) and isinstance(ordinal, int):
            own = _uuid(uuid) if isinstance(uuid, str) and uuid else uuids.get(number)
            keys[process, ordinal] = own or (f"gpu {number}" if isinstance(number, int) else f"gpu of {process}")
    return keys


def _uuid(text: str) -> str:
    return text if text.startswith(("GPU-", "MIG-")) else "GPU-" + text


def _nvtx(database: Database) -> Iterator[Row]:
    """Yield ranges; ``end`` is -1 where there is none."""
    table = database.find("NVTX_EVENTS")
    if table is None:
        return
    typed = "eventType" in database.tables[table]
    columns = ("start", "end", "globalTid", "eventType", "text")
    for number, (start, end, thread, kind, text, name) in enumerate(
        _named(database, "NVTX_EVENTS", columns, ("textId",)), 1
    ):
        if typed and kind not in RANGE_TYPES:
            continue
        named = str(text or name or "?")
        track = f"pid {process_of(whole(thread) or 0)} thread {(whole(thread) or 0) & 0xFFFFFF} NVTX"
        if end is None and isinstance(start, int):
            yield Row("NVTX_EVENTS", number, named, start, -1, True, 0, whole(thread) or 0, None, track)
        else:
            yield _row("NVTX_EVENTS", number, named, start, end, None, thread, None, track)


def _named(
    database: Database, name: str, columns: tuple[str, ...], identifiers: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """Yield columns of a table, and after them the texts that other columns name in StringIds."""
    table, strings = database.find(name), database.find("StringIds")
    if table is None:
        return
    known = database.tables[table]
    chosen = [f't."{column}"' if column in known else "NULL" for column in columns]
    joins = []
    usable = strings is not None and {"id", "value"} <= set(database.tables[strings])
    for number, identifier in enumerate(identifiers):
        if usable and identifier in known:
            chosen.append(f"s{number}.value")
            joins.append(f'LEFT JOIN "{strings}" s{number} ON s{number}.id = t."{identifier}"')
        else:
            chosen.append("NULL")
    yield from database.query(f'SELECT {", ".join(chosen)} FROM "{table}" t {" ".join(joins)}')


def _row(
    kind: str, number: object, name: object, start: object, end: object, process: object, thread: object,
    device: object, track: str,
) -> Row:  # fmt: skip
    valid = isinstance(start, int) and isinstance(end, int) and 0 <= start <= end
    return Row(
        short(kind),
        whole(number) or 0,
        name if isinstance(name, str) else "?",
        start if valid and isinstance(start, int) else 0,
        end if valid and isinstance(end, int) else 0,
        valid,
        process_of(whole(process) or 0),
        whole(thread) or 0,
        whole(device),
        track,
    )
