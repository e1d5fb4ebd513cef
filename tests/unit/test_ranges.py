"""Named ranges: they end inside the recording that they belong to, whoever ends it."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

import pytest

import profwin
from profwin import backends, rollout_window, span, training_stage
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
    ranges.begin(1, "early")
    ranges.end_all()
    ranges.begin(2, "late")
    ranges.end(2)
    assert Log.take() == ["early begins", "early ends"]


def test_a_range_that_fails_is_only_said():
    """What cannot be marked is complained of, and what was marked before it ends as usual."""
    events.clear()
    said = []
    ranges = Ranges([Part("a"), Broken("b")], said.append)
    ranges.begin(1, "x")
    ranges.end(1)
    assert len(said) == 1
    assert Log.take() == ["x begins", "x ends"]
