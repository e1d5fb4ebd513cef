"""The listing of a result for a terminal: what was found by step, the findings by code, and the verdict."""

from __future__ import annotations

from itertools import groupby

from profwin.evidence.escaping import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from profwin.evidence.finding import Code, Finding
    from profwin.evidence.result import Result, Row

__all__ = ["codes_text", "result_text", "span_text"]

MOST_ROWS = 40
MOST_FINDINGS = {"error": 10, "warning": 10, "remark": 3}
"""Of one code, by its severity; the rest is counted, and in the JSON."""


def result_text(result: Result, threshold: str) -> str:
    """Return the whole listing. Names from files are escaped."""
    parts = [_head(result)]
    if result.rows:
        parts.append(_table(result.rows))
    for _name, group in groupby(result.findings, key=lambda finding: finding.code.name):
        parts.append(_group(list(group)))
    parts.append(_verdict(result, threshold))
    return "\n\n".join(parts)


def codes_text(codes: Iterable[Code]) -> str:
    """Return what codes mean and what to do about each."""
    return "\n\n".join(
        f"{code.severity}: {code.name}\n  {code.meaning}\n  What to do: {code.remedy}" for code in codes
    )  # fmt: skip


def span_text(numbers: Iterable[int]) -> str:
    """Return numbers with runs drawn together: ``0-7,9``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _head(result: Result) -> str:
    formats = sorted({recording.format for recording in result.recordings})
    recordings = _counted(len(result.recordings), "recording") + (f" ({', '.join(formats)})" if formats else "")
    journals = _counted(sum(len(run.processes) for run in result.runs), "journal")
    runs = f"{_counted(len(result.runs), 'run')} with {journals}"
    return f"{printable(result.directory)}: {runs}, {recordings}; {result.seconds:.1f} s"


def _table(rows: list[Row]) -> str:
    cells = [("STEP", "WHAT", "RANKS", "RECORDED", "NOT RECORDED")]
    cells += [
        (
            "?" if row.step is None else str(row.step),
            _what(row),
            printable(span_text(row.ranks), 40) or "?",
            str(row.recorded),
            str(row.unrecorded or ""),
        )
        for row in rows[:MOST_ROWS]
    ]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    if len(rows) > MOST_ROWS:
        lines.append(f"… and {len(rows) - MOST_ROWS} more; --json has all")
    return "\n".join(lines)


def _what(row: Row) -> str:
    kind = {"rollout": "window", "training": "stage"}.get(row.purpose, "recording")
    return printable(f"{kind} {row.name or '?'}", 60)


def _group(findings: list[Finding]) -> str:
    code = findings[0].code
    times = f" ({len(findings)} times)" if len(findings) > 1 else ""
    lines = [f"{code.severity}: {code.name}{times}", f"  {code.meaning}"]
    most = MOST_FINDINGS[code.severity]
    lines += [f"  - {_line(finding)}" for finding in findings[:most]]
    if len(findings) > most:
        lines.append(f"  … and {len(findings) - most} more; --json has all")
    return "\n".join([*lines, f"  What to do: {code.remedy}"])


def _line(finding: Finding) -> str:
    where = ", ".join(filter(None, (printable(finding.file, 240), printable(finding.place, 120))))
    return f"{where}: {printable(finding.detail)}" if where else printable(finding.detail)


def _verdict(result: Result, threshold: str) -> str:
    counts = [_counted(count, severity) for severity, count in result.counts.items() if count]
    found = ", ".join(counts) or "no findings"
    return f"{'clean' if result.clean(threshold) else 'not clean'}: {found} (the threshold is {threshold})"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
