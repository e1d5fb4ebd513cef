"""The picture of a step with many devices: how many did what, and all of them as thin rows."""

from __future__ import annotations

from profwin.evidence.bars import WORK, look, short
from profwin.evidence.frame import LEFT, RIGHT, axis, opening, place
from profwin.evidence.markup import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from profwin.evidence.phases import DevicePhases, StepPhases

__all__ = ["SEEN", "areas", "stripes"]

PITCH = 6
BINS = 425
MOST_ROWS = 1024
AREA = 120
SEEN = (*WORK, "profiling", "paused")
"""What is drawn where each device has a thin row; the rest is left blank."""


def areas(step: StepPhases, identifier: str) -> str:
    """Draw how many devices did what, over time."""
    counts = {kind: [0] * (BINS + 1) for kind in WORK}
    for device in step.devices:
        for piece in device.pieces:
            if piece.kind in counts:
                first, last = (
                    round((time - step.start) * BINS / (step.span or 1)) for time in (piece.start, piece.end)
                )
                counts[piece.kind][first] += 1
                counts[piece.kind][last] -= 1
    size, top, scale = (RIGHT - LEFT) / BINS, 24, AREA / len(step.devices)
    below, parts = [0] * BINS, []
    for kind in WORK:
        total, heights = 0, []
        for change in counts[kind][:BINS]:
            total += change
            heights.append(total)
        if any(heights):
            above = [low + high for low, high in zip(below, heights, strict=True)]
            parts.append(f'<path class="{kind}" d="{_outline(below, above, size, top + AREA, scale)}"/>')
            below = above
    y = top + AREA
    more = f" At most {max(below, default=0)} of {len(step.devices)} devices were at work at once."
    head = opening(
        step, f"{identifier}-a", y + 6, f"Step {step.step}: how many devices did what, over time in seconds", more
    )
    return (
        f"<figcaption>How many of the {len(step.devices)} devices did what, over time in seconds</figcaption>"
        f'<div class="plot" tabindex="0" role="group" aria-label="Step {step.step}: devices at work">{head}'
        f'{axis(step, y)}<text x="0" y="{top + 10}">{len(step.devices)} devices</text><text x="0" y="{y}">0</text>'
        f"{''.join(parts)}</svg></div>"
    )


def _outline(below: list[int], above: list[int], size: float, floor: int, scale: float) -> str:
    def steps(heights: list[int], indices: Iterable[int], edge: int) -> list[str]:
        points, last = [], None
        for index in indices:
            if heights[index] != last:
                x, height = short(LEFT + (index + edge) * size), short(floor - heights[index] * scale)
                points.append(f"{'H' + x if last is not None else ('M' if edge == 0 else 'L') + x + ' ' + height}")
                points.append(f"V{height}" if last is not None else "")
                last = heights[index]
        return points

    count = len(above)
    there = steps(above, range(count), 0)
    back = steps(below, range(count - 1, -1, -1), 1)
    return f"{''.join(there)}H{RIGHT}{''.join(back)}H{LEFT}Z"


def stripes(step: StepPhases, identifier: str) -> str:
    """Draw all devices as thin rows, one path for each look."""
    paths: dict[str, list[str]] = {}
    labels: list[tuple[int, str]] = []
    shown = step.devices[:MOST_ROWS]
    for index, device in enumerate(shown):
        y = index * PITCH + 3
        new_host = not index or device.lane.host != step.devices[index - 1].lane.host
        if new_host or not index % 8:
            host = f"{text(device.lane.host, 12)} · " if device.lane.host else ""
            if not labels or y - labels[-1][0] >= 14:
                labels.append((y, f'<text x="0" y="{y + 6}">{host}{text(device.lane.label, 12)}</text>'))
        for name, start, end in _runs(step, device):
            width = max(end - start, 0.4)
            paths.setdefault(name, []).append(f"M{short(start)} {y}h{short(width)}")
    height = len(shown) * PITCH + 4
    head = opening(step, f"{identifier}-s", height, f"Step {step.step}: what each device did, over time")
    drawn = "".join(f'<path class="{name} thin" d="{"".join(every)}"/>' for name, every in paths.items())
    rest = f" The first {len(shown)} of {len(step.devices)}." if len(shown) < len(step.devices) else ""
    return (
        f"<figcaption>Each device, a row; blank where it stood still, or nothing is known.{rest}</figcaption>"
        f'<div class="plot tall" tabindex="0"'
        f' role="group" aria-label="Step {step.step}: each device">{head}{axis(step, height, labels=False)}'
        f"{''.join(label for _, label in labels)}{drawn}</svg></div>"
    )


def _runs(step: StepPhases, device: DevicePhases) -> list[tuple[str, float, float]]:
    """Return what of a device can be seen in a thin row: neighbours of one look drawn together, no empty time."""
    runs: list[tuple[str, float, float]] = []
    for piece in device.pieces:
        name = look(piece)
        if name not in SEEN:
            continue
        start, end = place(step, piece.start), place(step, piece.end)
        if runs and runs[-1][0] == name and start - runs[-1][2] < 0.7:
            runs[-1] = name, runs[-1][1], end
        elif end - start >= 0.3:
            runs.append((name, start, end))
    return runs
