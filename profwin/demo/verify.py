"""The demo's verification: from a run's files alone, was every collection apart and is everything there?

It reads the journals and, independently of them, the times inside the traces. It knows nothing of the device
lock; with the lock taken away it fails (a test holds it to that).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from profwin.demo.witness import read_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from profwin.demo.witness import Collection, Evidence

__all__ = ["STAGES", "Check", "StepWork", "verify", "verify_second_profiler"]

STAGES = ("old_log_prob", "ref_log_prob", "advantages", "actor_update")
"""The training stages of a step, in order."""

CLOCK_TOLERANCE = 50_000_000
"""Nanoseconds by which a trace may stick out of its collection: the profiler's clock is another one."""


@dataclass(frozen=True)
class StepWork:
    """What a step did, as its processes counted it themselves.

    Attributes:
        windows: decoding steps in each of its windows, by the window's name; None where only a server knows.
        updates: of the optimizer.
        generated_with: versions of the weights that generated the samples it was trained on.
        trainers: how many processes trained on it, each on a part.
    """

    windows: dict[str, int | None]
    updates: int
    generated_with: list[int]
    trainers: int = 1

    def expected(self, name: str) -> dict[str, int]:
        """Return operators that must be in the trace of a window or stage, and exactly how often.

        Fewer would mean that a part was lost, more that something else got into it.
        """
        if name in self.windows:
            decoded = self.windows[name]
            return {} if decoded is None else {"aten::multinomial": decoded}
        forward = {"aten::_log_softmax": self.trainers, "aten::gather": self.trainers}
        return {
            "old_log_prob": forward,
            "ref_log_prob": forward,
            "advantages": {"aten::sub": self.trainers, "aten::div": self.trainers},
            "actor_update": {"Optimizer.step#Adam.step": self.updates, "aten::_log_softmax": self.updates},
        }[name]


@dataclass(frozen=True)
class Check:
    """One thing that was verified; it holds when there are no problems."""

    what: str
    problems: list[str]

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return not self.problems


def verify(evidence: Evidence, work: Mapping[int, StepWork], *, misuse: bool = False) -> list[Check]:
    """Check a run.

    Args:
        evidence: what its directory holds.
        work: for each profiled step, what it did.
        misuse: something was done wrong on purpose: then data may be missing if the journal names it.
    """
    checks = [
        Check(
            "journals: no rollout collection overlaps a training collection of its device",
            list(_overlaps(evidence)),
        ),
        Check(
            "traces: no rollout trace overlaps a training trace of its device",
            list(_trace_overlaps(evidence)),
        ),
        Check("traces lie within the times that the journals give for them", list(_outside(evidence))),
        Check("every collection is closed, and only profiled steps have any", list(_loose(evidence, work))),
    ]
    missing = dict(_missing(evidence, work))
    if misuse:
        unnamed = [
            f"{what}; nor does the journal say why" for key, what in missing.items() if not _named(evidence, *key)
        ]
        checks.append(Check("what is missing is named in the journal", unnamed))
    else:
        checks.append(Check("each profiled step has its windows and all stages, whole", list(missing.values())))
        skips = [
            f"{event.name!r} of step {event.step} ran unrecorded: {event.record.get('reason')}"
            for event in evidence.events
            if event.record["kind"] == "skip"
        ]
        checks.append(Check("nothing was skipped", skips))
    return checks


def verify_second_profiler(directory: str, steps: int) -> Check:
    """Check that the profiler that the training code ran itself kept its data: the stage's, in every step."""
    problems = []
    for step in range(1, steps + 1):
        try:
            trace = read_trace(directory, f"step_{step:06}.json")
        except (OSError, ValueError, KeyError) as error:
            problems.append(f"its trace of step {step}: {type(error).__name__}: {error}")
            continue
        if trace.operators["aten::_log_softmax"] != 1:
            problems.append(f"its trace of step {step} lacks the stage's forward pass")
    return Check("the training code's own profiler kept all its data", problems)


def _pairs(collections: Sequence[Collection]) -> Iterator[tuple[Collection, Collection]]:
    rollouts = [collection for collection in collections if collection.purpose == "rollout"]
    trainings = [collection for collection in collections if collection.purpose == "training"]
    for rollout, training in product(rollouts, trainings):
        if set(rollout.devices) & set(training.devices):
            yield rollout, training


def _overlaps(evidence: Evidence) -> Iterator[str]:
    endless = 1 << 62
    if evidence.collections and not any(collection.devices for collection in evidence.collections):
        yield "no collection names a device, so nothing was guarded"
    for rollout, training in _pairs(evidence.collections):
        start = max(rollout.opened, training.opened)
        end = min(rollout.closed or endless, training.closed or endless)
        if start < end:
            length = "without end" if end == endless else f"{(end - start) / 1e6:.3f} ms"
            yield f"{rollout.title()} and {training.title()} overlap: {length}"


def _trace_overlaps(evidence: Evidence) -> Iterator[str]:
    for rollout, training in _pairs(evidence.collections):
        for first, second in product(evidence.traces_of(rollout), evidence.traces_of(training)):
            overlap = min(first.ended, second.ended) - max(first.started, second.started)
            if overlap > 0:
                yield f"{first.path} and {second.path} overlap: {overlap / 1e6:.3f} ms"


def _outside(evidence: Evidence) -> Iterator[str]:
    yield from evidence.unreadable
    claimed = set()
    for collection in evidence.collections:
        for trace in evidence.traces_of(collection):
            claimed.add(trace.path)
            early = collection.opened + collection.offset - trace.started
            late = 0 if collection.closed is None else trace.ended - collection.closed - collection.offset
            if max(early, late) > CLOCK_TOLERANCE:
                yield f"{trace.path} lies {max(early, late) / 1e6:.3f} ms outside {collection.title()}"
            # A server writes none of what it is told into its trace.
            if trace.metadata and (said := trace.metadata.get("step")) != collection.step:
                yield f"{trace.path} says step {said}, the journal says {collection.title()}"
    yield from (f"{path} belongs to no collection of the journals" for path in sorted(set(evidence.traces) - claimed))


def _loose(evidence: Evidence, work: Mapping[int, StepWork]) -> Iterator[str]:
    for collection in evidence.collections:
        if collection.closed is None:
            yield f"{collection.title()} was never closed"
        if collection.step not in work:
            yield f"{collection.title()} was recorded although its step is not profiled"


def _missing(evidence: Evidence, work: Mapping[int, StepWork]) -> Iterator[tuple[tuple[int, str], str]]:
    for step, done in sorted(work.items()):
        for name in (*done.windows, *STAGES):
            found = [
                trace
                for collection in evidence.collections
                if (collection.step, collection.name) == (step, name)
                for trace in evidence.traces_of(collection)
            ]
            if not found:
                yield (step, name), f"step {step} has no trace of {name!r}"
                continue
            for operator, expected in done.expected(name).items():
                count = sum(trace.operators[operator] for trace in found)
                if count != expected:
                    text = f"the trace of {name!r} in step {step} holds {operator} {count} times, not {expected}"
                    yield (step, name), text


def _named(evidence: Evidence, step: int, name: str) -> bool:
    """Say whether the journals tell why there is no whole trace of this window or stage."""
    if any(event.record["kind"] == "skip" and (event.step, event.name) == (step, name) for event in evidence.events):
        return True
    return any(
        collection.error
        or any(record.get("error") for record in collection.exports)
        or _found_within(evidence, collection)
        for collection in evidence.collections
        if (collection.step, collection.name) == (step, name)
    )


def _found_within(evidence: Evidence, collection: Collection) -> bool:
    # A finding has no step of its own; one that was made while this collection was open or being closed is
    # about it.
    return any(
        event.record["kind"] == "finding"
        and event.role == collection.role
        and collection.opened <= event.time <= (collection.closed or 0)
        for event in evidence.events
    )
