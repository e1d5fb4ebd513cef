"""Tables of an `*_ascend_pt` folder's database, and their rows as slices."""

from __future__ import annotations

from profwin.evidence.model import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database

__all__ = ["DEVICE", "HOST", "has", "only_device", "place", "table_slices", "times", "whole"]

HOST = ("PYTORCH_API", "CANN_API", "MSTX_EVENTS")
DEVICE = {"TASK": "streamId", "COMMUNICATION_OP": "groupName"}
"""Tables of the device's work, each with the column that tells its rows apart."""


def whole(value: object) -> int | None:
    """Return a number; torch_npu writes the times of PYTORCH_API as texts."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else None


def times(start: object, end: object) -> tuple[int, int] | None:
    """Return start and end, if they are such."""
    first, last = whole(start), whole(end)
    return (first, last) if first is not None and last is not None and 0 <= first <= last else None


def has(database: Database, name: str, *columns: str) -> bool:
    """Say whether there is a table with those columns."""
    table = database.find(name)
    return table is not None and set(columns) <= set(database.tables[table])


def only_device(database: Database) -> str:
    """Return the one device that the database is of, for tables without a device; empty where there are several."""
    devices = {str(device) for (device,) in database.rows("RANK_DEVICE_MAP", "deviceId", where="LIMIT 2")}
    return devices.pop() if len(devices) == 1 else ""


def place(kind: str, row: object, device: object = None, only: str = "") -> str:
    """Return the name of a row's track."""
    if kind in DEVICE:
        number = only if device is None else device
        return f"NPU{'' if number == '' else f' {number}'} {'stream' if kind == 'TASK' else 'communication'} {row}"
    if isinstance(row, int):
        return f"{kind} pid {row >> 32} thread {row & 0xFFFFFFFF}"
    return f"{kind} {row}"


def table_slices(database: Database) -> Iterator[Slice]:
    """Yield tasks and communication of the device, then calls of the host."""
    strings = database.find("STRING_IDS")
    usable = has(database, "STRING_IDS", "id", "value")
    only = only_device(database)
    for kind, row in {**DEVICE, **dict.fromkeys(HOST, "globalTid")}.items():
        table = database.find(kind)
        if table is None:
            continue
        known = database.tables[table]
        chosen = [f't."{column}"' if column in known else "NULL" for column in ("startNs", "endNs", "deviceId", row)]
        joins = ""
        # A task has its name in the table of what it computes; the others in a column of their own.
        name = next((column for column in ("name", "opName", "message") if column in known), "")
        if kind == "TASK" and usable:
            joins, identifier = _task_name(database)
        else:
            identifier = f't."{name}"' if name else ""
        if identifier and usable:
            joins += f' LEFT JOIN "{strings}" s ON s.id = {identifier}'
        for start, end, device, line, text in database.query(
            f'SELECT {", ".join(chosen)}, {"s.value" if identifier and usable else "NULL"} FROM "{table}" t{joins}'
        ):
            both = times(start, end)
            if both:
                name = text if isinstance(text, str) else kind
                yield Slice(name, *both, place(kind, line, device, only), kind in DEVICE, kind)


def _task_name(database: Database) -> tuple[str, str]:
    table = database.find("COMPUTE_TASK_INFO")
    if not has(database, "TASK", "globalTaskId") or not has(database, "COMPUTE_TASK_INFO", "globalTaskId", "name"):
        return "", ""
    return f' LEFT JOIN "{table}" c ON c.globalTaskId = t.globalTaskId', "c.name"
