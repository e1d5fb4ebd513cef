"""Busy time: a union of intervals in fixed memory."""

from __future__ import annotations

import random

import pytest

from profwin.evidence.formats.busy import Busy


def union(intervals):
    """Return the union of small intervals by the plainest means: the moments that they cover."""
    moments = sorted({moment for start, end in intervals for moment in range(start, end)})
    merged = []
    for moment in moments:
        if merged and moment == merged[-1][1]:
            merged[-1][1] += 1
        else:
            merged.append([moment, moment + 1])
    return [tuple(one) for one in merged]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_union_in_any_order(seed):
    """Nested, touching and equal intervals are one, in whatever order they come and in however many parts."""
    chance = random.Random(seed)
    given = [(start, start + chance.randrange(1, 30)) for start in chance.choices(range(2000), k=300)]
    parts = [Busy(), Busy()]
    for start, end in given:
        chance.choice(parts).add(start, end)
    parts[0].update(parts[1])
    assert parts[0].merged() == union(given)
    assert parts[0].filled == 0


@pytest.mark.parametrize("size", [1, 7, 160, 1000])
def test_many_at_once_are_the_same_as_one_by_one(size):
    """In whatever parts intervals are added, the result is the same, also where it is coarse; memory has a limit."""
    chance = random.Random(size)
    given = [(start, start + chance.randrange(0, 30)) for start in chance.choices(range(100_000), k=3000)]
    single, many = Busy(limit=20), Busy(limit=20)
    for start, end in given:
        single.add(start, end)
    for number in range(0, len(given), size):
        many.extend(given[number : number + size])
        assert len(many._intervals) < 160
    assert many.merged() == single.merged()
    assert many.filled == single.filled > 0


def test_an_interval_inside_another():
    """The longer one counts."""
    busy = Busy()
    busy.add(0, 100)
    busy.add(10, 20)
    busy.add(50, 120)
    assert busy.merged() == [(0, 120)]


def test_beyond_the_limit_the_shortest_gaps_go_first():
    """The long gaps stay, and how long a filled one may be is said."""
    busy = Busy(limit=3)
    for start, end in ((0, 10), (12, 20), (21, 30), (90, 100), (200, 210)):
        busy.add(start, end)
    assert busy.merged() == [(0, 30), (90, 100), (200, 210)]
    assert busy.filled == 2


def test_gaps_of_equal_length_behind_a_long_one():
    """A long gap does not count among those that are filled."""
    busy = Busy(limit=3)
    for start, end in ((0, 10), (60, 70), (72, 80), (82, 90), (190, 200)):
        busy.add(start, end)
    assert busy.merged() == [(0, 10), (60, 90), (190, 200)]


def test_a_regular_pattern_does_not_become_one_interval():
    """Of gaps of one length only as many are filled as must be; memory stays at the limit."""
    busy = Busy(limit=100)
    for number in range(10_000):
        busy.add(number * 10, number * 10 + 5)
        assert len(busy._intervals) < 800
    merged = busy.merged()
    assert len(merged) == 100
    assert (merged[0][0], merged[-1][1]) == (0, 99_995)
