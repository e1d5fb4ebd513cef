"""The table and the JSON that a run of the benchmarks leaves."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import Estimate, Plan, percentile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Figure", "Skipped", "difference", "document", "machine", "ratio", "spread", "table"]


class Figure(NamedTuple):
    """One line of the table.

    Attributes:
        benchmark: which benchmark measured it.
        what: what was measured, in words.
        value: the figure.
        unit: of the figure; ``"x"`` is a ratio.
        low, high: 95 % interval of the figure where it is a median of ratios or differences, else None.
        target: what it must reach, or None where it is shown for comparison alone.
        rule: ``"most"`` and ``"least"`` bound the figure; ``"same"`` wants an interval that holds 1 and is
            at most twice the target wide; ``"not more"`` one that begins at most at 1 and ends at most the target
            above it; ``"within"`` one whose ends both lie at most the target from 1.
        count: how many values the figure rests on.
        detail: further words.
    """

    benchmark: str
    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    target: float | None = None
    rule: str = "most"
    count: int = 0
    detail: str = ""

    @property
    def verdict(self) -> str:
        """Say ``reached`` or ``missed``, or nothing where there is no target."""
        if self.target is None:
            return ""
        if self.rule == "same" and self.low is not None and self.high is not None:
            reached = self.low <= 1.0 <= self.high and (self.high - self.low) / 2 <= self.target
        elif self.rule == "not more" and self.low is not None and self.high is not None:
            reached = self.low <= 1.0 and self.high <= 1.0 + self.target
        elif self.rule == "within" and self.low is not None and self.high is not None:
            reached = 1.0 - self.target <= self.low and self.high <= 1.0 + self.target
        else:
            reached = self.value >= self.target if self.rule == "least" else self.value <= self.target
        return "reached" if reached else "missed"


class Skipped(NamedTuple):
    """Something that was not measured.

    Attributes:
        benchmark: which benchmark would have measured it.
        what: what was left out.
        reason: why.
    """

    benchmark: str
    what: str
    reason: str


def ratio(
    benchmark: str,
    what: str,
    median: Estimate,
    target: float | None = None,
    *,
    rule: str = "most",
    detail: str = "",
) -> Figure:
    """Make the figure of a median ratio with its interval."""
    return Figure(benchmark, what, median.value, "x", median.low, median.high, target, rule, median.count, detail)


def difference(
    benchmark: str, what: str, median: Estimate, unit: str, target: float | None = None, *, detail: str = ""
) -> Figure:
    """Make the figure of a median difference, or of another median with a unit, with its interval."""
    return Figure(benchmark, what, median.value, unit, median.low, median.high, target, "most", median.count, detail)


def spread(
    benchmark: str, what: str, values: Sequence[float], unit: str, targets: Mapping[int, float | None], detail: str = ""
) -> list[Figure]:
    """Make the figures of a distribution: the percentiles named in ``targets``, and its maximum in words."""
    longest = f"max {max(values):.3g} {unit}" + (f"; {detail}" if detail else "")
    return [
        Figure(
            benchmark,
            f"{what}, p{share}",
            percentile(values, share),
            unit,
            target=target,
            count=len(values),
            detail=longest,
        )
        for share, target in targets.items()
    ]


def machine() -> dict[str, object]:
    """Describe what the figures were measured on: no name, path or address of it."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    try:
        import torch

        torch_version = torch.__version__
    except ImportError:
        torch_version = "not installed"
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": torch_version,
        "implementation": sys.implementation.name,
    }


def table(lines: Iterable[Figure]) -> str:
    """Lay the figures out, one a line, the benchmarks in the order in which they ran."""
    rows = [("what", "measured", "95 % interval", "target", "verdict", "n", "")]
    previous = ""
    for line in lines:
        if line.benchmark != previous:
            rows.append((f"[{line.benchmark}]", "", "", "", "", "", ""))
            previous = line.benchmark
        between = "" if line.low is None or line.high is None else f"{_short(line.low)} to {_short(line.high)}"
        target = "" if line.target is None else f"{_SIGNS[line.rule]} {_short(line.target)} {line.unit}"
        rows.append(
            (
                "  " + line.what,
                f"{_short(line.value)} {line.unit}",
                between,
                target,
                line.verdict,
                str(line.count or ""),
                line.detail,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[6]]).rstrip()
        for row in rows
    )


_SIGNS = {"most": "<=", "least": ">=", "same": "1 +-", "not more": "<= 1 +", "within": "in 1 +-"}


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 0.9 else f"{value:.4g}"


def document(plan: Plan, host: dict[str, object], lines: Sequence[Figure], skipped: Sequence[Skipped]) -> str:
    """Write everything as JSON: ``machine``, ``plan``, ``figures``, ``skipped``."""
    return json.dumps(
        {
            "schema": 1,
            "machine": host,
            "plan": plan._asdict(),
            "figures": [{**line._asdict(), "verdict": line.verdict} for line in lines],
            "skipped": [line._asdict() for line in skipped],
        },
        indent=1,
    )
