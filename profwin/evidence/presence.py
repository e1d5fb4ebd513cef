"""Presence: whether the steps, stages, roles and ranks that were asked for are there, each once, and nothing else."""

from __future__ import annotations

from itertools import islice

from profwin.evidence import codes_run as codes
from profwin.evidence.codes_backends import OF_BACKENDS
from profwin.evidence.codes_engines import OF_ENGINES
from profwin.evidence.codes_plan import OF_PLANS
from profwin.evidence.codes_ray import OF_RAY
from profwin.evidence.finding import Finding
from profwin.evidence.layout import layout
from profwin.evidence.losses import exports, losses
from profwin.evidence.ranks import LARGEST_COMPARISON, ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from profwin.evidence.expectation import Expectation
    from profwin.evidence.run import Run
    from profwin.selection import Selection

__all__ = ["presence"]

LONGEST_SEARCH = 200_000
"""Steps that are looked at one by one."""

MOST_NAMED = 100


def presence(run: Run, expectation: Expectation) -> Iterator[Finding]:
    """Say what of a run is missing, there twice, or not asked for; and all that was skipped or ended early.

    Args:
        run: the run.
        expectation: what was asked for, from `profwin.evidence.expectation.expect`.
    """
    yield from expectation.findings
    yield from _steps(run, expectation)
    yield from _stages(run, expectation)
    yield from ranks(run, expectation)
    yield from layout(run, expectation)
    yield from losses(run)
    yield from exports(run)
    yield from _notes(run)


def _steps(run: Run, expectation: Expectation) -> Iterator[Finding]:
    there = {interval.step for interval in run.intervals} | {collection.step for collection in run.collections}
    if not there and not run.skips:
        yield Finding(codes.NOTHING_RECORDED, f"{len(run.processes)} processes, no window and no stage", run.path("."))
    passed = _passed(run)
    selected = {change.step for change in run.steps if change.selected}
    if expectation.steps is not None and passed:
        selected = {step for step in selected if step in expectation.steps}
        selected |= set(_members(expectation.steps, [(first, last) for first, last in passed.values()]))
    missing = sorted(selected - there)
    for step in missing[:MOST_NAMED]:
        detail = f"step {step} was passed, and has neither a window nor a stage"
        yield Finding(codes.MISSING_STEP, detail, run.path("."), data={"step": step})
    if len(missing) > MOST_NAMED:
        detail = f"{len(missing) - MOST_NAMED} further steps, from {missing[MOST_NAMED]}"
        yield Finding(codes.MISSING_STEP, detail, run.path("."), data={"steps": missing[MOST_NAMED : 2 * MOST_NAMED]})
    yield from _not_reached(run, expectation, passed)
    yield from _unexpected(run, expectation.steps)


def _unexpected(run: Run, steps: Selection | None) -> Iterator[Finding]:
    if steps is None:
        return
    asked = {step: step in steps for step in {collection.step for collection in run.collections}}
    journals: dict[int, set[str]] = {}
    for each in run.collections:
        if not asked[each.step]:
            journals.setdefault(each.step, set()).add(each.process.journal)
    for step, by in sorted(journals.items()):
        detail = f"step {step}, while {str(steps)[:200]} was asked for; recorded by {len(by)} processes"
        yield Finding(codes.UNEXPECTED_STEP, detail, run.path(min(by)), data={"step": step})


def _passed(run: Run) -> dict[int, tuple[int, int]]:
    """Return the first and the last step that each attempt is known to have come to."""
    passed: dict[int, tuple[int, int]] = {}
    steps = [(change.process.attempt, change.step) for change in run.steps]
    steps += [(interval.process.attempt, interval.step) for interval in run.intervals if interval.step is not None]
    for attempt, step in steps:
        first, last = passed.get(attempt, (step, step))
        passed[attempt] = min(first, step), max(last, step)
    return passed


def _members(steps: Selection, ranges: Iterable[tuple[int, int]]) -> Iterator[int]:
    for first, last in ranges:
        yield from (step for step in range(max(first, 0), min(last, first + LONGEST_SEARCH) + 1) if step in steps)


def _not_reached(run: Run, expectation: Expectation, passed: dict[int, tuple[int, int]]) -> Iterator[Finding]:
    last = None if expectation.steps is None else expectation.steps.last
    if expectation.steps is None or last is None:
        return  # without end: no run reaches them all
    first_passed = min((first for first, _ in passed.values()), default=0)
    last_passed = max((last for _, last in passed.values()), default=-1)
    before = list(islice(_members(expectation.steps, [(0, first_passed - 1)]), 6)) if passed else []
    after = list(islice(_members(expectation.steps, [(last_passed + 1, last)]), 6))
    for steps, where in ((before, f"it began with step {first_passed}"), (after, f"it came to step {last_passed}")):
        if steps:
            named = ", ".join(map(str, steps[:5])) + (" and more" if len(steps) > 5 else "")
            detail = f"asked for {named}; {where if passed else 'no process knew of any step'}"
            yield Finding(codes.STEP_NOT_REACHED, detail, run.path("."), data={"steps": steps[:5]})


def _stages(run: Run, expectation: Expectation) -> Iterator[Finding]:
    """Compare the names of windows and stages in each step with those that were asked for, and with other steps'."""
    names: dict[int, set[tuple[str, str]]] = {}
    held: dict[tuple[str, str], tuple[int, int]] = {}  # the first step of each name, and in how many it is
    for interval in run.intervals:
        if interval.step is not None and interval.what != "span":
            names.setdefault(interval.step, set()).add((interval.what, interval.name))
    for step, found in sorted(names.items()):
        for key in found:
            first, count = held.get(key, (step, 0))
            held[key] = first, count + 1
    if len(names) * (len(held) + len(expectation.named_stages)) > LARGEST_COMPARISON:
        detail = f"{len(held)} names in {len(names)} steps are too many to be compared"
        yield Finding(codes.LARGE_JOURNAL, detail, run.path("journal"))
    else:
        for step, found in sorted(names.items()):
            yield from _step(run, expectation, step, found, held)
    recorded = {each.name for each in run.intervals if each.what == "stage" and each.collection is not None}
    for name in sorted(recorded):
        if not expectation.wants_stage(name):
            yield Finding(codes.UNEXPECTED_STAGE, f"stage {name!r}", run.path("."), data={"stage": name})


def _step(
    run: Run,
    expectation: Expectation,
    step: int,
    found: set[tuple[str, str]],
    held: dict[tuple[str, str], tuple[int, int]],
) -> Iterator[Finding]:
    present = {name for _, name in found}
    for name in expectation.named_stages:
        if name not in present:
            detail = f"{name!r} was asked for and is not in step {step}"
            yield Finding(codes.MISSING_STAGE, detail, run.path("."), data={"step": step, "stage": name})
    for what, name in sorted(held.keys() - found - run.uneven):
        if what == "stage" and name not in expectation.named_stages:
            first, count = held[what, name]
            detail = f"stage {name!r} is not in step {step}, but in {count} others, such as {first}"
            yield Finding(codes.UNEVEN_STAGE, detail, run.path("."), data={"step": step, "stage": name})
    windows = {key for key in held if key[0] == "window"}
    if windows - run.uneven and not windows & found:
        detail = f"step {step} has {len(found)} kinds of stages and no rollout window"
        yield Finding(codes.MISSING_WINDOW, detail, run.path("."), data={"step": step})


_NOTED = OF_BACKENDS | OF_ENGINES | OF_PLANS | OF_RAY


def _notes(run: Run) -> Iterator[Finding]:
    """Pass on what processes noted, but for what is said under codes of its own."""
    for note in run.notes:
        if code := _NOTED.get(note.code):
            yield Finding(code, note.detail, run.path(note.process.journal))
        elif note.code not in ("no-stages", "late-stop", "engine-died"):
            detail = f"{note.code}: {note.detail}"
            yield Finding(codes.NOTED, detail, run.path(note.process.journal), data={"noted": note.code})
    for process in run.processes:
        if process.dropped:
            detail = f"{process.label} could not write {process.dropped} records"
            yield Finding(codes.DROPPED_RECORDS, detail, run.path(process.journal), data={"dropped": process.dropped})
