"""The Gantt picture of a step, as SVG: a row for each device, and above a certain number all of them in one picture."""

from __future__ import annotations

from profwin.evidence.bars import NAMES, legend, look, shape, short
from profwin.evidence.crowd import SEEN, areas, stripes
from profwin.evidence.frame import axis, opening, place
from profwin.evidence.markup import seconds, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.bubbles import Piece
    from profwin.evidence.phases import StepPhases

__all__ = ["MOST_ROWS", "figure"]

MOST_ROWS = 40
"""Up to so many devices have a labelled row each."""
MOST_PIECES = 3000
"""Of more, most are too thin to be told apart."""

TALL, PITCH = 18, 26
CHARACTER = 6.8
"""Width of a letter on a bar."""


def figure(step: StepPhases, identifier: str) -> str:
    """Return the picture of a step, with its legend and what a screen reader says of it.

    Args:
        step: to be drawn.
        identifier: unique in the page; the picture's ids begin with it.
    """
    few = len(step.devices) <= MOST_ROWS and sum(len(device.pieces) for device in step.devices) <= MOST_PIECES
    looks = {look(piece) for device in step.devices for piece in device.pieces}
    looks &= set(NAMES if few else SEEN)
    parts = [_rows(step, identifier)] if few else [areas(step, identifier), stripes(step, identifier)]
    parts[-1] += legend(name for name in NAMES if name in looks)
    return "".join(f"<figure>{part}</figure>\n" for part in parts)


def _rows(step: StepPhases, identifier: str) -> str:
    hosts = len({device.lane.host for device in step.devices}) > 1
    y, host = 28, None
    labels = [device.lane.label for device in step.devices]
    parts: list[str] = []
    for device in step.devices:
        if hosts and device.lane.host != host:
            host = device.lane.host
            y += 4 if parts else 0
            parts.append(f'<text x="0" y="{y + 10}">{text(host, 24)}</text>')
            y += 18
        label = device.lane.label
        if labels.count(label) > 1:  # one rank on several devices: then the device's own name tells them apart
            label = f"{label}, {device.lane.key.removeprefix('pretend-')[:11]}"
        parts.append(f'<text class="name" x="0" y="{y + 13}">{text(label, 20)}</text>')
        parts += [_piece(step, piece, y) for piece in device.pieces]
        y += PITCH
    head = opening(step, identifier, y, f"Step {step.step}: what each device did, over time in seconds")
    label = f"Picture of step {step.step}"
    return (
        f'<div class="plot" tabindex="0" role="group" aria-label="{label}">{head}{axis(step, y)}{"".join(parts)}'
        "</svg></div>"
    )


def _piece(step: StepPhases, piece: Piece, y: int) -> str:
    x, end = place(step, piece.start), place(step, piece.end)
    name, work = look(piece), piece.work
    width = max(end - x - (1 if work is not None else 0), 0.6)
    said = work.name if work is not None else NAMES[name] + (f", cause: {piece.cause}" if piece.cause else "")
    label = _fitting(work.name if work is not None else "" if name == "profiling" else piece.cause, width)
    shift = 5.0
    if label and name == "idle":  # the words stand on the line, which goes on after them
        shift = 2.0
        x += CHARACTER * len(label) + 4
        width -= CHARACTER * len(label) + 4
    drawn = f"<g><title>{text(said)}, {seconds(piece.end - piece.start)}</title>{shape(name, x, y, width, TALL)}"
    if label:
        look_of_text = "in" if work is not None else "why"
        at = x + shift if name != "idle" else x - CHARACTER * len(label) - shift
        drawn += f'<text class="{look_of_text}" x="{short(at)}" y="{y + 13}">{text(label)}</text>'
    return drawn + "</g>"


def _fitting(name: str, width: float) -> str:
    """Return what of a name has room in a bar: all of it, a beginning, or nothing."""
    room = int((width - 8) / CHARACTER)
    if len(name) <= room:
        return name
    return f"{name[: room - 1]}…" if room >= 4 else ""
