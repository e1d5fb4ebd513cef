"""Checks of weight versions: what a window's generation was made with, and how old the samples were in training.

In each of the demo's loops, step *n* is what happens with weights of version *n* - 1 until version *n* is there.
"""

from __future__ import annotations

from profwin.demo.scheduler import DECODING
from profwin.demo.verify import Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from profwin.demo.verify import StepWork
    from profwin.demo.witness import Evidence

__all__ = ["verify_age", "verify_generation"]


def verify_generation(evidence: Evidence, work: Mapping[int, StepWork]) -> Check:
    """Check that each window and stage of step *n* belongs to version *n* - 1, by its trace.

    The engine writes the version that it generates with into the trace itself, independently of profwin.

    Args:
        evidence: what the run's directory holds.
        work: for each profiled step, what it did.
    """
    return Check("no window holds generation with weights of another step than its own", list(_mixed(evidence, work)))


def _mixed(evidence: Evidence, work: Mapping[int, StepWork]) -> Iterator[str]:
    for step, done in sorted(work.items()):
        decoded = dict.fromkeys(done.windows, 0)
        for collection in (each for each in evidence.collections if each.step == step):
            for trace in evidence.traces_of(collection):
                if (said := trace.metadata.get("weight_version")) != step - 1:
                    yield f"{trace.path} says weight version {said}, not {step - 1}"
                for name, count in trace.operators.items():
                    if not name.startswith(DECODING):
                        continue
                    decoded[collection.name] = decoded.get(collection.name, 0) + count
                    if name != f"{DECODING} {step - 1}":
                        yield f"{trace.path} holds {name!r} {count} times, in step {step}"
        for name, count in decoded.items():
            if count != done.windows.get(name, 0):
                yield f"{name!r} of step {step} holds {count} decoding steps, not {done.windows.get(name, 0)}"


def verify_age(evidence: Evidence, work: Mapping[int, StepWork], oldest: int) -> Check:
    """Check that no sample was too old when it was trained on, and that the manifest says how old they were.

    Args:
        evidence: what the run's directory holds.
        work: for every step of the run, what it did.
        oldest: by how many versions a sample may be behind.
    """
    problems = []
    for step, done in sorted(work.items()):
        age = step - 1 - min(done.generated_with)
        if not 0 <= age <= oldest or max(done.generated_with) >= step:
            problems.append(f"step {step} was trained on samples of the versions {done.generated_with}")
        if (entry := evidence.manifest.get(str(step))) is not None:
            said = {name: entry.get(name) for name in ("generated_with", "trained_at", "staleness")}
            true = {"generated_with": done.generated_with, "trained_at": [step - 1], "staleness": age}
            if said != true:
                problems.append(f"step {step} in the manifest: {said}, not {true}")
    versions = "the newest weights" if oldest == 0 else f"weights at most {oldest} version{'s'[: oldest > 1]} behind"
    return Check(f"samples were generated with {versions}, as the manifest says", problems)
