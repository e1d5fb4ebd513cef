"""Reader of nsys sqlite exports: nothing about tables and columns is assumed, for they differ between versions."""

from __future__ import annotations

import os
import sqlite3

from profwin.evidence import codes_files
from profwin.evidence import codes_nsys as codes
from profwin.evidence.finding import Finding
from profwin.evidence.formats import nsys_session as session
from profwin.evidence.formats.busy import Busy
from profwin.evidence.formats.database import MAGIC, missing_bytes, open_database
from profwin.evidence.formats.names import combined, name_of
from profwin.evidence.formats.nsys_arrows import arrows
from profwin.evidence.formats.nsys_counts import count_rows
from profwin.evidence.formats.nsys_launches import count_launches
from profwin.evidence.formats.nsys_rows import (
    DEVICE_TABLES,
    call_track,
    device_keys,
    device_rows,
    host_rows,
    process_of,
    ranges,
)
from profwin.evidence.model import Clock, Recording, Slice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.database import Database

__all__ = ["read", "recognise", "slices"]

_MARKS = (
    b"CUPTI_ACTIVITY_KIND_",
    b"TARGET_INFO_SESSION_START_TIME",
    b"NVTX_EVENTS",
    b"META_DATA_EXPORT",
    b"ENUM_NSYS_",
)
_TABLES = ("TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", "META_DATA_CAPTURE", "NVTX_EVENTS", "ANALYSIS_DETAILS")
_COVERED = 0.1
_IDLE = 10_000_000_000


def recognise(path: str, head: bytes) -> bool:
    """Say whether a file is an sqlite database with tables of nsys."""
    if not head.startswith(MAGIC):
        return False
    if any(mark in head for mark in _MARKS):
        return True
    try:
        with open_database(path) as database:
            return any(database.find(name) for name in (*_TABLES, *DEVICE_TABLES))
    except (sqlite3.DatabaseError, OSError):
        return False


def read(root: str, path: str) -> Recording:
    """Read an export. Never raises for what is in it; OSError passes."""
    recording = Recording("nsys", path, Clock("unknown"))
    whole = os.path.join(root, path)
    missing = missing_bytes(whole)
    if missing:
        recording.findings.append(Finding(codes.HALF, f"{missing} bytes are missing", path))
        return recording  # SQLite refuses it
    try:
        with open_database(whole) as database:
            _read(database, recording)
    except sqlite3.DatabaseError as error:
        recording.findings.append(Finding(codes.DAMAGED, f"{error}", path))
    return recording


def slices(root: str, path: str) -> Iterator[Slice]:
    """Yield device activity, CUDA calls and NVTX ranges, table by table, and arrows from calls to what they began."""
    try:
        with open_database(os.path.join(root, path)) as database:
            offset = session.read_session(database).wall or 0
            keys = device_keys(database)
            for row in device_rows(database):
                if row.valid:
                    track = f"{keys.get((row.process, row.device), _unmapped(row.process, row.device))} {row.track}"
                    yield Slice(row.name, row.start + offset, row.end + offset, track, True, row.kind)
            for row in host_rows(database):
                if row.valid:
                    yield Slice(row.name, row.start + offset, row.end + offset, row.track, False, row.kind)
            for each in arrows(database):
                called, start, track = each.called + offset, each.start + offset, call_track(each.thread)
                yield Slice("launch", called, called, track, False, "launch", "flow-start", each.number)
                device = keys.get((each.process, each.device), _unmapped(each.process, each.device))
                track = f"{device} stream {each.stream}"
                yield Slice("launch", start, start, track, True, "launch", "flow-end", each.number)
    except sqlite3.DatabaseError:
        return


def _read(database: Database, recording: Recording) -> None:
    path, found = recording.path, recording.findings
    if database.log == "interrupted":
        found.append(Finding(codes.INTERRUPTED, "what it had not finished is left out", path, "-journal"))
    elif database.log == "unread":
        found.append(Finding(codes.LOG_UNREAD, "its rows are not counted", path, "-wal"))
    damage = database.check()
    if damage:
        found.append(Finding(codes.DAMAGED, damage, path))
    told = session.read_session(database)
    offset = told.wall or 0
    if told.wall is not None:
        recording.clock = Clock("wall", told.host)
    else:
        found.append(Finding(codes_files.NO_CLOCK, "no TARGET_INFO_SESSION_START_TIME", path))
    if told.duration is not None:
        recording.window = (offset, offset + told.duration)
    recording.name = combined(name_of(path.replace(os.sep, "/")), told.name)
    recording.device_expected = told.cuda
    recording.metadata |= told.metadata
    found += session.findings(database, path)

    extent = _read_rows(database, recording, offset)
    count_launches(database, recording.tally)
    _judge(database, recording, told, extent)


def _read_rows(database: Database, recording: Recording, offset: int) -> tuple[int, int] | None:
    """Count all rows, gather busy time; return the first and last moment of any event."""
    counts, keys = count_rows(database, recording.tally), device_keys(database)
    busy: dict[str, Busy] = {}
    for (process, device), union in counts.busy.items():
        # Two processes may have worked on one device.
        busy.setdefault(keys.get((process, device), _unmapped(process, device)), Busy()).update(union)
    for key in sorted(busy):
        recording.device_busy[key] = [(start + offset, end + offset) for start, end in busy[key].merged()]
    recording.physical = {key: key for key in recording.device_busy if key.startswith(("GPU-", "MIG-"))}
    if counts.bad:
        detail, data = f"{counts.bad} rows", {"rows": counts.bad}
        recording.findings.append(Finding(codes.BAD_TIMES, detail, recording.path, counts.where, data))
    return counts.extent


def _judge(database: Database, recording: Recording, told: session.Session, extent: tuple[int, int] | None) -> None:
    path, tally, found = recording.path, recording.tally, recording.findings
    longest, opened = ranges(database)
    offset = told.wall or 0
    recording.metadata["ranges"] = [
        {"name": row.name, "start": row.start + offset, "end": row.end + offset, "pid": process_of(row.thread)}
        for row in longest
    ]
    if opened:
        detail = f"{len(opened)} ranges, the first named {opened[0].name!r}"
        found.append(Finding(codes.RANGE_OPEN, detail, path, f"row {opened[0].number} of NVTX_EVENTS"))
    part = False
    if extent is None:
        found.append(Finding(codes_files.NO_EVENTS, f"{len(database.tables)} tables", path))
    elif told.duration is not None:
        covered = extent[1] - extent[0]
        part = told.duration - covered > _IDLE and covered < _COVERED * told.duration
        if part:
            detail = f"{covered / 1e9:.3f} s of {told.duration / 1e9:.3f} s hold events"
            found.append(
                Finding(codes.SESSION_LONGER, detail, path, data={"covered": covered, "session": told.duration})
            )
    if told.cuda is not False and not any(database.find(name) for name in DEVICE_TABLES):
        found.append(Finding(codes.NO_DEVICE_TABLES, "no CUPTI_ACTIVITY_KIND_KERNEL or any like it", path))
    elif told.cuda and extent is not None and not tally.device_slices:
        found.append(Finding(codes_files.NO_DEVICE_EVENTS, f"{tally.events} events", path))
    if part or any(finding.code is codes.FILTERED for finding in found):
        return  # then launches and kernels are cut off at both ends
    if tally.missing_at_head:
        detail = f"{tally.missing_at_head} launches before the first that has its kernel, of {tally.launches}"
        found.append(Finding(codes_files.MISSING_AT_HEAD, detail, path, data={"launches": tally.missing_at_head}))
    elif tally.launches_without_kernel:
        detail = f"{tally.launches_without_kernel} of {tally.launches} launches"
        found.append(Finding(codes_files.LAUNCHES_WITHOUT_KERNELS, detail, path))


def _unmapped(process: int, device: object) -> str:
    return f"pid {process} device {device}"
