"""Slow stops: what keeps the other ranks of a process group waiting for too long, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from journal_builder import JournalBuilder

from profwin.evidence.run import load
from profwin.evidence.unmixed import unmixed

if TYPE_CHECKING:
    from pathlib import Path

    from profwin.evidence.finding import Finding


def found(directory: Path, timeout: float | None = None) -> list[Finding]:
    """Return what is mixed in a run, whose journals must not be damaged."""
    run = load(str(directory))
    assert not run.findings, run.findings
    return list(unmixed(run, timeout=timeout))


@pytest.mark.parametrize(
    ("seconds", "timeout", "slow"), [(149, None, False), (151, None, True), (151, 1800.0, False), (3, 10.0, True)]
)
def test_slow_stops(tmp_path: Path, seconds: float, timeout: float | None, slow: bool) -> None:
    """Over a quarter of the process group's timeout is too long, of torch's default where it is not known."""
    journal = JournalBuilder(tmp_path, world=2)
    _, collection = journal.stage(2, 1, 2, seconds=seconds - 1)
    journal.write("export", 3, collection=collection, backend="torch", seconds=1.0, path="a.json")
    journal.end().save()
    assert [finding.code.name for finding in found(tmp_path, timeout)] == ["slow-stop"] * slow
    assert all(("torch's for NCCL" in finding.detail) == (timeout is None) for finding in found(tmp_path, timeout))


@pytest.mark.parametrize(("seconds", "slow"), [(5.1, True), (4.9, False)])
def test_slow_stops_by_the_journals_own_timeout(tmp_path: Path, seconds: float, slow: bool) -> None:
    """The timeout that a journal holds counts, whatever else is said of it."""
    journal = JournalBuilder(tmp_path, world=2)
    _, collection = journal.stage(2, 1, 2, seconds=seconds - 1)
    journal.write("export", 3, collection=collection, backend="torch", seconds=1.0, path="a.json", group_timeout=20.0)
    journal.end().save()
    for timeout in (None, 1.0, 9999.0):
        assert [finding.code.name for finding in found(tmp_path, timeout)] == ["slow-stop"] * slow
        assert all(finding.data["limit"] == 5.0 for finding in found(tmp_path, timeout))


def test_a_rank_alone_keeps_nobody_waiting(tmp_path: Path) -> None:
    """In a world of one, and for windows, a slow stop delays no other rank."""
    journal = JournalBuilder(tmp_path, world=1)
    journal.stage(2, 1, 2, seconds=999)
    journal.end().save()
    other = JournalBuilder(tmp_path, pid=7, world=2)
    other.window(2, 3, 4, seconds=999)
    other.end().save()
    assert not found(tmp_path)
