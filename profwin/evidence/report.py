"""The report: the numbers of all runs below a directory, with the findings of the check, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from profwin.evidence.alignment import Alignment
from profwin.evidence.bubbles import CAUSES, KINDS
from profwin.evidence.phases import COSTS, count_steps, measure, totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.evidence.finding import Finding
    from profwin.evidence.phases import DevicePhases, Ranks, StepPhases
    from profwin.evidence.run import Run

__all__ = ["SCHEMA", "Report", "RunReport", "as_json", "gather"]

SCHEMA = 1
"""Version of `as_json`: grows when a key changes its meaning or goes, not for new ones."""

LONGEST_BUBBLES = 10


@dataclass
class RunReport:
    """One run.

    Attributes:
        run: as its journals tell it.
        steps: its numbers.
    """

    run: Run
    steps: list[StepPhases]

    @property
    def title(self) -> str:
        """What it is called."""
        return self.run.name or self.run.prefix or "run"

    @property
    def left_out(self) -> int:
        """How many of its steps are too many to be measured."""
        return count_steps(self.run) - len(self.steps)

    @property
    def hosts(self) -> int:
        """On how many boots of hosts it ran: their clocks are not the same."""
        return len({process.boot for process in self.run.processes})

    @cached_property
    def alignment(self) -> Alignment:
        """Where the hosts' clocks stand."""
        return Alignment([self.run])


@dataclass
class Report:
    """All runs below a directory.

    Attributes:
        directory: as it was given.
        findings: of the check, the gravest first.
    """

    directory: str
    runs: list[RunReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def count(self, severity: str) -> int:
        """Return how many findings are of a severity."""
        return sum(finding.code.severity == severity for finding in self.findings)


def gather(directory: str, progress: Callable[[int, int], None] | None = None) -> Report:
    """Check everything below a directory and measure the runs there.

    Args:
        directory: of a run, or of several.
        progress: called with how much was read, and of how much.

    Raises:
        OSError: the directory cannot be read.
    """
    from profwin.evidence.check import check

    result = check(directory, progress=progress)
    return Report(directory, [RunReport(run, measure(run)) for run in result.runs], result.findings)


def as_json(report: Report) -> dict[str, Any]:
    """Return it as JSON values; times in seconds, shares from 0 to 1, steps by attempt and number."""
    return {
        "schema": SCHEMA,
        "directory": report.directory,
        "runs": [
            {
                "name": run.run.name,
                "directory": run.run.prefix or ".",
                "attempts": run.run.attempts,
                "processes": len(run.run.processes),
                "hosts": run.hosts,
                "clocks": {"uncertainty": run.alignment.by_host(), "notes": run.alignment.notes},
                "steps_left_out": run.left_out,
                "seconds": _seconds(totals(run.steps)),
                "steps": [_step(step) for step in run.steps],
            }
            for run in report.runs
        ],
        "findings": [finding.as_json() for finding in report.findings],
    }


def _step(step: StepPhases) -> dict[str, Any]:
    return {
        "attempt": step.attempt,
        "step": step.step,
        "start": step.start,
        "seconds": step.span / 1e9,
        "shares": {kind: round(step.share(kind), 6) for kind in KINDS},
        "overlap": {"seconds": step.overlap / 1e9, "share": round(_part(step.overlap, step.span), 6)},
        "generated_with": step.generated_with,
        "trained_at": step.trained_at,
        "staleness": step.staleness,
        "ranks": [_ranks(each) for each in step.ranks],
        "profiling": {
            **{kind: step.costs[kind] / 1e9 for kind in COSTS},
            "together": step.cost / 1e9,
            "share": round(_part(step.cost, step.span), 6),
            "process": step.coster or None,
        },
        "bubbles": [
            {
                "device": device.lane.key,
                "kind": piece.kind,
                "cause": piece.cause,
                "start": (piece.start - step.start) / 1e9,
                "seconds": (piece.end - piece.start) / 1e9,
            }
            for device, piece in step.bubbles()[:LONGEST_BUBBLES]
        ],
        "devices": [_device(device) for device in step.devices],
    }


def _device(device: DevicePhases) -> dict[str, Any]:
    return {
        "device": device.lane.key,
        "host": device.lane.host,
        "workers": device.lane.workers,
        "seconds": _seconds(device.kinds),
        "causes": {cause: device.causes[cause] / 1e9 for cause in CAUSES},
        "stages": _seconds(device.stages),
    }


def _ranks(ranks: Ranks) -> dict[str, Any]:
    return {
        "kind": ranks.kind,
        "name": ranks.name,
        "role": ranks.role,
        "ranks": ranks.workers,
        "slowest": ranks.slowest,
        "device": ranks.device,
        "seconds": ranks.longest / 1e9,
        "median_of_others": None if ranks.typical is None else ranks.typical / 1e9,
        "behind": ranks.behind / 1e9,
    }


def _seconds(times: dict[str, int]) -> dict[str, float]:
    return {name: time / 1e9 for name, time in times.items()}


def _part(time: int, whole: int) -> float:
    return min(time / whole, 1.0) if whole else 0.0
