"""Backends that each break one rule, under the shared rules; test_conformance_rules.py sees each go red."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager

import profwin.backends
from profwin.testing import BackendConformance

_state = {"on": False, "made": 0}


class Recording:
    """A profiler that records nothing: one a process, and its files are written at once or not at all."""

    fault = ""

    def __init__(self, request):
        self.request, self.thread, self.lost, self.process = request, 0, None, os.getpid()

    def has(self, fault):
        """Say whether this is what the backend does wrong."""
        return self.fault == fault

    def __enter__(self):
        if _state["on"] and self.has("crashes at a second recording"):
            os.abort()
        if _state["on"] and not self.has("takes over"):
            raise RuntimeError("one is on already")
        if _state["made"] and self.has("records once"):
            raise RuntimeError("it has recorded already")
        if self.has("takes SIGTERM"):
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        if self.has("ends badly"):
            atexit.register(os._exit, 7)
        _state["on"], _state["made"] = self, _state["made"] + 1
        self.thread = threading.get_ident()
        caught = {"leaks": (), "leaks at Ctrl-C": Exception}.get(self.fault, BaseException)
        try:
            self.metadata = self.request.metadata
        except caught:
            _state["on"] = False
            raise
        return self

    def __exit__(self, *_):
        if self.has("dies in children") and os.getpid() != self.process:
            os._exit(9)
        if self.has("is bound to its thread") and threading.get_ident() != self.thread:
            raise RuntimeError("left in the wrong thread")
        self.lost = _state["on"] is not self
        _state["on"] = False
        if self.has("quits"):
            raise SystemExit(3)

    @contextmanager
    def span(self, name):
        """Name a range."""
        if self.has("has spans in one thread") and threading.get_ident() != self.thread:
            raise RuntimeError("a range in another thread")
        try:
            yield
        except KeyError:
            if not self.has("swallows"):
                raise

    def step(self):
        """Do nothing."""

    def export(self):
        """Write one file."""
        if self.lost and self.has("takes over"):
            return []
        if self.has("returns nothing"):
            return []
        stem = self.request.stem
        if self.has("has one path"):
            stem = os.path.join(os.path.dirname(stem), "..", "..", "trace")
        path, part = f"{stem}.json", f"{stem}.json.tmp"
        content = json.dumps({} if self.has("drops the metadata") else {"profwin": self.metadata})
        if self.has("names what is not there"):
            return [path]
        try:
            os.makedirs(os.path.dirname(stem), exist_ok=True)
            target = path if self.has("leaves half a file") else part
            with open(target, "w", encoding="utf-8") as file:
                file.write(content)
        except OSError:
            if self.has("hides that it failed"):
                return [path]
            if not self.has("leaves half a file") and os.path.exists(part):
                os.unlink(part)
            raise
        if not self.has("leaves half a file"):
            os.rename(part, path)
        if self.has("leaves a file"):
            with open(f"{stem}.log", "w", encoding="utf-8") as file:
                file.write("a note")
        return [path]


class Backend:
    """What is right but for its fault."""

    name = "faulty"
    exclusive = True
    thread_bound = False
    revocable = True
    ranges = True
    fault = ""

    def __init__(self, settings):
        """Take no settings."""

    def foreign(self):
        """Find what is on, or pretend."""
        return "always something" if self.fault == "sees ghosts" else None

    def open(self, request):
        """Return a recording."""
        recording = Recording(request)
        recording.fault = self.fault
        return recording


def suite(fault, **members):
    """Return a suite for a backend with a fault."""

    class Faulty(BackendConformance):
        backend = "faulty"

        def prepare(self, monkeypatch):
            _state.update(on=False, made=0)
            real = profwin.backends.load
            kind = type("Kind", (Backend,), {**members, "fault": fault})
            monkeypatch.setattr(profwin.backends, "load", lambda name: kind if name == "faulty" else real(name))

    Faulty.__qualname__ = "Test" + "".join(part.capitalize() for part in fault.replace("-", " ").split())
    Faulty.__name__ = Faulty.__qualname__
    globals()[Faulty.__qualname__] = Faulty
    return Faulty.__qualname__


SOUND = suite("sound")
BROKEN = {
    suite("has another name", name="other"): "test_says_what_it_is",
    suite("does not say", thread_bound="perhaps"): "test_says_what_it_is",
    suite("has an empty reason", unusable=classmethod(lambda _: "")): "test_says_what_it_is",
    suite("cannot but does", unusable=classmethod(lambda _: "no device")): "test_refuses_where_it_cannot_record",
    suite("stands in by name alone", stand_in=classmethod(lambda _: "record")): "test_says_what_it_is",
    suite("sees ghosts"): "test_recordings_leave_finished_files",
    suite("returns nothing"): "test_recordings_leave_finished_files",
    suite("has one path"): "test_recordings_leave_finished_files",
    suite("drops the metadata"): "test_recordings_leave_finished_files",
    suite("names what is not there"): "test_recordings_leave_finished_files",
    suite("leaves a file"): "test_windows_and_stages",
    suite("swallows"): "test_spans",
    suite("has spans in one thread"): "test_spans",
    suite("is bound to its thread"): "test_left_in_another_thread",
    suite("leaks"): "test_a_request_that_fails[OSError]",
    suite("leaks at Ctrl-C"): "test_a_request_that_fails[KeyboardInterrupt]",
    suite("hides that it failed"): "test_a_place_that_cannot_be_written",
    suite("records once"): "test_failure[span]",
    suite("quits"): "test_a_body_that_fails",
    suite("leaves half a file"): "test_a_full_disk",
    suite("takes over"): "test_a_second_recording",
    suite("crashes at a second recording"): "test_a_second_recording",
    suite("ends badly"): "test_the_end_of_a_process[returns]",
    suite("takes SIGTERM"): "test_the_end_of_a_process[is terminated]",
    suite("dies in children"): "test_a_forked_child",
}
"""For each fault, the test that must find it."""
