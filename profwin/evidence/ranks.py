"""Ranks: whether each rank and role of a run is there, and did what its siblings did, once."""

from __future__ import annotations

from profwin.evidence import codes_run as codes
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection as Sized
    from collections.abc import Iterator

    from profwin.evidence.expectation import Expectation
    from profwin.evidence.run import Interval, Run

__all__ = ["LARGEST_COMPARISON", "listed", "ranks"]

MOST_RANKS = 100_000
LARGEST_COMPARISON = 50_000_000
"""Pairs of a name and a step or a rank that are compared: real runs have a thousandth."""


def ranks(run: Run, expectation: Expectation) -> Iterator[Finding]:
    """Say which ranks and roles are missing, lack what others have, have something twice, or were not asked for."""
    yield from _worlds(run, expectation)
    yield from _asked(run, expectation)
    yield from _siblings(run)
    yield from _occurrences(run)
    yield from _doubled(run)


def listed(numbers: Sized[int]) -> str:
    """Return numbers as text, not all where there are many."""
    some = sorted(numbers)[:8]
    return ", ".join(map(str, some)) + (f" and {len(numbers) - len(some)} more" if len(numbers) > len(some) else "")


def _worlds(run: Run, expectation: Expectation) -> Iterator[Finding]:
    """Compare the ranks that have journals with the sizes of the worlds that they say they are of."""
    worlds: dict[tuple[int, int], set[int]] = {}
    for process in run.processes:
        if process.world is not None and process.rank is not None:
            worlds.setdefault((process.attempt, process.world), set()).add(process.rank)
    for (attempt, world), seen in sorted(worlds.items()):
        asked = [rank for rank in range(min(world, MOST_RANKS)) if expectation.wants_rank(rank)]
        missing = [rank for rank in asked if rank not in seen]
        if missing:
            detail = f"attempt {attempt}: of {world} ranks, {listed(missing)} have no journal"
            data = {"attempt": attempt, "world": world, "ranks": missing[:100]}
            yield Finding(codes.MISSING_RANK, detail, run.path("journal"), data=data)
        if beyond := [rank for rank in seen if rank >= world]:
            detail = f"attempt {attempt}: ranks {listed(beyond)} of a world of {world}"
            yield Finding(codes.UNEXPECTED_RANK, detail, run.path("journal"), data={"ranks": beyond[:100]})


def _asked(run: Run, expectation: Expectation) -> Iterator[Finding]:
    recorded = [interval for interval in run.intervals if interval.what != "span"]
    processes = {id(interval.process): interval.process for interval in recorded if interval.collection is not None}
    for process in processes.values():
        if not expectation.wants_rank(process.rank):
            detail = f"{process.label} recorded, and its rank was not asked for"
            yield Finding(codes.UNEXPECTED_RANK, detail, run.path(process.journal), data={"rank": process.rank})
    roles = {interval.role for interval in recorded} | {interval.process.role for interval in recorded}
    for role in expectation.named_roles:
        if role not in roles:
            yield Finding(codes.MISSING_ROLE, f"role {role!r}", run.path("journal"), data={"role": role})
    for role in sorted({each.role for each in recorded if each.collection is not None and each.role is not None}):
        if not expectation.wants_role(role):
            yield Finding(codes.UNEXPECTED_RANK, f"role {role!r}", run.path("journal"), data={"role": role})
    seen = {interval.process.rank for interval in recorded}
    if missing := [rank for rank in expectation.named_ranks() if rank not in seen]:
        detail = f"ranks {listed(missing)} were asked for, and have no window and no stage"
        yield Finding(codes.MISSING_RANK, detail, run.path("journal"), data={"ranks": missing[:100]})


def _siblings(run: Run) -> Iterator[Finding]:
    """Compare the ranks of one role: each that ever has a stage is to have it in each step, as often as the others."""
    counts: dict[tuple[int, str, str, str], dict[int, dict[int, int]]] = {}
    for each in run.intervals:
        rank = each.process.rank
        if each.what == "span" or rank is None or each.step is None:
            continue
        key = each.process.attempt, each.process.role or "", each.what, each.name
        there = counts.setdefault(key, {}).setdefault(each.step, {})
        there[rank] = max(there.get(rank, 0), each.occurrence)
    attending: dict[tuple[int, str], set[int]] = {}
    for process in run.processes:
        if process.rank is not None:
            attending.setdefault((process.attempt, process.role or ""), set()).add(process.rank)
    most_ranks = max(map(len, attending.values()), default=0)
    if sum(map(len, counts.values())) * most_ranks > LARGEST_COMPARISON:
        detail = f"{len(counts)} names on up to {most_ranks} ranks are too many to be compared"
        yield Finding(codes.LARGE_JOURNAL, detail, run.path("journal"))
        return
    for (attempt, role, what, name), steps in sorted(counts.items()):
        having = set[int]().union(*(step.keys() for step in steps.values()))
        if len(having) < 2:
            continue  # it may be the work of one rank alone
        for step, there in sorted(steps.items()):
            data = {"attempt": attempt, "step": step, what: name, "role": role}
            if missing := [rank for rank in attending[attempt, role] if rank not in there]:
                detail = f"{what} {name!r} of step {step}, role {role!r}: not on ranks {listed(missing)}, but on "
                detail += f"{len(there)} others"
                yield Finding(codes.MISSING_RANK, detail, run.path("journal"), data=data | {"ranks": missing[:100]})
            most = max(there.values())
            if fewer := [rank for rank, count in there.items() if count < most]:
                detail = f"{what} {name!r} of step {step}, role {role!r}: ranks {listed(fewer)} have fewer than {most}"
                yield Finding(codes.FEWER_OCCURRENCES, detail, run.path("journal"), data=data | {"ranks": fewer[:100]})


def _occurrences(run: Run) -> Iterator[Finding]:
    """Look for gaps in the numbers of what one process did more than once in a step."""
    numbers: dict[tuple[int, int | None, str, str], list[Interval]] = {}
    for each in run.intervals:
        if each.what != "span":
            numbers.setdefault((id(each.process), each.step, each.what, each.name), []).append(each)
    for (_, step, what, name), found in numbers.items():
        there = {each.occurrence for each in found}
        most = max(there)
        if most > len(there):
            missing = [number for number in range(1, min(most, MOST_RANKS)) if number not in there]
            detail = f"{what} {name!r} of step {step}: number {listed(missing)} of {most}"
            data = {"step": step, what: name, "occurrences": missing[:100]}
            yield Finding(codes.MISSING_OCCURRENCE, detail, run.path(found[0].process.journal), data=data)


def _doubled(run: Run) -> Iterator[Finding]:
    """Look for two recordings of what can be there once: by one process, or by two that are one rank of one role."""
    seen: dict[tuple[object, ...], Interval] = {}
    for each in run.intervals:
        process = each.process
        if each.what == "span" or each.collection is None:
            continue
        rank = (process.role, process.rank, process.boot, each.devices)  # one name may be that of devices of two hosts
        who = rank if process.rank is not None else (id(process),)
        key = (process.attempt, *who, each.what, each.name, each.step, each.occurrence)
        other = seen.setdefault(key, each)
        if other is not each:
            detail = f"{each.what} {each.name!r} of step {each.step}, number {each.occurrence}, by {process.label}"
            detail += f" and before by {other.process.label}"
            data = {"step": each.step, each.what: each.name, "rank": process.rank, "journal": other.process.journal}
            yield Finding(codes.DOUBLED, detail, run.path(process.journal), data=data)
