"""Counters of an `*_ascend_pt` folder's database: what was measured of an NPU from time to time."""

from __future__ import annotations

from typing import NamedTuple

from profwin.evidence.formats.ascend_tables import has, only_device, whole
from profwin.evidence.model import Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database

__all__ = ["table_values"]


class _Table(NamedTuple):
    """A table of values.

    Attributes:
        values: columns, each with its unit.
        parts: columns that say of what the values are; ``type`` and ``mode`` are numbers of texts.
    """

    name: str
    values: dict[str, str]
    parts: tuple[str, ...] = ()


_TABLES = (
    _Table("AICORE_FREQ", {"freq": "MHz"}),
    _Table("NPU_MEM", {"ddr": "bytes", "hbm": "bytes"}, ("type",)),
    _Table("HBM", {"bandwidth": "bytes/s"}, ("hbmId", "type")),
    _Table("DDR", {"read": "bytes/s", "write": "bytes/s"}),
    _Table("LLC", {"hitRate": "%", "throughput": "bytes/s"}, ("llcId", "mode")),
    _Table("ACC_PMU", dict.fromkeys(("readBwLevel", "writeBwLevel", "readOstLevel", "writeOstLevel"), ""), ("accId",)),
    _Table("SOC_BANDWIDTH_LEVEL", dict.fromkeys(("l2BufferBwLevel", "mataBwLevel"), "")),
)
_TEXTS = ("type", "mode")
_LARGEST = 1 << 63


def table_values(database: Database) -> Iterator[Slice]:
    """Yield the values of all tables, each at its time."""
    strings, only = has(database, "STRING_IDS", "id", "value"), only_device(database)
    for table in _TABLES:
        if not has(database, table.name, "timestampNs"):
            continue
        name = database.find(table.name)
        known = database.tables[name or ""]
        chosen = [
            f't."{column}"' if column in known else "NULL" for column in ("deviceId", *table.parts, *table.values)
        ]
        joined = next((part for part in table.parts if part in _TEXTS and part in known and strings), "")
        if joined:
            chosen[1 + table.parts.index(joined)] = f'coalesce(s.value, t."{joined}")'
        join = f' LEFT JOIN "{database.find("STRING_IDS")}" s ON s.id = t."{joined}"' if joined else ""
        for time, device, *rest in database.query(f'SELECT t.timestampNs, {", ".join(chosen)} FROM "{name}" t{join}'):
            at = whole(time)
            if at is None or at < 0:
                continue
            prefix = " ".join(str(each)[:40] for each in (table.name, *rest[: len(table.parts)]) if each is not None)
            for (column, unit), value in zip(table.values.items(), rest[len(table.parts) :], strict=True):
                if isinstance(value, int | float) and abs(value) < _LARGEST:
                    label = f"NPU {only if device is None else device} {prefix} {column}{unit and f' {unit}'}"
                    yield Slice(column, at, at, label, True, table.name, "counter", value=value)
