"""What presence says of a run, and runs of windows and stages in some steps."""

from __future__ import annotations

from collections import Counter

from profwin.evidence.expectation import expect, options
from profwin.evidence.presence import presence
from profwin.evidence.run import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from journal_builder import JournalBuilder

    from profwin.evidence.finding import Finding


def found(directory: Path, **asked: str) -> list[Finding]:
    """Return what presence says of a run, which must have no damage."""
    run = load(str(directory))
    assert not run.findings, run.findings
    return list(presence(run, expect(run, options(**asked))))


def codes(directory: Path, **asked: str) -> Counter[str]:
    """Return how often each code is raised."""
    return Counter(finding.code.name for finding in found(directory, **asked))


def steps(journal: JournalBuilder, *numbers: int, last: int | None = 5, stages: tuple[str, ...] = ("update",)) -> None:
    """Let a process record a window and stages in each of some steps, learn of a last one, and end."""
    for step in numbers:
        journal.step(step, step * 10)
        journal.window(step, step * 10, step * 10 + 1)
        for place, name in enumerate(stages, 2):
            journal.stage(step, step * 10 + place, step * 10 + place + 0.5, name)
    if last is not None:
        journal.step(last, last * 10 + 9, selected=False)
    journal.end().save()
