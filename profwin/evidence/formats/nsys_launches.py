"""Launches of an nsys export, and whether each has its kernel."""

from __future__ import annotations

import re
from bisect import bisect_right

from profwin.evidence.formats.nsys_rows import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.database import Database
    from profwin.evidence.model import Tally

__all__ = ["count_launches"]

_LAUNCH = re.compile(r"^(cuda|cu)Launch(Cooperative)?Kernel(ExC|Ex)?(_|$)")
_CAPTURE = re.compile(r"^(cuda|cu)Stream(Begin|End)Capture")
_NAMES = 100_000
_CAPTURES = 10_000
"""Captures that are told apart; with more no launch is called missing."""


def count_launches(database: Database, tally: Tally) -> None:
    """Count launches, those without kernel, and how many of these come before the first that has its own.

    Launches between a stream's BeginCapture and EndCapture run no kernel, and are left out.
    """
    calls, kernels = database.find("CUPTI_ACTIVITY_KIND_RUNTIME"), database.find("CUPTI_ACTIVITY_KIND_KERNEL")
    if calls is None or kernels is None:
        return
    if not {"nameId", "correlationId", "globalTid", "start"} <= set(database.tables[calls]):
        return
    if not {"correlationId", "globalPid"} <= set(database.tables[kernels]):
        return
    launching, capturing = _names(database)
    if not launching:
        return
    captures = _captures(database, calls, capturing)
    if captures is None:
        return
    first = None
    missing: list[int] = []
    later = 0
    # The query makes an index of the kernels in a temporary file: memory does not grow with them.
    query = (
        f'SELECT r.start, r.globalTid, k.c FROM "{calls}" r '
        f'LEFT JOIN (SELECT DISTINCT correlationId c, globalPid >> 24 p FROM "{kernels}") k '
        f"ON k.c = r.correlationId AND k.p = r.globalTid >> 24 WHERE r.nameId IN ({_listed(launching)})"
    )
    for start, thread, kernel in database.query(query):
        if not isinstance(start, int) or _inside(captures.get(thread, []), start):
            continue
        tally.launches += 1
        if kernel is not None:
            first = start if first is None else min(first, start)
            continue
        tally.launches_without_kernel += 1
        if first is None or start < first:
            missing.append(start)
            if len(missing) > _NAMES:
                later += len(missing) - _NAMES // 2
                missing = sorted(missing)[: _NAMES // 2]
    if first is not None:
        tally.missing_at_head = sum(start < first for start in missing)


def _names(database: Database) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the identifiers of launching and of capturing calls in StringIds."""
    launching: list[int] = []
    capturing: list[tuple[int, str]] = []
    where = "WHERE value LIKE 'cu%Launch%Kernel%' OR value LIKE 'cu%Stream%Capture%'"
    table = database.find("StringIds")
    if table is None or not {"id", "value"} <= set(database.tables[table]):
        return launching, capturing
    for identifier, value in database.rows("StringIds", "id", "value", where=f"{where} LIMIT {_NAMES}"):
        if not isinstance(identifier, int) or not isinstance(value, str):
            continue
        if _LAUNCH.match(value):
            launching.append(identifier)
        else:
            found = _CAPTURE.match(value)
            if found:
                capturing.append((identifier, found[2]))
    return launching[:500], capturing[:500]


def _captures(
    database: Database, calls: str, capturing: list[tuple[int, str]]
) -> dict[object, list[tuple[int, str]]] | None:
    """Return begin and end of captures of each thread, in order; None where there are too many."""
    captures: dict[object, list[tuple[int, str]]] = {}
    if not capturing:
        return captures
    kinds = dict(capturing)
    query = f'SELECT start, globalTid, nameId FROM "{calls}" WHERE nameId IN ({_listed(list(kinds))})'
    for number, (start, thread, identifier) in enumerate(database.query(query)):
        if number >= 2 * _CAPTURES:
            return None
        if whole(start) is not None:
            captures.setdefault(thread, []).append((start, kinds[identifier]))
    for moments in captures.values():
        moments.sort()
    return captures


def _inside(moments: list[tuple[int, str]], start: int) -> bool:
    at = bisect_right(moments, (start, "Z")) - 1
    return at >= 0 and moments[at][1] == "Begin"


def _listed(identifiers: list[int]) -> str:
    return ", ".join(str(identifier) for identifier in identifiers)
