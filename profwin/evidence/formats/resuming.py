"""Where the events of a trace can be read on after damage."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.nesting import Buffer

__all__ = ["resume"]

KEPT = 256
"""Bytes that are kept of a piece without a place to go on, since one may lie across two pieces."""

_PLACE = re.compile(
    rb'(?P<event>,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts)"\s*:))'
    rb'|\}\s*(?:(?P<end>(?=\]\s*,\s*"(?:traceName|displayTimeUnit|baseTimeNanoseconds|schemaVersion|profwin|INFO|WARNING)"\s*:))'
    rb"|(?P<last>(?=\]\s*\}?\s*\Z)))"
)
_HEAD = re.compile(rb'"(?:schemaVersion|traceEvents)"\s*:')


def resume(buffer: Buffer, index: int) -> tuple[str, bool]:
    """Go to the next place after an index of the buffer where reading can go on.

    Returns:
        ``"event"``, where an event begins, ``"end"``, where the events end, or empty where nothing is found; and
        whether the beginning of a trace was met on the way, which another process must have written.
    """
    search, head = index, False
    while True:
        match = _PLACE.search(buffer.data, search)
        head = head or bool(_HEAD.search(buffer.data, buffer.at, match.end() if match else len(buffer.data)))
        if match and (match["last"] is None or buffer.ended):
            buffer.at = match.end()
            return ("event" if match["event"] is not None else "end"), head
        buffer.at = match.start() if match else max(search, len(buffer.data) - KEPT)
        search = buffer.at
        if not match and buffer.ended:
            buffer.at = len(buffer.data)
            return "", head
        if buffer.more():
            search = 0
