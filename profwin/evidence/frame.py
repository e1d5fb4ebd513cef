"""The frame of a picture over time: its size, its title, its axis."""

from __future__ import annotations

from profwin.evidence.bars import NAMES, WORK, short
from profwin.evidence.markup import counted, percent, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.phases import StepPhases

__all__ = ["LEFT", "RIGHT", "axis", "opening", "place"]

LEFT, RIGHT, MARGIN = 150, 1000, 8


def opening(step: StepPhases, identifier: str, height: int, title: str, more: str = "") -> str:
    """Return the beginning of a picture, with what a screen reader says of it."""
    shares = ", ".join(
        f"{NAMES[kind]} {percent(step.share(kind))}" for kind in (*WORK, "handover", "idle") if step.share(kind) > 0
    )
    return (
        f'<svg viewBox="0 0 {RIGHT + MARGIN} {height}" role="img" aria-labelledby="{identifier}-t {identifier}-d">'
        f'<title id="{identifier}-t">{title}</title><desc id="{identifier}-d">'
        f"{seconds(step.span)} on {counted(len(step.devices), 'device')}: {shares} of the devices' time.{more}"
        " The tables below have the figures.</desc>"
    )


def axis(step: StepPhases, height: int, *, labels: bool = True) -> str:
    """Return the lines and numbers of the time, in seconds since the step began."""
    span = step.span / 1e9 or 1e-9
    rough = span / 8
    power = (
        10.0 ** (len(str(int(rough))) - 1)
        if rough >= 1
        else 10.0 ** -next(n for n in range(1, 12) if rough * 10**n >= 1)
    )
    tick = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    parts = []
    for index in range(int(span / tick) + 1):
        x = short(LEFT + index * tick / span * (RIGHT - LEFT))
        parts.append(f'<path class="grid" d="M{x} {20 if labels else 0}V{height}"/>')
        if labels:
            value = f"{index * tick:.10g}"
            parts.append(f'<text x="{x}" y="13" text-anchor="middle">{value}{" s" if not index else ""}</text>')
    return "".join(parts)


def place(step: StepPhases, time: int) -> float:
    """Return where a time is drawn."""
    return LEFT + (time - step.start) * (RIGHT - LEFT) / (step.span or 1)
