"""The report for a terminal: a line for each step, and what is worth a look."""

from __future__ import annotations

from html import unescape

from profwin.evidence import markup
from profwin.evidence.escaping import printable
from profwin.evidence.markup import counted, seconds
from profwin.evidence.page_steps import CAUSE_NAMES, sync_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.phases import StepPhases
    from profwin.evidence.report import Report, RunReport

__all__ = ["report_text"]

MOST_STEPS = 40
MOST_CODES = 10
HEADERS = (
    "STEP", "LENGTH", "ROLLOUT", "TRAINING", "SYNC", "HANDOVER", "IDLE", "OVERLAP", "STALENESS", "PROFILING", "SLOWEST",
)  # fmt: skip


def report_text(report: Report) -> str:
    """Return the report as text. Names from files are escaped."""
    parts = [_run(run) for run in report.runs]
    parts.append(_findings(report))
    return "\n\n".join(parts).replace(markup.SPACE, " ")


def _run(run: RunReport) -> str:
    devices = max((len(step.devices) for step in run.steps), default=0)
    head = f"{printable(run.title, 120)}: {counted(len(run.steps), 'profiled step')}, {counted(devices, 'device')}"
    head += f", {counted(run.hosts, 'host')}" if run.hosts > 1 else ""
    if not run.steps:
        return f"{head}; its journals have no window and no stage"
    several = len(run.run.attempts) > 1
    rows = [HEADERS, *(_row(step, several=several) for step in run.steps[:MOST_STEPS])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADERS))]
    last = len(HEADERS) - 1
    lines = [
        "  ".join(
            cell.ljust(width) if column in (0, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if len(run.steps) > MOST_STEPS:
        lines.append(f"… and {len(run.steps) - MOST_STEPS} more; --json has all")
    notes = [f"note: {printable(note, 1000)}" for note in run.alignment.notes]
    return "\n".join([head, *lines, *_bubble(run.steps), *notes])


def _row(step: StepPhases, *, several: bool) -> tuple[str, ...]:
    slow = max(step.ranks, key=lambda ranks: (ranks.behind, ranks.longest))
    slowest = f"{printable(slow.name, 40)}, {seconds(slow.longest)}"
    if slow.behind > 0:
        slowest = f"{printable(slow.name, 40)} on {printable(slow.slowest, 40)}, {seconds(slow.behind)} behind"
    return (
        f"{step.step}, attempt {step.attempt}" if several else str(step.step),
        seconds(step.span),
        *(_percent(step.share(kind)) for kind in ("rollout", "training")),
        unescape(sync_share(step)).replace(markup.NONE, "-"),
        *(_percent(step.share(kind)) for kind in ("handover", "idle")),
        _percent(step.overlap / step.span if step.span else 0),
        "-" if step.staleness is None else str(step.staleness),
        _percent(step.cost / step.span if step.span else 0),
        slowest,
    )


def _percent(share: float) -> str:
    return unescape(markup.percent(share)).replace(markup.NONE, "-")


def _bubble(steps: list[StepPhases]) -> list[str]:
    found = [(step, *step.bubbles()[0]) for step in steps if step.bubbles()]
    if not found:
        return []
    step, device, piece = max(found, key=lambda each: each[2].end - each[2].start)
    where = f"{printable(device.lane.label, 40)}, in step {step.step}"
    return [f"longest bubble: {seconds(piece.end - piece.start)} on {where}: {CAUSE_NAMES[piece.cause]}"]


def _findings(report: Report) -> str:
    counts = [
        counted(report.count(severity), severity) for severity in ("error", "warning", "remark")
        if report.count(severity)
    ]  # fmt: skip
    if not counts:
        return "check: nothing is missing, damaged or mixed"
    codes = list(dict.fromkeys(printable(finding.code.name, 40) for finding in report.findings))
    more = " …" if len(codes) > MOST_CODES else ""
    return f"check: {', '.join(counts)}: {', '.join(codes[:MOST_CODES])}{more}; see profwin check"
