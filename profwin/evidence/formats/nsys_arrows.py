"""Arrows of an nsys export: from a CUDA call to the device's work that has the same correlation number."""

from __future__ import annotations

from typing import NamedTuple

from profwin.evidence.formats.nsys_rows import CALL_TABLES, DEVICE_TABLES, process_of, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database

__all__ = ["Arrow", "arrows"]


class Arrow(NamedTuple):
    """An arrow; times in ns since the start of the session.

    Attributes:
        number: of the arrow in this export.
        called, thread: when the call began, and in which thread.
        start, process, device, stream: when the work began, and where.
    """

    number: int
    called: int
    thread: object
    start: int
    process: int
    device: object
    stream: object


def arrows(database: Database) -> Iterator[Arrow]:
    """Yield one arrow for each piece of the device's work whose call is there: a graph's launch begins many.

    Nothing grows with the arrows: SQLite keeps what it needs for the join in files without a name.
    """
    calls = _all(database, CALL_TABLES, "globalTid >> 24 p, start s, globalTid g", "globalTid")
    work = _all(database, DEVICE_TABLES, "globalPid >> 24 p, start s, globalPid g, deviceId d, streamId i", "globalPid")
    if not calls or not work:
        return
    # Of calls that share a number the first has the arrow; the other columns are those of the row with the smallest.
    first = f"SELECT c, p, min(s) s, g FROM ({calls}) GROUP BY c, p"
    query = f"SELECT a.s, a.g, t.s, t.g, t.d, t.i FROM ({work}) t JOIN ({first}) a ON a.c = t.c AND a.p = t.p"
    for number, (called, thread, start, process, device, stream) in enumerate(database.query(query), 1):
        yield Arrow(number, called, thread, start, process_of(whole(process) or 0), whole(device), whole(stream))


def _all(database: Database, names: tuple[str, ...], columns: str, owner: str) -> str:
    """Return a query of all rows of some tables that are drawn and have a correlation number."""
    parts = []
    for name in names:
        table = database.find(name)
        wanted = {"start", "end", "correlationId", owner} | (
            {"deviceId", "streamId"} if "deviceId" in columns else set()
        )
        if table is not None and wanted <= set(database.tables[table]):
            drawn = "typeof(start) = 'integer' AND typeof(\"end\") = 'integer' AND 0 <= start AND start <= \"end\""
            parts.append(
                f'SELECT correlationId c, {columns} FROM "{table}" WHERE correlationId IS NOT NULL AND {drawn}'
            )
    return " UNION ALL ".join(parts)
