"""Roster: what recordings that no journal names say they are of, held against what was asked for.

A name is what a file, its folder or its metadata says. Where nothing says a thing, nothing is concluded from that.
"""

from __future__ import annotations

from itertools import combinations

from profwin.evidence import codes_check, codes_run
from profwin.evidence.finding import Finding
from profwin.evidence.ranks import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from profwin.evidence.expectation import Expectation
    from profwin.evidence.model import Recording

__all__ = ["roster"]

MOST = 10_000
"""Steps, or ranks, that are looked at one by one."""
MOST_TOGETHER = 100
"""Recordings of one name that are compared in pairs."""


def roster(recordings: Sequence[Recording], expectation: Expectation) -> Iterator[Finding]:
    """Say which steps, stages, roles and ranks are missing, there twice, or not asked for.

    Args:
        recordings: those that no journal names.
        expectation: what options ask for.
    """
    if not recordings:
        return
    yield from _steps(recordings, expectation)
    yield from _names(recordings, expectation)
    yield from _ranks(recordings, expectation)
    yield from _twice(recordings)


def _steps(recordings: Sequence[Recording], expectation: Expectation) -> Iterator[Finding]:
    if expectation.steps is None:
        return
    there = {each.name.step for each in recordings if each.name.step is not None}
    if not there:
        detail = f"steps {expectation.steps} were asked for, and no recording says which step it is of"
        yield Finding(codes_run.MISSING_STEP, detail)
        return
    last = expectation.steps.last
    wanted = range(min(MOST, (max(there) if last is None else last) + 1))
    missing = [step for step in wanted if step in expectation.steps and step not in there]
    if missing:
        detail = f"no recording is of step {listed(missing)}"
        yield Finding(codes_run.MISSING_STEP, detail, data={"steps": missing[:100]})
    for each in recordings:
        if each.name.step is not None and each.name.step not in expectation.steps:
            yield Finding(codes_run.UNEXPECTED_STEP, f"step {each.name.step}", each.path)


def _names(recordings: Sequence[Recording], expectation: Expectation) -> Iterator[Finding]:
    stages: dict[int | None, set[str | None]] = {}
    for each in recordings:
        stages.setdefault(each.name.step, set()).add(each.name.stage)
    steps: list[int | None] = [*sorted(step for step in stages if step is not None)]
    for step in steps or [None]:
        for stage in expectation.named_stages:
            if stage not in stages.get(step, ()):
                detail = f"no recording{'' if step is None else f' of step {step}'} is of {stage!r}"
                yield Finding(codes_run.MISSING_STAGE, detail, data={"step": step, "stage": stage})
    roles = {each.name.role for each in recordings}
    for role in expectation.named_roles:
        if role not in roles:
            yield Finding(codes_run.MISSING_ROLE, f"role {role!r}", data={"role": role})
    for each in recordings:
        name = each.name
        if name.purpose == "training" and name.stage is not None and not expectation.wants_stage(name.stage):
            yield Finding(codes_run.UNEXPECTED_STAGE, f"stage {name.stage!r}", each.path)
        if not expectation.wants_rank(name.rank):
            yield Finding(codes_run.UNEXPECTED_RANK, f"rank {name.rank}", each.path)
        if not expectation.wants_role(name.role):
            yield Finding(codes_run.UNEXPECTED_RANK, f"role {name.role!r}", each.path)


def _ranks(recordings: Sequence[Recording], expectation: Expectation) -> Iterator[Finding]:
    """Compare the ranks of each stage and step with those asked for, else with the size of the world."""
    groups: dict[tuple[int | None, str, str, str], list[Recording]] = {}
    for each in recordings:
        key = (each.name.step, each.name.purpose or "", each.name.stage or "", each.name.role or "")
        groups.setdefault(key, []).append(each)
    named = expectation.named_ranks(MOST)
    for (step, _, stage, role), group in groups.items():
        seen = {each.name.rank for each in group if each.name.rank is not None}
        world = max((each.name.world or 0 for each in group), default=0)
        wanted = named or range(min(world, MOST))
        missing = [rank for rank in wanted if rank not in seen]
        if not missing:
            continue
        parts = (stage, role, "" if step is None else f"step {step}")
        of = f" of {', '.join(filter(None, parts))}" if any(parts) else ""
        data = {"step": step, "stage": stage, "ranks": missing[:100]}
        if named:
            yield Finding(codes_run.MISSING_RANK, f"rank {listed(missing)}{of} has no recording", data=data)
        else:
            detail = f"{len(seen)} of {world} ranks{of}; there is no recording of rank {listed(missing)}"
            yield Finding(codes_check.FEWER_RANKS, detail, data=data)


def _twice(recordings: Iterable[Recording]) -> Iterator[Finding]:
    """Look for two recordings of one name at one time: one after the other they may be parts of one stage."""
    groups: dict[tuple[object, ...], list[Recording]] = {}
    for each in recordings:
        name = each.name
        if name.rank is not None and name.step is not None and (name.stage or name.role) and each.window:
            key = (name.purpose, name.step, name.stage, name.role, name.rank, name.replica, name.occurrence)
            groups.setdefault((each.clock, *key), []).append(each)
    for group in groups.values():
        for first, second in combinations(group[:MOST_TOGETHER], 2):
            assert first.window is not None
            assert second.window is not None
            if max(first.window[0], second.window[0]) < min(first.window[1], second.window[1]):
                yield Finding(codes_run.DOUBLED, f"at the same time as {first.path!r}", second.path)
