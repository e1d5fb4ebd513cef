"""Laws of estimated clocks: the truth lies within the uncertainty, at any time, over any chain; time is not bent."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import assume, given
from hypothesis import strategies as st

from profwin.evidence.clocks import DRIFT, Clocks, Link, drifted

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


class Drifting:
    """A clock that is ahead of another by a time, and drifts; its rate changes once."""

    def __init__(self, ahead, rates, change):
        self._ahead, self._rates, self._change = ahead, rates, change

    def ahead(self, time):
        """Return what it is ahead when the other shows some time."""
        first, second = self._rates
        before, after = min(time, self._change), max(0, time - self._change)
        return self._ahead + (before * first + after * second) // 1_000_000


RATES = st.tuples(*[st.integers(-DRIFT + 1, DRIFT - 1)] * 2)
CLOCKS = st.builds(Drifting, st.integers(-(10**15), 10**15), RATES, st.integers(0, 10 * HOUR))
POINTS = st.lists(
    st.tuples(st.integers(0, 10 * HOUR), st.integers(0, 10**8), st.floats(-1, 1)), min_size=1, max_size=6
)  # fmt: skip


def measured(clock, points):
    """Return estimates of a clock: each wrong by a part of its uncertainty."""
    return [(time, clock.ahead(time) + int(uncertainty * part), uncertainty + 1) for time, uncertainty, part in points]


@given(CLOCKS, POINTS, st.integers(-HOUR, 12 * HOUR))
def test_truth_is_within_the_uncertainty_at_any_time(clock, points, time):
    """Before, between and after the estimates, however far they are off within what they say of themselves."""
    link = Link(measured(clock, points))
    assert link.steady
    offset, uncertainty = link.at(time)
    assert abs(clock.ahead(time) - offset) <= uncertainty + 1  # one for the simulated clock's own rounding


@given(CLOCKS, POINTS, st.integers(-HOUR, 12 * HOUR), st.integers(0, HOUR))
def test_no_estimate_bends_time(clock, points, time, later):
    """What is placed by a link keeps its order, and its lengths but for what clocks may drift apart."""
    link = Link(measured(clock, points))
    assert abs(link.at(time + later)[0] - link.at(time)[0]) <= drifted(later) + 8


@given(CLOCKS, POINTS, st.integers(0, 10 * HOUR))
def test_more_estimates_never_make_it_worse(clock, points, time):
    """Each narrows what the others say: the truth is in all of them."""
    found = measured(clock, points)
    several = Link(found)
    low, high = max(o - u - drifted(time - t) for t, o, u in found), min(o + u + drifted(time - t) for t, o, u in found)
    offset, uncertainty = several.at(time)
    assert low - 8 <= offset <= high + 8
    assert uncertainty <= high - low + 8


def estimate(own, other, offset, uncertainty, at=0):
    """Return an estimate that a process of a boot made."""
    return SimpleNamespace(
        process=SimpleNamespace(boot=own), boot=other, host="", at=at, offset=offset, uncertainty=uncertainty
    )  # fmt: skip


@given(st.lists(CLOCKS, min_size=2, max_size=2), POINTS, POINTS, st.integers(0, 10 * HOUR))
def test_truth_is_within_the_uncertainty_of_a_chain(pair, first, second, time):
    """Over two links, one of them measured from the far end, the truth lies within their sum."""
    to_b, b_to_c = pair
    estimates = [estimate("a", "b", offset, more, at) for at, offset, more in measured(to_b, first)]
    # C measured B: by the clock of C, which is ahead of B's.
    for at, offset, more in measured(b_to_c, second):
        estimates.append(estimate("c", "b", -offset, more + drifted(more) + 1, at + offset))
    clocks = Clocks(estimates, ["a", "b", "c"])
    assume(not clocks.unsteady)
    on_b = time + to_b.ahead(time)
    on_c = on_b + b_to_c.ahead(on_b)
    placed, uncertainty = clocks.place("c", on_c)
    assert abs(placed - time) <= uncertainty + 4
