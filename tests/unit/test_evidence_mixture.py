"""Mixture: what traces alone tell about rollout and training at once, and why they often cannot."""

from __future__ import annotations

import pytest

from profwin.evidence.mixture import mixed_traces
from profwin.evidence.model import Clock, Name, Recording

CARD = "GPU-8f2d"


def recording(
    purpose: str | None,
    busy: tuple[int, int],
    *,
    card: str | None = CARD,
    clock: Clock | None = None,
    window: tuple[int, int] | None = None,
) -> Recording:
    """Return a trace of one device."""
    return Recording(
        "kineto", f"{purpose}.json", clock or Clock("wall", "host"), window, Name(purpose=purpose),
        device_busy={"0": [busy]}, physical={} if card is None else {"0": card},
    )  # fmt: skip


def codes(*recordings: Recording) -> list[str]:
    """Return the codes, in order."""
    return [finding.code.name for finding in mixed_traces(recordings)]


def test_activity_at_once_on_one_card_is_an_overlap() -> None:
    """By its identity and one host's clock the overlap is told to the nanosecond."""
    (finding,) = mixed_traces([recording("rollout", (0, 100)), recording("training", (99, 200))])
    assert finding.code.name == "overlap"
    assert finding.data == {"device": CARD, "seconds": 1e-9, "other": "training.json"}


@pytest.mark.parametrize(
    ("rollout", "training"),
    [
        (recording("rollout", (0, 100)), recording("training", (100, 200))),
        (recording("rollout", (0, 100)), recording("training", (50, 200), card="GPU-other")),
        (recording("rollout", (0, 100)), recording("rollout", (50, 200))),
        (recording("rollout", (0, 9), card=None, window=(0, 9)), recording("training", (9, 20), window=(9, 20))),
    ],
)
def test_what_is_apart_is_no_finding(rollout: Recording, training: Recording) -> None:
    """Other times, other cards, one purpose, and windows of one host that lie apart are all unmixed."""
    assert not codes(rollout, training)


@pytest.mark.parametrize(
    ("training", "why"),
    [
        (recording("training", (50, 200), card=None), "no identity of the device"),
        (recording("training", (50, 200), clock=Clock("unknown")), "not aligned"),
        (recording("training", (50, 200), clock=Clock("wall", "other")), "different hosts"),
        (recording("training", (50, 200), clock=Clock("monotonic", "host", "b")), "not aligned"),
    ],
)
def test_what_cannot_be_told_says_why(training: Recording, why: str) -> None:
    """Without identities, or with clocks that are not aligned, nothing is claimed either way."""
    (finding,) = mixed_traces([recording("rollout", (0, 100)), training])
    assert finding.code.name == "cannot-tell"
    assert why in finding.detail


def test_a_cards_identity_makes_its_traces_one_hosts() -> None:
    """Two files that name no host but one card share that host's clock; monotonic ones must share the boot."""
    unnamed = Clock("wall")
    overlapping = (50, 200)
    assert codes(recording("rollout", (0, 100), clock=unnamed), recording("training", overlapping, clock=unnamed)) == [
        "overlap"
    ]
    for boots, expected in ((("b", "b"), ["overlap"]), (("b", "c"), ["cannot-tell"]), (("", ""), ["cannot-tell"])):
        first, second = (Clock("monotonic", "host", boot) for boot in boots)
        pair = recording("rollout", (0, 100), clock=first), recording("training", overlapping, clock=second)
        assert codes(*pair) == expected


def test_windows_of_unknown_hosts_prove_nothing() -> None:
    """Times that lie apart on two clocks are no proof, whose devices are not known either."""
    unnamed = Clock("wall")
    first = recording("rollout", (0, 9), card=None, clock=unnamed, window=(0, 9))
    second = recording("training", (20, 30), card=None, clock=unnamed, window=(20, 30))
    assert codes(first, second) == ["cannot-tell"]


def test_traces_of_an_unknown_purpose_are_a_remark() -> None:
    """Two traces of which it is not known what they are of cannot be judged; one alone needs not."""
    unknown = recording(None, (0, 100))
    assert codes(unknown, recording("training", (50, 200))) == ["purpose-unknown"]
    assert not codes(unknown)
    assert not codes()
