"""What the demo tells: a line a step, a table a profiled step, the checks; or all as one JSON object."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from profwin.demo.loop import StepResult
    from profwin.demo.options import Options
    from profwin.demo.verify import Check
    from profwin.demo.witness import Collection, Event, Evidence

__all__ = ["as_json", "narrative", "progress_line", "table", "verdict"]


def progress_line(result: StepResult, steps: int) -> str:
    """Return a step's line."""
    parts = [
        f"step {result.step:>{len(str(steps))}}/{steps}",
        f"reward {result.reward:.3f}",
        f"rollout {result.rollout:.2f} s",
        f"training {result.training:.2f} s",
    ]
    if result.carried:
        parts.append(f"{result.carried} groups carried over")
    if result.validation is not None:
        parts.append(f"validation {result.validation:.3f}")
    return "  ".join(parts) + ("  profiled" if result.selected else "")


def _rows(evidence: Evidence, step: int) -> list[dict[str, Any]]:
    rows = []
    handed_over: Collection | None = None
    for collection in (each for each in evidence.collections if each.step == step):
        if collection.purpose == "training" and handed_over is not None and handed_over.closed is not None:
            rows.append({"what": "handover", "seconds": (collection.opened - handed_over.closed) / 1e9})
            handed_over = None
        if collection.purpose == "rollout":
            handed_over = collection
        kind = "window" if collection.purpose == "rollout" else "stage"
        rows.append(
            {
                "what": f"{kind} {collection.name}",
                "seconds": None if collection.closed is None else (collection.closed - collection.opened) / 1e9,
                "waited": collection.waited,
                "closed": collection.reason,
                "traces": [record["path"] for record in collection.exports if record.get("path")],
            }
        )
    skips = [event for event in evidence.events if event.record["kind"] == "skip" and event.step == step]
    for event in skips:
        waited = event.record.get("waited", 0.0)
        reason = event.record.get("reason")
        rows.append({"what": f"skipped {event.name}", "waited": waited, "reason": reason, "why": _why(event)})
    return rows


def _why(event: Event) -> str:
    record = event.record
    return ", ".join(str(record[key]) for key in ("reason", "holder", "detail") if record.get(key))


def table(evidence: Evidence, steps: Iterable[int]) -> str:
    """Return one table for each profiled step."""
    lines = []
    for step in steps:
        lines.append(f"{f'step {step}':<24}{'recorded':>12}{'waited':>12}   notes")
        for row in _rows(evidence, step):
            early = row.get("closed") not in (None, "", "end")
            notes = row.get("reason") or (f"closed early: {row['closed']}" if early else "")
            seconds, waited = _seconds(row.get("seconds")), _seconds(row.get("waited"))
            lines.append(f"  {row['what']:<22}{seconds:>12}{waited:>12}   {notes}".rstrip())
        lines.append("")
    return "\n".join(lines)


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def narrative(evidence: Evidence) -> list[str]:
    """Return what the journals say about everything that did not go the ordinary way, in order of time.

    Stages of one step that went unrecorded for one reason share a line.
    """
    told: dict[tuple[object, ...], list[str]] = {}
    for number, event in enumerate(evidence.events):
        text = _told(event.record, event)
        if text is not None:
            shared = event.record["kind"] == "skip"
            key = (event.role, event.step, _why(event) if shared else number, text if not shared else "")
            told.setdefault(key, [text]).append(event.name)
    lines = []
    for (role, step, *_), (text, *names) in told.items():
        where = f"step {step}, {', '.join(names)}: " if step != -1 and names[0] else ""
        lines.append(f"{role}: {where}{text}")
    return lines


def _told(record: dict[str, Any], event: Event) -> str | None:
    kind, error = record["kind"], record.get("error")
    if kind == "skip":
        return f"ran unrecorded after {_seconds(record.get('waited', 0.0))}: {_why(event)}"
    if kind == "overlap":
        return f"began inside the open window {record.get('window')!r}, which was closed"
    if kind == "finding":
        return f"{record.get('code')}: {record.get('detail')}"
    if kind == "lost":
        return f"the lock file of {record.get('device')} was replaced while it was held"
    if kind == "close" and (record.get("reason") != "end" or error):
        return f"closed early, reason: {record.get('reason')}" + (f"; {error}" if error else "")
    if kind == "export" and error:
        return f"there is no trace: {error}"
    return None


def verdict(checks: Sequence[Check]) -> str:
    """Return the checks, one a line, with their problems below them."""
    lines = []
    for check in checks:
        lines.append(f"  {'ok    ' if check.passed else 'FAILED'}  {check.what}")
        lines += [f"            {problem}" for problem in check.problems]
    return "\n".join(lines)


def as_json(
    options: Options,
    results: Sequence[StepResult],
    evidence: Evidence,
    checks: Sequence[Check],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return everything as JSON values; paths of traces are relative to ``directory``."""
    return {
        "run": options.run,
        "directory": os.path.relpath(options.directory),
        "loop": options.loop,
        "seed": options.seed,
        "misuse": options.misuse,
        "steps": [
            {
                "step": result.step,
                "profiled": result.selected,
                "reward": result.reward,
                "validation": result.validation,
                "carried_groups": result.carried,
                "rollout_seconds": result.rollout,
                "training_seconds": result.training,
            }
            for result in results
        ],
        "profiled": [{"step": step, "rows": _rows(evidence, step)} for step in options.profiled],
        "traces": sorted(evidence.traces),
        "notes": [*notes, *narrative(evidence)],
        "checks": [{"what": check.what, "passed": check.passed, "problems": check.problems} for check in checks],
        "passed": all(check.passed for check in checks),
    }
