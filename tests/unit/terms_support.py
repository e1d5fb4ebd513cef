"""A backend that notes who stops it, and fixtures for tests of time limits."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import nullcontext
from types import ModuleType

import pytest

import profwin
from profwin import backends, clock, span

stops: list[str] = []


class Noting:
    """A backend whose recordings note in which thread they are stopped."""

    name, exclusive, thread_bound, ranges, revocable = "noting", True, False, True, True

    def __init__(self, settings):
        pass

    def foreign(self):
        """Find none."""
        return

    def open(self, request):
        """Return a recording."""
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stops.append(threading.current_thread().name)

    def span(self, name):
        """Mark nothing."""
        return nullcontext()

    def export(self):
        """Write nothing."""
        return []


@pytest.fixture(name="jump")
def jump_fixture(monkeypatch):
    """Return a function that lets some seconds pass."""
    shift, now = [0.0], clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + shift[0])

    def jump(seconds):
        shift[0] += seconds

    return jump


@pytest.fixture(name="configure")
def configure_fixture(tmp_path, monkeypatch):
    """Return a function that configures this process; its answer ends the run and returns the records of a kind."""
    module = ModuleType("noting_backend")
    monkeypatch.setitem(sys.modules, "noting_backend", module)
    monkeypatch.setitem(backends._TABLE, "noting", "noting_backend")
    stops.clear()

    def configure(*, thread_bound=False, **more):
        module.BACKEND = type("Backend", (Noting,), {"thread_bound": thread_bound})
        settings = {"steps": "1-3", "backend": "noting", "output": tmp_path, "devices": "pretend:0", "run": "r"}
        profwin.configure(**{**settings, **more})

        def ended(kind, *fields):
            profwin.shutdown()
            (path,) = (tmp_path / "r" / "journal").iterdir()
            records = [json.loads(line) for line in path.read_text().splitlines()]
            return [tuple(each.get(field) for field in fields) for each in records if each["kind"] == kind]

        ended.directory = tmp_path / "r"
        return ended

    return configure


def a_span():
    """Pass a span."""
    with span("part"):
        pass
