"""The result of a check: findings in order, what was found to be judged, and counts by step and stage."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from profwin.evidence.finding import SEVERITIES, at_least

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from profwin.evidence.finding import Finding
    from profwin.evidence.model import Recording
    from profwin.evidence.run import Run

__all__ = ["Result", "Row", "in_order", "summarise"]

SCHEMA = 1
"""Version of `Result.as_json`: grows when a key changes its meaning or goes, not for new ones."""


@dataclass
class Row:
    """What there is of one window or stage in one step.

    Attributes:
        step: None where nothing says it.
        purpose: ``"rollout"``, ``"training"``, or empty where nothing says it.
        name: of the window or stage; empty where nothing says it.
        ranks: of the processes, sorted; those that know none are left out.
        recorded: how often it was recorded, over all ranks and occurrences.
        unrecorded: how often it ran without being recorded.
    """

    step: int | None
    purpose: str
    name: str
    ranks: set[int] = field(default_factory=set)
    recorded: int = 0
    unrecorded: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "step": self.step, "purpose": self.purpose, "name": self.name, "ranks": sorted(self.ranks),
            "recorded": self.recorded, "unrecorded": self.unrecorded,
        }  # fmt: skip


@dataclass
class Result:
    """What a check found.

    Attributes:
        directory: as it was given.
        findings: the gravest first; see `in_order`.
        recordings: profiler output, by path.
        runs: those whose journals lie here.
        rows: counts by step, and by window or stage.
        seconds: what it took.
    """

    directory: str
    findings: list[Finding] = field(default_factory=list)
    recordings: list[Recording] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity, the gravest first."""
        counted = Counter(finding.code.severity for finding in self.findings)
        return {severity: counted[severity] for severity in reversed(SEVERITIES)}

    def clean(self, threshold: str = "warning") -> bool:
        """Say whether no finding reaches a threshold, one of `SEVERITIES`."""
        return not any(at_least(finding.code.severity, threshold) for finding in self.findings)

    def as_json(self, threshold: str = "warning") -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "schema": SCHEMA,
            "directory": self.directory,
            "clean": self.clean(threshold),
            "fail_on": threshold,
            "counts": self.counts,
            "findings": [finding.as_json() for finding in self.findings],
            "summary": [row.as_json() for row in self.rows],
            "recordings": [_recording_as_json(recording) for recording in self.recordings],
            "runs": [
                {
                    "directory": run.prefix or ".", "name": run.name, "attempts": run.attempts,
                    "processes": len(run.processes), "collections": len(run.collections), "skips": len(run.skips),
                }
                for run in self.runs
            ],
            "seconds": round(self.seconds, 3),
        }  # fmt: skip


def _recording_as_json(recording: Recording) -> dict[str, Any]:
    name, tally = recording.name, recording.tally
    return {
        "path": recording.path, "format": recording.format,
        "window": None if recording.window is None else list(recording.window), "clock": recording.clock.kind,
        "step": name.step, "rank": name.rank, "purpose": name.purpose, "role": name.role, "name": name.stage,
        "events": tally.events, "device_slices": tally.device_slices, "devices": sorted(recording.device_busy),
    }  # fmt: skip


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, the gravest first, then code, file, place and detail; each is there once.

    A file that is the checked directory itself becomes empty.
    """
    distinct = {}
    for each in findings:
        file = "" if each.file == "." else each.file.removesuffix("/.")
        key = (-SEVERITIES.index(each.code.severity), each.code.name, file, _natural(each.place), _natural(each.detail))
        distinct[key] = each if file == each.file else replace(each, file=file)
    return [distinct[key] for key in sorted(distinct)]


def _natural(place: str) -> tuple[tuple[int, str], ...]:
    """Return what sorts ``byte 9`` before ``byte 10``, and differs where texts do."""
    return tuple((int(part) if _is_number(part) else -1, part) for part in place.split(" "))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def summarise(runs: Iterable[Run], recordings: Iterable[Recording]) -> list[Row]:
    """Count windows and stages of runs by their journals, and recordings that no journal names by their own names."""
    rows: dict[tuple[int | None, str, str], Row] = {}

    def row(step: int | None, purpose: str, name: str, rank: int | None) -> Row:
        found = rows.setdefault((step, purpose, name), Row(step, purpose, name))
        if rank is not None:
            found.ranks.add(rank)
        return found

    for run in runs:
        for interval in run.intervals:
            if interval.what in ("window", "stage"):
                purpose = "rollout" if interval.what == "window" else "training"
                found = row(interval.step, purpose, interval.name, interval.process.rank)
                found.recorded += interval.collection is not None
                found.unrecorded += interval.collection is None
    for recording in recordings:
        name = recording.name
        row(name.step, name.purpose or "", name.stage or "", name.rank).recorded += 1
    return [rows[key] for key in sorted(rows, key=_row_order)]


def _row_order(key: tuple[int | None, str, str]) -> tuple[bool, int, str, str]:
    step, purpose, name = key
    return (step is None, step or 0, purpose, name)
