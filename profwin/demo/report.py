"""What the demo tells: a line a step, a table a profiled step, the checks; or all as one JSON object."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from profwin.demo.loop import StepResult
    from profwin.demo.options import Options
    from profwin.demo.overlap import Overlap
    from profwin.demo.trial import Trial
    from profwin.demo.verify import Check
    from profwin.demo.witness import Collection, Event, Evidence

__all__ = ["as_json", "narrative", "progress_line", "summary", "table", "verdict"]


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


def _rows(trial: Trial, step: int) -> list[dict[str, Any]]:
    rows = []
    handed_over: dict[str, Collection] = {}
    for collection in (each for each in trial.evidence.collections if each.step == step):
        if trial.options.nodes and not collection.devices:
            continue  # the driver's window over its actors: each of them has its own
        device = ", ".join(map(trial.options.short, collection.devices))
        if collection.purpose == "rollout":
            handed_over[device] = collection
        elif (window := handed_over.pop(device, None)) is not None and window.closed is not None:
            rows.append({"what": "handover", "device": device, "seconds": (collection.opened - window.closed) / 1e9})
        kind = "window" if collection.purpose == "rollout" else "stage"
        rows.append(
            {
                "what": f"{kind} {collection.name}",
                "device": device,
                "seconds": None if collection.closed is None else (collection.closed - collection.opened) / 1e9,
                "waited": collection.waited,
                "closed": collection.reason,
                "traces": [record["path"] for record in collection.exports if record.get("path")],
            }
        )
    skips = [event for event in trial.evidence.events if event.record["kind"] == "skip" and event.step == step]
    for event in skips:
        waited = event.record.get("waited", 0.0)
        reason = event.record.get("reason")
        rows.append({"what": f"skipped {event.name}", "waited": waited, "reason": reason, "why": _why(event)})
    return rows


def _why(event: Event) -> str:
    record = event.record
    return ", ".join(str(record[key]) for key in ("reason", "holder", "detail") if record.get(key))


def table(trial: Trial) -> str:
    """Return one table for each profiled step, and below it what ran at the same time on different devices."""
    lines = []
    # One device needs no column.
    named = len(trial.options.devices) > 1
    for step in trial.options.profiled:
        lines.append(
            f"{f'step {step}':<24}{'device':<8}"[: None if named else 24] + f"{'recorded':>12}{'waited':>12}   notes"
        )
        for row in _rows(trial, step):
            early = row.get("closed") not in (None, "", "end")
            notes = row.get("reason") or (f"closed early: {row['closed']}" if early else "")
            seconds, waited = _seconds(row.get("seconds")), _seconds(row.get("waited"))
            device = f"{row.get('device', ''):<8}" if named else ""
            lines.append(f"  {row['what']:<22}{device}{seconds:>12}{waited:>12}   {notes}".rstrip())
        lines += [f"  {_wanted(trial.options, overlap)}" for overlap in trial.overlaps if overlap.step == step]
        lines.append("")
    return "\n".join(lines)


def _wanted(options: Options, overlap: Overlap) -> str:
    others = ", ".join(map(options.short, overlap.others))
    return (
        f"rollout on {options.short(overlap.device)} while training ran on {others}: "
        f"{overlap.share:.0%} of {_seconds(overlap.rollout / 1e9)}, wanted"
    )


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


def as_json(trial: Trial) -> dict[str, Any]:
    """Return everything as JSON values; paths of traces are relative to ``directory``."""
    options = trial.options
    return {
        "run": options.run,
        "directory": os.path.relpath(options.directory),
        "loop": options.loop,
        "seed": options.seed,
        "misuse": options.misuse,
        "nodes": options.nodes or None,
        "seconds": trial.seconds,
        "steps": [
            {
                "step": result.step,
                "profiled": result.selected,
                "reward": result.reward,
                "validation": result.validation,
                "carried_groups": result.carried,
                "generated_with": result.work.generated_with,
                "rollout_seconds": result.rollout,
                "training_seconds": result.training,
            }
            for result in trial.results
        ],
        "profiled": [{"step": step, "rows": _rows(trial, step)} for step in options.profiled],
        "wanted_overlap": [
            {
                "step": overlap.step,
                "device": options.short(overlap.device),
                "others": [options.short(key) for key in overlap.others],
                "rollout_seconds": overlap.rollout / 1e9,
                "share": overlap.share,
            }
            for overlap in trial.overlaps
        ],
        "traces": sorted(trial.evidence.traces),
        "notes": [*trial.notes, *narrative(trial.evidence)],
        "checks": [{"what": check.what, "passed": check.passed, "problems": check.problems} for check in trial.checks],
        "passed": trial.passed,
    }


def summary(trials: Sequence[Trial]) -> str:
    """Return a table with one line a loop."""
    lines = [f"{'loop':<12}{'steps':>6}{'reward':>18}{'devices':>9}{'traces':>8}{'beside':>8}{'took':>10}   verified"]
    for trial in trials:
        rewards = f"{trial.results[0].reward:.2f} to {trial.results[-1].reward:.2f}"
        rollout = sum(overlap.rollout for overlap in trial.overlaps)
        share = f"{sum(overlap.beside for overlap in trial.overlaps) / rollout:.0%}" if rollout else "-"
        failed = sum(not check.passed for check in trial.checks)
        lines.append(
            f"{trial.options.loop:<12}{len(trial.results):>6}{rewards:>18}{len(trial.options.devices):>9}"
            f"{len(trial.evidence.traces):>8}{share:>8}{_seconds(trial.seconds):>10}   "
            + ("yes" if trial.passed else f"NO: {failed} of {len(trial.checks)} checks failed")
        )
    lines.append("beside: how much of the rollout ran while training ran on another device, which is wanted")
    return "\n".join(lines)
