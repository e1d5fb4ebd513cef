"""The other kind of overlap: rollout and training at the same time on devices that are not shared, which is wanted.

It is measured twice, from the journals' times and from the traces' own.
"""

from __future__ import annotations

from dataclasses import dataclass

from profwin.demo.verify import Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from profwin.demo.witness import Collection, Evidence

    Span: TypeAlias = tuple[int, int]

__all__ = ["Overlap", "measure", "verify_overlap"]


@dataclass(frozen=True)
class Overlap:
    """How much of a step's rollout on one device ran while training ran on others; in nanoseconds.

    Attributes:
        device: of the rollout.
        others: the devices of that training.
        rollout: how long the step's windows on the device were open.
        beside: how much of that lies beside training, by the journals.
        beside_in_traces: likewise, by the traces.
    """

    step: int
    device: str
    others: tuple[str, ...]
    rollout: int
    beside: int
    beside_in_traces: int

    @property
    def share(self) -> float:
        """The part of the rollout that lies beside training, by the journals, from 0.0 to 1.0."""
        return self.beside / self.rollout if self.rollout else 0.0


def measure(evidence: Evidence, steps: Iterable[int]) -> list[Overlap]:
    """Measure the given steps; devices where nothing was beside training of others are left out."""
    found = []
    trainings = [each for each in evidence.collections if each.purpose == "training"]
    for step in steps:
        for device in evidence.devices:
            windows = [
                each
                for each in evidence.collections
                if each.purpose == "rollout" and each.step == step and device in each.devices
            ]
            elsewhere = [
                each for each in trainings if not any(set(each.devices) & set(window.devices) for window in windows)
            ]
            rollout = _spans(windows)
            beside = [each for each in elsewhere if _common(rollout, _spans([each]))]
            if beside:
                overlap = Overlap(
                    step=step,
                    device=device,
                    others=tuple(sorted({key for each in beside for key in each.devices})),
                    rollout=sum(end - start for start, end in rollout),
                    beside=_common(rollout, _spans(elsewhere)),
                    beside_in_traces=_common(_trace_spans(evidence, windows), _trace_spans(evidence, elsewhere)),
                )
                found.append(overlap)
    return found


def verify_overlap(overlaps: Sequence[Overlap], steps: Iterable[int]) -> Check:
    """Check that in each of the steps devices that are not shared did not wait for each other."""
    problems = []
    for step in steps:
        mine = [each for each in overlaps if each.step == step]
        if not any(each.beside for each in mine):
            problems.append(f"by the journals, no rollout of step {step} ran while another device trained")
        elif not any(each.beside_in_traces for each in mine):
            problems.append(f"by the traces, no rollout of step {step} ran while another device trained")
    return Check("rollout ran while training ran on a device that is not shared, which is wanted", problems)


def _spans(collections: Iterable[Collection]) -> list[Span]:
    return _joined((each.opened, each.closed) for each in collections if each.closed is not None)


def _trace_spans(evidence: Evidence, collections: Iterable[Collection]) -> list[Span]:
    return _joined((trace.started, trace.ended) for each in collections for trace in evidence.traces_of(each))


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _common(some: list[Span], others: list[Span]) -> int:
    return sum(max(0, min(first[1], second[1]) - max(first[0], second[0])) for first in some for second in others)
