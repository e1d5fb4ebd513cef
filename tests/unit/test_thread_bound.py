"""Backends that are bound to a thread: never stopped from another one, and what that costs is said."""

from __future__ import annotations

import json
import sys
import threading
from types import ModuleType

import pytest

import profwin
from profwin import backends, rollout_window, training_stage, training_step

stops: list[bool] = []


class Bound:
    """A backend whose recordings note whether they are stopped in the thread that started them."""

    name, exclusive, thread_bound, ranges, revocable = "bound", True, True, False, True

    def __init__(self, settings):
        pass

    def foreign(self):
        """Find none."""
        return

    def open(self, request):
        """Return a recording."""
        return Recording()


class Recording:
    """Knows its thread."""

    def __enter__(self):
        self.thread = threading.get_ident()
        return self

    def __exit__(self, *_):
        stops.append(threading.get_ident() == self.thread)

    def export(self):
        """Write nothing."""
        return []


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Configure the backend; give a function that ends the run and returns its journal."""
    module = ModuleType("bound_backend")
    module.BACKEND = Bound
    monkeypatch.setitem(sys.modules, "bound_backend", module)
    monkeypatch.setitem(backends._TABLE, "bound", "bound_backend")
    stops.clear()
    profwin.configure(steps="1-2", backend="bound", output=tmp_path, devices="pretend:0", run="r")

    def end():
        profwin.shutdown()
        (path,) = (tmp_path / "r" / "journal").iterdir()
        return [json.loads(line) for line in path.read_text().splitlines()]

    return end


def elsewhere(function):
    """Call a function in another thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_stage_of_another_thread_is_skipped_at_once(run):
    """A stage whose thread cannot end the window runs unrecorded, and the window goes on."""
    ran = []

    def stage():
        with training_stage("update"):
            ran.append(1)

    with training_step(1), rollout_window(1) as window:
        elsewhere(stage)
        assert window.recorded
    assert ran == [1]
    assert stops == [True]
    assert [record["reason"] for record in run() if record["kind"] == "skip"] == ["thread"]


def test_a_window_that_another_thread_closes_waits_for_its_own(run):
    """close() from the wrong thread stops nothing; the opener's next window or stage does, and has the device then."""
    with training_step(1):
        window = rollout_window(1)
        window.open()
        elsewhere(window.close)
        assert stops == []
        with training_stage("update"):
            assert stops == [True]
    assert stops == [True, True]
    closes = [record["reason"] for record in run() if record["kind"] == "close"]
    assert closes == ["end", "end"]


def test_the_end_of_the_process_waits_for_nobody(run):
    """At the end even what is bound to a thread that is gone is stopped: it may be lost, but nothing stays on."""
    window = rollout_window(1)
    elsewhere(window.open)
    assert stops == []
    records = run()
    assert stops == [False]
    assert [record["reason"] for record in records if record["kind"] == "close"] == ["shutdown"]
