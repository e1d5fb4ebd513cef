"""Bars: how what a device did is drawn, in bars, samples and legends; every look has a pattern or a line of its own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from profwin.evidence.bubbles import Piece
    from profwin.evidence.phases import StepPhases

__all__ = ["NAMES", "WORK", "bar", "legend", "look", "look_shares", "shape", "short", "swatch"]

NAMES = {
    "rollout": "rollout", "training": "training stage", "sync": "weight sync",
    "sync_at_most": "weight sync, at most", "other": "another step",
    "handover": "handover", "profiling": "profiler starts, stops or writes", "paused": "paused",
    "unrecorded": "step not profiled", "idle": "idle",
}  # fmt: skip
WORK = ("rollout", "training", "sync", "sync_at_most", "other")


def look(piece: Piece) -> str:
    """Return how a piece is drawn: one of the keys of `NAMES`."""
    return "profiling" if piece.cause == "profiling" else piece.kind


def look_shares(steps: Sequence[StepPhases]) -> list[tuple[str, float]]:
    """Return the shares of the devices' time over several steps, by how they are drawn."""
    times = dict.fromkeys(NAMES, 0)
    for step in steps:
        for device in step.devices:
            for kind, time in device.kinds.items():
                times[kind] += time
            for piece in device.pieces:
                if piece.cause == "profiling":
                    times["profiling"] += piece.end - piece.start
                    times[piece.kind] -= piece.end - piece.start
    whole = sum(times.values())
    return [(name, time / whole) for name, time in times.items() if time]


def legend(names: Iterable[str]) -> str:
    """Return a legend of the given looks."""
    return f'<ul class="legend">{"".join(f"<li>{swatch(name)}{NAMES[name]}</li>" for name in names)}</ul>'


def swatch(name: str, width: int = 22) -> str:
    """Return a small sample of a look."""
    return (
        f'<svg width="{width}" height="12" aria-hidden="true" focusable="false"><title>{NAMES[name]}</title>'
        f"{shape(name, 0.5, 0.5, width - 1.0, 11)}</svg>"
    )


def bar(parts: list[tuple[str, float]], label: str, identifier: str, width: int | None = None) -> str:
    """Return one bar whose parts are shares of the whole, for a screen reader with its label.

    Args:
        parts: looks and shares.
        label: HTML.
        identifier: unique in the page.
        width: of the bar; None for as wide as there is room.
    """
    shapes, at, whole = [], 0.0, width or 400
    for name, share in parts:
        if share > 0:
            shapes.append(shape(name, at, 0, max(share * whole - 1, 0.5), 16))
        at += share * whole
    size = f'width="{width}"' if width else 'width="100%" preserveAspectRatio="none"'
    return (
        f'<svg viewBox="0 0 {whole} 16" {size} height="16" role="img" aria-labelledby="{identifier}">'
        f'<title id="{identifier}">{label}</title>{"".join(shapes)}</svg>'
    )


def shape(name: str, x: float, y: float, width: float, height: float) -> str:
    """Return one shape: a bar, or for a look that has none a line."""
    if name in ("idle", "unrecorded"):
        return f'<path class="{name}" d="M{short(x)} {short(y + height / 2)}h{short(width)}"/>'
    if name == "handover":
        x, y, width, height = x + 0.5, y + 0.5, max(width - 1, 0.1), height - 1
    return f'<rect class="{name}" x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"/>'


def short(value: float) -> str:
    """Return a coordinate as short as it may be."""
    return f"{value:.1f}".removesuffix(".0")
