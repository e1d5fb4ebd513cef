"""Measuring another clock: the truth always lies within the uncertainty, and measuring is in nobody's way."""

from __future__ import annotations

import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profwin.ray import clocks
from profwin.ray.clocks import Watch, estimate, others

SECOND = 1_000_000_000
WAYS = st.tuples(st.integers(0, SECOND), st.integers(0, SECOND))


class Pair:
    """Two clocks: the other is ahead of ours, and faster by some millionths. Answers take the given ways."""

    def __init__(self, ahead, drift, ways):
        self.true, self.ahead, self.drift, self.ways = 0, ahead, drift, iter(ways)

    def now(self):
        """Return our clock."""
        return self.true

    def ask(self):
        """Return the other clock, on the way between two of our times."""
        there, back = next(self.ways)
        self.true += there
        shown = self.other(self.true)
        self.true += back
        return shown

    def other(self, ours):
        """Return what the other clock shows at some time of ours."""
        return ours + self.ahead + ours * self.drift // 1_000_000


@given(st.lists(WAYS, min_size=1, max_size=8), st.integers(-(10**16), 10**16), st.integers(-500, 500))
def test_truth_is_within_the_uncertainty(ways, ahead, drift):
    """However long the ways are, however unlike each other, and though the clocks drift."""
    pair = Pair(ahead, drift, ways)
    found = estimate(pair.ask, len(ways), pair.now)
    assert abs(pair.other(found.at) - found.at - found.offset) <= found.uncertainty


@given(st.lists(WAYS, min_size=1, max_size=8))
def test_the_shortest_way_is_the_best(ways):
    """Of several exchanges that one counts whose round trip was the shortest."""
    pair = Pair(0, 0, ways)
    half = (min(there + back for there, back in ways) + 1) // 2
    assert estimate(pair.ask, len(ways), pair.now).uncertainty == half + half // 1000 + 1


def test_even_ways_are_exact():
    """Where both ways take equally long the offset is the truth."""
    pair = Pair(3600 * SECOND, 0, [(700, 700)])
    assert (estimate(pair.ask, 1, pair.now).offset, pair.true) == (3600 * SECOND, 1400)


@pytest.fixture
def written():
    """Return what a watch writes, and what it writes with."""
    records = []
    return records, lambda **fields: records.append(fields)


def test_a_round_asks_every_host_in_a_thread(written):
    """Each host's clock is written once, by a thread that is gone after the end."""
    records, write = written
    threads = set()

    def ask():
        threads.add(threading.current_thread())
        return 5

    watch = Watch(lambda: {("boot-b", "b"): ask, ("boot-c", "c"): ask}, write)
    watch.begin()
    watch.close(60)
    assert [each["boot"] for each in records] == ["boot-b", "boot-c"] * 2  # once at the begin, once at the end
    assert set(records[0]) == {"boot", "host", "at", "offset", "uncertainty"}
    assert threading.current_thread() not in threads
    assert not any(thread.is_alive() for thread in threads)


def test_rounds_are_not_too_often(written, monkeypatch):
    """A round that is asked for soon after another does not begin; later it does; after the end none does."""
    records, write = written
    time = [1000.0]
    monkeypatch.setattr(clocks, "time", type("Time", (), {
        "monotonic": staticmethod(lambda: time[0]), "monotonic_ns": staticmethod(lambda: 0),
    }))  # fmt: skip
    watch = Watch(lambda: {("boot-b", "b"): lambda: 5}, write)
    for seconds in (0.0, clocks.EVERY / 2, clocks.EVERY, clocks.EVERY * 1.5):
        time[0] = 1000.0 + seconds
        watch.begin()
        watch._thread.join()
    assert len(records) == 2
    watch.close(60)
    watch.close(60)
    time[0] += 1000
    watch.begin()
    assert len(records) == 3


def test_a_slow_round_is_in_nobodys_way(written):
    """While one is on nothing waits for it, and no second one begins; the end gives it up after its time."""
    records, write = written
    answer, asked = threading.Event(), threading.Event()
    rounds = itertools.count()

    def ask():
        asked.set()
        answer.wait(60)
        return 5

    def hosts():
        next(rounds)
        return {("boot-b", "b"): ask}

    watch = Watch(hosts, write)
    watch.begin()
    assert asked.wait(60)
    watch._due = 0.0
    watch.begin()
    watch.close(0.0)
    assert (records, next(rounds)) == ([], 1)
    answer.set()
    watch._thread.join()


def test_a_host_that_does_not_answer_keeps_no_other(written):
    """It is left out; nothing is raised, not even where nobody can be asked at all."""
    records, write = written

    def dead():
        raise ConnectionError("it is gone")

    watch = Watch(lambda: {("boot-b", "b"): dead, ("boot-c", "c"): lambda: 5}, write)
    watch.begin()
    watch.close(60)
    assert {each["host"] for each in records} == {"c"}
    watch = Watch(dead, write)
    watch.begin()
    watch.close(60)


def test_hosts_that_a_round_does_not_come_to_are_the_next_ones_first(written):
    """Where there is no time for all, each has its turn."""
    records, write = written
    watch = Watch(lambda: {(f"boot-{name}", name): lambda: 5 for name in "abc"}, write)
    watch._measured = {("boot-a", "a"): 3.0, ("boot-b", "b"): 1.0, ("boot-c", "c"): 2.0}
    watch.begin()
    watch._thread.join()
    assert [each["host"] for each in records] == ["b", "c", "a"]


def test_one_agent_a_host_and_never_our_own():
    """Of several nodes on one host one is asked; a node of our own boot has our clock."""
    identity = type("Identity", (), {"__init__": lambda self, boot: setattr(self, "boot", boot), "host": "h"})
    nodes = {1: identity("own"), 2: identity("b"), 3: identity("b"), 4: identity("c")}
    assert list(others(nodes, None, "own")) == [("b", "h"), ("c", "h")]


def test_what_never_began_does_not_end(written):
    """Where nothing was measured nothing is at the end: a run that records nothing gets no journal by it."""
    records, write = written
    Watch(lambda: {("boot-b", "b"): lambda: 5}, write).close(60)
    assert records == []
