"""What an nsys export says about its session: times, host, rank, and what went wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profwin.evidence import codes_nsys as codes
from profwin.evidence.finding import Finding
from profwin.evidence.formats.nsys_rows import whole
from profwin.evidence.model import Name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.evidence.formats.database import Database

__all__ = ["Session", "findings", "read_session"]

_TEXT = 500
_LIMIT = 20
"""Findings of one kind that are listed one by one."""
_WARNING, _ERROR = 2, 3
_PRODUCED = re.compile(r"Number of CUPTI events produced:\s*(\d{1,18})")
_COLLECTED = re.compile(r"Number of CUDA events collected:\s*(\d{1,18})")
_LOST = re.compile(
    r"\b(lost|dropped|discarded|overflow|incomplete|truncated|not all (the )?(events|data))\b", re.IGNORECASE
)
_VARIABLE = re.compile(r'^(RANK|WORLD_SIZE)="?(\d{1,9})"?$')


@dataclass
class Session:
    """The session's account of itself; None where it gives none.

    Attributes:
        wall: start, ns since 1970; the times of events count from there.
        duration: ns.
        host: its name.
        cuda: whether CUDA activity was asked for.
        name: rank and world size, from the environment of the process that nsys started.
        metadata: versions, and the start on the boot clock.
    """

    wall: int | None = None
    duration: int | None = None
    host: str = ""
    cuda: bool | None = None
    name: Name = field(default_factory=Name)
    metadata: dict[str, Any] = field(default_factory=dict)


def read_session(database: Database) -> Session:
    """Gather it from whatever tables there are. Of the environment only the rank is looked at."""
    told = Session()
    columns = ("utcEpochNs", "systemClockNs")
    for wall, boot in database.rows("TARGET_INFO_SESSION_START_TIME", *columns, where="LIMIT 1"):
        told.wall = whole(wall)
        if whole(boot) is not None:
            told.metadata["boot_start"] = boot
    for (duration,) in database.rows("ANALYSIS_DETAILS", "duration", where="LIMIT 1"):
        if isinstance(duration, int) and duration >= 0:
            told.duration = duration
    for name, value in database.rows("TARGET_INFO_SYSTEM_ENV", "name", "value", where="LIMIT 10000"):
        if name == "Hostname" and isinstance(value, str):
            told.host = value[:_TEXT]
    _read_capture(database, told)
    for name, value in database.rows("META_DATA_EXPORT", "name", "value", where="LIMIT 10000"):
        if name in ("EXPORT_SCHEMA_VERSION", "EXPORT_PRODUCT_VERSION") and isinstance(value, str):
            told.metadata[name.removeprefix("EXPORT_").lower()] = value[:_TEXT]
    return told


def _read_capture(database: Database, told: Session) -> None:
    """Read what was asked for, and the rank."""
    variables: dict[str, int] = {}
    for name, value in database.rows("META_DATA_CAPTURE", "name", "value", where="LIMIT 10000"):
        if name == "CAPTURE_EVENT_TYPE":
            told.cuda = told.cuda is True or value == "Cuda"
        elif isinstance(name, str) and name.endswith("ENVIRONMENT_VARIABLE") and isinstance(value, str):
            found = _VARIABLE.match(value)
            if found:
                variables[found[1]] = int(found[2])
    if variables:
        told.name = Name(rank=variables.get("RANK"), world=variables.get("WORLD_SIZE"), source="metadata")


def findings(database: Database, path: str) -> list[Finding]:
    """Return what the export says about itself that somebody should know."""
    found = []
    for name, value in database.rows("META_DATA_EXPORT", "name", "value", where="LIMIT 10000"):
        if name in ("EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT") and value:
            found.append(
                Finding(codes.FILTERED, f"{str(name).removeprefix('EXPORT_PARAM_')}: {str(value)[:_TEXT]}", path)
            )
    produced: list[int] = []
    collected: list[int] = []
    listed: dict[str, int] = {}
    rows = database.rows("DIAGNOSTIC_EVENT", "severity", "text")
    for number, (severity, text) in enumerate(rows, 1):
        if not isinstance(text, str):
            continue
        for pattern, counts in ((_PRODUCED, produced), (_COLLECTED, collected)):
            match = pattern.search(text)
            if match:
                counts.append(int(match[1]))
        if severity not in (_WARNING, _ERROR):
            continue
        code = codes.LOSS if _LOST.search(text) else codes.DIAGNOSTIC_WARNING
        code = codes.DIAGNOSTIC_ERROR if severity == _ERROR and code is not codes.LOSS else code
        listed[code.name] = listed.get(code.name, 0) + 1
        if listed[code.name] <= _LIMIT:
            found.append(Finding(code, text[:_TEXT], path, f"row {number} of DIAGNOSTIC_EVENT"))
    if produced and sum(collected) < sum(produced):
        code = codes.FEWER_COLLECTED if sum(collected) else codes.NONE_COLLECTED
        detail = f"{sum(produced)} produced, {sum(collected)} collected"
        found.append(Finding(code, detail, path, data={"produced": sum(produced), "collected": sum(collected)}))
    return found
