"""Arrows of an `*_ascend_pt` folder's database: from a call to the device's work, and between calls of the host."""

from __future__ import annotations

from itertools import count

from profwin.evidence.formats.ascend_tables import DEVICE, has, only_device, place, times, whole
from profwin.evidence.model import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database

__all__ = ["table_arrows"]

_NUMBER = "connectionId"
_CALLS = {"CANN_API": "HostToDevice", "MSTX_EVENTS": "MsTx"}
"""Tables of calls that share their number with the device's work; names of arrows as the text export has them."""
_QUEUE = 50002
"""Of ENUM_API_TYPE: what is put into the queue of tasks and taken out of it."""


def table_arrows(database: Database) -> Iterator[Slice]:
    """Yield both ends of each arrow. Of calls that share a number the first has it, so that there is one for each end.

    Nothing grows with the arrows: SQLite keeps what it needs for the joins in files without a name.
    """
    numbers, only = count(1), only_device(database)
    sources = {kind: (kind, name, _first(f'"{database.find(kind)}"')) for kind, name in _CALLS.items()}
    sources = {kind: each for kind, each in sources.items() if has(database, kind, "startNs", "globalTid", _NUMBER)}
    linked = _linked(database)
    if linked:
        sources["PYTORCH_API"] = ("PYTORCH_API", "torch_to_npu", _first(f"({linked})"))
    for target, row in DEVICE.items():
        if not has(database, target, "startNs", "endNs", row, _NUMBER):
            continue
        table = database.find(target)
        device = "t.deviceId" if has(database, target, "deviceId") else "NULL"
        for source, name, calls in sources.values():
            for start, end, number, line, began, thread in database.query(
                f'SELECT t.startNs, t.endNs, {device}, t."{row}", a.startNs, a.globalTid'
                f' FROM "{table}" t JOIN ({calls}) a ON a.{_NUMBER} = t.{_NUMBER}'
            ):
                if times(start, end):
                    ends = (began, place(source, thread)), (start, place(target, line, number, only))
                    yield from _arrow(name, *ends, next(numbers), on_device=True)
    if linked:
        yield from _between(database, linked, numbers)


def _between(database: Database, linked: str, numbers: Iterator[int]) -> Iterator[Slice]:
    """Yield arrows from where something was put into a queue, or computed forwards, to where that is taken up."""
    first = _first(f"({linked})", "type")
    for began, from_thread, kind, start, thread in database.query(
        "SELECT a.startNs, a.globalTid, a.type, t.startNs, t.globalTid"
        f" FROM ({linked}) t JOIN ({first}) a ON a.{_NUMBER} = t.{_NUMBER} AND a.startNs < t.startNs"
    ):
        name = "enqueue_to_dequeue" if kind == _QUEUE else "fwdbwd"
        ends = (began, place("PYTORCH_API", from_thread)), (start, place("PYTORCH_API", thread))
        yield from _arrow(name, *ends, next(numbers), on_device=False)


def _linked(database: Database) -> str:
    """Return a query of the framework's calls with the numbers that they have by CONNECTION_IDS."""
    if not has(database, "CONNECTION_IDS", "id", _NUMBER):
        return ""
    if not has(database, "PYTORCH_API", "startNs", "globalTid", "type", _NUMBER):
        return ""
    calls = _first(f'"{database.find("PYTORCH_API")}"', "type")
    return (
        f"SELECT i.{_NUMBER} {_NUMBER}, p.startNs startNs, p.globalTid globalTid, p.type type"
        f' FROM "{database.find("CONNECTION_IDS")}" i JOIN ({calls}) p ON p.{_NUMBER} = i.id'
    )


def _first(calls: str, *columns: str) -> str:
    """Return a query of the first call of each number: the other columns are those of the row with the smallest."""
    chosen = ", ".join((_NUMBER, "min(CAST(startNs AS INTEGER)) startNs", "globalTid", *columns))
    return f"SELECT {chosen} FROM {calls} WHERE {_NUMBER} IS NOT NULL GROUP BY {_NUMBER}"


def _arrow(
    name: str, begin: tuple[object, str], end: tuple[object, str], number: int, *, on_device: bool
) -> Iterator[Slice]:
    """Yield both ends, each a time and a track."""
    first, last = whole(begin[0]), whole(end[0])
    if first is not None and last is not None and first >= 0:
        yield Slice(name, first, first, begin[1], False, name, "flow-start", number)
        yield Slice(name, last, last, end[1], on_device, name, "flow-end", number)
