"""The database of an `*_ascend_pt` folder's db export."""

from __future__ import annotations

from bisect import bisect_right

from profwin.evidence.formats.ascend_contents import Contents
from profwin.evidence.formats.ascend_tables import DEVICE, HOST, only_device, times
from profwin.evidence.formats.busy import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.database import Database
    from profwin.evidence.model import Tally

__all__ = ["read_database"]

_STEPS, _DEVICES = 10_000, 1024
_DEFAULT_END = 30 * 60 * 1_000_000_000
"""CANN writes this long a session where it does not know the end."""


def read_database(database: Database, tally: Tally) -> Contents:
    """Read it in fixed memory. Raises ``sqlite3.DatabaseError`` where it is damaged."""
    found = Contents()
    for uid, name in database.rows("HOST_INFO", "hostUid", "hostName", where="LIMIT 1"):
        found.host = (str(uid) if uid is not None else "", name if isinstance(name, str) else "")
    for start, end in database.rows("SESSION_TIME_INFO", "startTimeNs", "endTimeNs", where="LIMIT 1"):
        session = times(start, end)
        if session and session[1] - session[0] != _DEFAULT_END:
            found.session = session
    steps = sorted(
        (*step, str(number))
        for number, start, end in database.rows("STEP_TIME", "id", "startNs", "endNs", where=f"LIMIT {_STEPS}")
        if (step := times(start, end))
    )
    starts = [start for start, _, _ in steps]
    counts = [0] * len(steps)
    only = only_device(database)
    for kind in DEVICE:
        for begin, finish, device in database.rows(kind, "startNs", "endNs", "deviceId"):
            both = times(begin, finish)
            if both is None:
                found.bad += 1
                continue
            start, end = both
            tally.device_slices += 1
            _count(tally, kind)
            first, last = found.extent or (start, end)
            found.extent = min(first, start), max(last, end)
            number = str(device) if isinstance(device, int) and device >= 0 else only
            if number in found.busy or len(found.busy) < _DEVICES:
                found.busy.setdefault(number, Busy()).add(start, end)
            index = bisect_right(starts, start) - 1
            if kind == "TASK" and index >= 0 and start < steps[index][1]:
                counts[index] += 1
    for kind in HOST:
        for begin, finish in database.rows(kind, "startNs", "endNs"):
            if times(begin, finish):
                _count(tally, kind)
            else:
                found.bad += 1
    found.steps = {number: count for (_, _, number), count in zip(steps, counts, strict=True)}
    return found


def _count(tally: Tally, kind: str) -> None:
    tally.events += 1
    tally.slices += 1
    tally.categories[kind] = tally.categories.get(kind, 0) + 1
