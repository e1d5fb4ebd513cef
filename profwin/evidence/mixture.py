"""Mixture: rollout and training on one device at the same time, by traces alone, where no journal tells.

Nothing is said where devices or clocks cannot be told apart: an index is a process's own, and the clocks of two hosts
differ by more than a handover takes.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

from profwin.evidence import codes_run as codes
from profwin.evidence.finding import Finding
from profwin.evidence.unions import common, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from profwin.evidence.model import Clock, Recording

__all__ = ["mixed_traces"]

MOST_PAIRS = 1_000_000


def mixed_traces(recordings: Iterable[Recording]) -> Iterator[Finding]:
    """Say where traces of rollout and of training have device activity at the same time, or why that cannot be told.

    Args:
        recordings: those that no journal speaks of.
    """
    busy = [recording for recording in recordings if recording.device_busy]
    rollout = [recording for recording in busy if recording.name.purpose == "rollout"]
    training = [recording for recording in busy if recording.name.purpose == "training"]
    unknown = len(busy) - len(rollout) - len(training)
    reasons: Counter[str] = Counter()
    proven = 0
    for number, (first, second) in enumerate(product(rollout, training)):
        if number == MOST_PAIRS:
            reasons["there are more than a million pairs"] += 1
            break
        reason = _unclear(first, second)
        if reason:
            reasons[reason] += 1
            continue
        proven += 1
        yield from _together(first, second)
    if reasons:
        pairs = len(rollout) * len(training)
        why = "; ".join(f"{reason} ({count} pairs)" for reason, count in reasons.most_common(4))
        detail = f"{pairs - proven} of {pairs} pairs of a rollout trace and a training trace: {why}"
        yield Finding(codes.CANNOT_TELL, detail, data={"pairs": pairs, "told": proven})
    if unknown and len(busy) > 1:
        detail = f"{unknown} of {len(busy)} traces do not say whether they are of rollout or of training"
        yield Finding(codes.PURPOSE_UNKNOWN, detail, data={"traces": unknown})


def _unclear(first: Recording, second: Recording) -> str:
    """Return why two recordings cannot be compared; empty if they can, or are known to lie apart."""
    clocks = _clocks(first.clock, second.clock)
    if not clocks and _apart(first, second):
        return ""
    same = set(first.physical.values()) & set(second.physical.values())
    named = all(recording.device_busy.keys() <= recording.physical.keys() for recording in (first, second))
    if not same:
        # All devices have identities, and none is in both.
        return "" if named else "no identity of the device, only an index of its process"
    pretended = any(name.startswith("pretend-") for name in same)  # two hosts may have one of that name each
    if clocks and (pretended or _clocks(first.clock, second.clock, one_host=True)):
        return clocks
    return "" if named else "no identity of some devices, only an index of their process"


def _clocks(first: Clock, second: Clock, *, one_host: bool = False) -> str:
    """Return why two clocks are not aligned; empty if they are: one host's wall clock, or one boot's monotonic one."""
    if first.kind != second.kind or first.kind == "unknown":
        return f"times on clocks that are not aligned ({first.kind}, {second.kind})"
    if first.kind == "monotonic":
        return "" if first.boot and first.boot == second.boot else "monotonic clocks of different or unknown boots"
    if first.host and second.host:
        return "" if first.host == second.host else "wall clocks of different hosts, which are not aligned"
    # A device with one identity is in one host, so both clocks are that host's.
    return "" if one_host else "wall clocks of unknown hosts"


def _apart(first: Recording, second: Recording) -> bool:
    if first.window is None or second.window is None:
        return False
    return first.window[1] <= second.window[0] or second.window[1] <= first.window[0]


def _together(first: Recording, second: Recording) -> Iterator[Finding]:
    for identity in sorted(set(first.physical.values()) & set(second.physical.values())):
        spans = common(_busy(first, identity), _busy(second, identity))
        if spans:
            nanoseconds = sum(end - start for start, end in spans)
            detail = f"device {identity!r}: busy for {first.path!r} and {second.path!r} at once, {len(spans)} times, "
            detail += f"for {nanoseconds / 1e9:.6f} s in all, first at {spans[0][0]} ns"
            data = {"device": identity, "seconds": nanoseconds / 1e9, "other": second.path}
            yield Finding(codes.OVERLAP, detail, first.path, f"time {spans[0][0]}", data)


def _busy(recording: Recording, identity: str) -> list[tuple[int, int]]:
    keys = [key for key, physical in recording.physical.items() if physical == identity]
    return joined(span for key in keys for span in recording.device_busy.get(key, ()))
