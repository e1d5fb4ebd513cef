"""Drawing a record: one bar for each collection, by device, on an axis of the order in which things happened."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from profwin.testing.record import Record

__all__ = ["draw"]

_ROWS = 14
_WIDTH = 56
_MARKS = {"rollout": "#", "training": "=", "unrecorded": "."}


class _Row:
    """One bar, from its begin to its end, in nanoseconds."""

    def __init__(self, device: str, begin: int, end: int, mark: str, text: str) -> None:
        self.device, self.begin, self.end, self.mark, self.text = device, begin, end, mark, text


def draw(record: Record, focus: int | None = None) -> str:
    """Draw a record as text.

    The axis is the order of begins and ends, not their distance: it is the same for all devices, so bars that share a
    column were there at the same time. ``#`` is a recorded rollout, ``=`` recorded training, ``.`` a window or stage,
    or a part of one, that nothing recorded.

    Args:
        record: what happened.
        focus: time, in nanoseconds, around which to draw where there is too much; None: the end.
    """
    rows = _rows(record)
    if not rows:
        return "(nothing was recorded, and no window or stage of a selected step was entered)"
    chosen = _near(rows, focus)
    times = sorted({each for row in chosen for each in (row.begin, row.end)})
    columns = {moment: number for number, moment in enumerate(times)}
    scale = min(1.0, _WIDTH / max(1, len(times) - 1))
    stretch = max(1, min(4, _WIDTH // max(1, len(times) - 1)))
    width = max(1, round((len(times) - 1) * scale)) * stretch
    lines = []
    for device in dict.fromkeys(row.device for row in sorted(chosen, key=lambda row: row.device)):
        lines.append(device)
        for row in (row for row in chosen if row.device == device):
            begin, end = (round(columns[moment] * scale) * stretch for moment in (row.begin, row.end))
            bar = " " * begin + row.mark * max(1, end - begin)
            lines.append(f"  {bar:<{width}}  {row.text}")
    if len(chosen) < len(rows):
        lines.append(f"({len(rows) - len(chosen)} more of {len(rows)} are not shown)")
    lines.append("(# rollout recorded, = training recorded, . not recorded; left to right in order, not to scale)")
    return "\n".join(lines)


def _rows(record: Record) -> list[_Row]:
    rows = []
    for each in record.collections:
        if each.site == "?" and each.closed is not None:
            continue  # it failed to start: the window or stage has a row that says so
        text = f"step {each.step} {each.name}, {each.process}, {_short(each.site)}"
        if each.wait:
            text += f", {each.wait}"
        if each.closed is None:
            text += ", never closed"
        elif each.reason != "end":
            text += f", closed: {each.reason}"
        rows += [_Row(device, each.opened, each.end, _MARKS[each.purpose], text) for device in each.devices]
    for interval in record.intervals:
        last = interval.collections[-1] if interval.collections else None
        begin = interval.entered if last is None else last.end
        if interval.what == "span" or begin >= interval.end or (last is not None and last.reason == "paused"):
            continue
        why = f"not recorded: {interval.skip}" if last is None else "the rest of it, not recorded"
        text = f"step {interval.step} {interval.name}, {interval.process}, {_short(interval.site)}, {why}"
        rows += [_Row(device, begin, interval.end, _MARKS["unrecorded"], text) for device in interval.devices]
    return sorted(rows, key=lambda row: (row.begin, row.end))


def _near(rows: Sequence[_Row], focus: int | None) -> list[_Row]:
    """Return the rows that were there at a time, then those that began nearest to it, in order; None: the latest."""
    if focus is None:
        return list(rows[-_ROWS:])

    def distance(row: _Row) -> tuple[bool, int]:
        return not row.begin <= focus <= row.end, abs(row.begin - focus)

    kept = set(sorted(rows, key=distance)[:_ROWS])
    return [row for row in rows if row in kept]


def _short(site: str) -> str:
    return os.path.basename(site)
