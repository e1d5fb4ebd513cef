"""Named ranges: they end inside the recording that they belong to, whoever ends it."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

import pytest

import profwin
from profwin import backends, rollout_window, span, training_stage
from profwin.interval import Interval
from profwin.ranges import Ranges

events: list[str] = []


class Log:
    """A backend, its recordings and their ranges, all of which write down what happens to them."""

    name, exclusive, thread_bound, ranges, revocable = "log", True, False, True, True

    def __init__(self, settings):
        pass

    def foreign(self):
        """Find none."""
        return

    def open(self, request):
        """Return a recording."""
        return Part("profiler")

    @staticmethod
    def take():
        """Return what happened since the last time."""
        taken, events[:] = list(events), []
        return taken


class Part:
    """Something that begins and ends."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        events.append(f"{self.name} begins")
        return self

    def __exit__(self, *_):
        events.append(f"{self.name} ends")

    def span(self, name):
        """Return a range."""
        return Part(name)

    def export(self):
        """Write nothing."""
        return []


class Broken(Part):
    """A range that can neither begin nor end."""

    def span(self, name):
        """Fail."""
        raise OSError("no ranges here")


class Loose(Part):
    """A recording whose ranges may end in any thread."""

    def loose_span(self, name):
        """Return a range."""
        return Part(f"loose {name}")


class Lasting(Part):
    """A recording whose ranges belong to what they mark."""

    ranges_outlast_it = True

    def lasting_range(self, name, purpose, role, *, loose):
        """Begin a range."""
        return Mark(f"{purpose} {role} {'loose ' if loose else ''}{name}")


class Bounded(Lasting):
    """A recording whose ranges it outlasts."""

    ranges_outlast_it = False


class Mark:
    """A range that lasts."""

    def __init__(self, name):
        self.name, self.open = name, True
        events.append(f"{name} begins")

    def end(self):
        """End it, once."""
        if self.open:
            self.open = False
            events.append(f"{self.name} ends")


def interval(name, *, scoped=True):
    """Return a window."""
    return Interval("window", name, 1, (), "here", role="rollout", scoped=scoped)


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Configure the logging backend, and return what it logged."""
    module = ModuleType("log_backend")
    module.BACKEND = Log
    monkeypatch.setitem(sys.modules, "log_backend", module)
    monkeypatch.setitem(backends._TABLE, "log", "log_backend")
    events.clear()
    profwin.configure(steps="1", backend="log", output=tmp_path, devices="pretend:0")
    return Log


def test_ranges_lie_inside_the_recording(log):
    """Windows, stages in stages and spans are ranges that begin after the profiler and end before it."""
    with rollout_window(1), span("sample"):
        pass
    inner = ["rollout begins", "sample begins", "sample ends", "rollout ends"]
    assert log.take() == ["profiler begins", *inner, "profiler ends"]


def test_a_handover_ends_the_ranges_of_another_thread_first(log):
    """A stage that ends a window ends its ranges before its profiler, and they do not end again with their block."""
    inside, over = threading.Event(), threading.Event()

    def generate():
        with rollout_window(1), span("sample"):
            inside.set()
            over.wait(30)

    thread = threading.Thread(target=generate)
    thread.start()
    inside.wait(30)
    with training_stage("update"):
        before = log.take()
        over.set()
        thread.join()
        assert log.take() == []
    assert before[-5:] == ["sample ends", "rollout ends", "profiler ends", "profiler begins", "update begins"]
    assert log.take() == ["update ends", "profiler ends"]


def test_nothing_begins_once_the_end_has_come():
    """A range that comes after the end of its collection is not opened."""
    events.clear()
    ranges = Ranges([Part("profiler")], pytest.fail)
    early, late = interval("early"), interval("late")
    ranges.begin(early, "rollout")
    ranges.end_all()
    ranges.begin(late, "rollout")
    ranges.end(late.identifier)
    assert Log.take() == ["early begins", "early ends"]


def test_a_range_that_fails_is_only_said():
    """What cannot be marked is complained of, and what was marked before it ends as usual."""
    events.clear()
    said = []
    ranges = Ranges([Part("a"), Broken("b")], said.append)
    marked = interval("x")
    ranges.begin(marked, "rollout")
    ranges.end(marked.identifier)
    assert len(said) == 1
    assert Log.take() == ["x begins", "x ends"]


def test_what_is_not_scoped_is_marked_where_ranges_may_end_anywhere():
    """A window of asynchronous code is a range of the recordings that have such ranges, and of no other."""
    events.clear()
    ranges = Ranges([Part("a"), Loose("b")], pytest.fail)
    window = interval("w", scoped=False)
    ranges.begin(window, "rollout")
    ranges.end_all()
    assert Log.take() == ["loose w begins", "loose w ends"]


def test_a_lasting_range_outlives_its_collection_once():
    """A range that may outlast the collection is begun once, goes on in the next one, and ends with its interval."""
    events.clear()
    window = interval("w")
    for resumed in (False, True):
        ranges = Ranges([Lasting("a"), Lasting("b"), Part("c")], pytest.fail)
        ranges.begin(window, "rollout", resumed=resumed)
        ranges.end_all()
    assert Log.take() == ["rollout rollout w begins", "w begins", "w ends", "w begins", "w ends"]
    window.lasting_range.end()
    assert Log.take() == ["rollout rollout w ends"]


def test_a_lasting_range_that_must_not_outlive_its_collection():
    """It ends with the collection, the latest first, and a loose one marks what is taken up again."""
    events.clear()
    first, second = interval("first"), interval("second")
    ranges = Ranges([Bounded("a")], pytest.fail)
    for each in (first, second):
        ranges.begin(each, "rollout")
    ranges.end_all()
    begun = ["rollout rollout first begins", "rollout rollout second begins"]
    assert Log.take() == [*begun, "rollout rollout second ends", "rollout rollout first ends"]
    Ranges([Bounded("a")], pytest.fail).begin(first, "rollout", resumed=True)
    assert Log.take() == ["rollout rollout loose first begins"]
