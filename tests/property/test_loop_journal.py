"""The real `Loop`, windows, stages and device lock under any order of events, judged by the journal alone."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

pytest.importorskip("profwin.window")
pytest.importorskip("profwin.registry.device")

import profwin
from profwin.backends.record import RecordBackend

SELECTED = (1, 2, 4)
OTHER_EVENTS = [
    "samples_in_hand",
    "devices_to_training",
    "devices_to_generation",
    "validation_begins",
    "validation_ends",
    "step_ends",
    "loop_fails",
    "loop_ends",
]


def refuse():
    """Fail like a profiler."""
    raise OSError("refused")


class BodyError(Exception):
    """What a stage's body raises."""


class RealLoop(RuleBasedStateMachine):
    """One process that generates and trains on one pretend device; its bodies note when they ran.

    `owner` is who holds the device, as the events so far have said; `spoilt` says that a stage ran inside the
    open window and so has ended it: what is generated after that is rightly unrecorded.
    """

    mode, collect = "sync", "stage"

    @initialize()
    def begin(self):
        """Configure a run of its own."""
        self.folder = Path(tempfile.mkdtemp(prefix="loop-"))
        profwin.configure(
            steps=list(SELECTED),
            backend="record",
            output=str(self.folder / "output"),
            lock_dir=str(self.folder),
            devices="pretend:0",
            run="run",
            collect=self.collect,
        )
        self.loop = profwin.Loop(self.mode)
        self.under_way, self.owner, self.validating = None, None, False
        self.generations, self.stages = [], []
        self.spoilt, self.refusals, self.refuse_next = False, 0, None
        self.real_open = RecordBackend.open
        RecordBackend.open = lambda backend, request: self.open_or_refuse(backend, request)

    def open_or_refuse(self, backend, request):
        """Stand for the backend's open: fail there or on entering, if that was asked for."""
        where, self.refuse_next = self.refuse_next, None
        if where is None:
            return self.real_open(backend, request)
        self.refusals += 1
        if where == "enter":
            return contextmanager(refuse)()
        return refuse()

    @rule(where=st.sampled_from(["open", "enter"]))
    def next_collection_is_refused(self, where):
        """The backend fails to open next time, for a window or a stage."""
        self.refuse_next = where

    @rule(step=st.integers(0, 4))
    def step_begins(self, step):
        """A step begins, with or without the one before having ended."""
        self.spoilt = self.spoilt and self.under_way == step
        self.under_way, self.owner, self.validating = step, "generation", False
        self.loop.step_begins(step)

    @rule(event=st.sampled_from(OTHER_EVENTS))
    def other_event(self, event):
        """Any other event."""
        if event in ("step_ends", "loop_fails", "loop_ends"):
            self.under_way, self.owner = None, None
            self.validating = self.validating and event == "step_ends"
        elif event in ("validation_begins", "validation_ends"):
            self.validating = event == "validation_begins"
        elif self.under_way is not None and event == "devices_to_generation":
            self.owner = "generation"
        elif self.under_way is not None and (event == "devices_to_training" or self.mode == "sync"):
            self.owner = "training"
        self.spoilt = self.spoilt and self.owner == "generation" and not self.validating
        getattr(self.loop, event)()

    @precondition(lambda self: self.owner == "generation")
    @rule()
    def generate(self):
        """Generate where the events allow it; recorded if the step is selected and no validation runs."""
        if not self.spoilt:
            self.note(self.generations, self.under_way in SELECTED and not self.validating)

    @precondition(lambda self: self.under_way is not None)
    @rule(fails=st.booleans())
    def train(self, fails):
        """Run a stage, also inside an open window, with or without an exception in its body."""
        self.spoilt = self.spoilt or (self.owner == "generation" and not self.validating)
        try:
            with profwin.training_stage("update"):
                self.note(self.stages, self.under_way in SELECTED and not self.validating)
                if fails:
                    raise BodyError
        except BodyError:
            pass

    def note(self, bodies, recorded):
        """Let a body take a moment, and note when it ran, for which step, and whether it must be recorded."""
        begin = time.monotonic_ns()
        bodies.append((begin, time.monotonic_ns(), self.under_way, recorded))

    def teardown(self):
        """End the run and judge it by its journal."""
        if not hasattr(self, "folder"):
            return
        try:
            self.loop.loop_ends()
            profwin.shutdown()
            if self.generations or self.stages:
                self.judge()
        finally:
            RecordBackend.open = self.real_open
            profwin.shutdown()
            shutil.rmtree(self.folder)

    def judge(self):
        """Hold every body against the collections in the journal."""
        (path,) = (self.folder / "output").glob("*/journal/*.jsonl")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        assert records[-1]["kind"] == "end"
        refused = refused_bodies(records)
        assert len(refused) == self.refusals
        collections = collected(records)
        kinds = (("rollout", "window", self.generations), ("training", "stage", self.stages))
        for purpose, what, bodies in kinds:
            for begin, end, step, expected in bodies:
                around = [c for c in collections if c[0] <= end and begin <= c[1]]
                inside = [c[2:] for c in around if c[0] <= begin and end <= c[1]]
                recorded = expected and not any(r[0] == what and r[1] <= begin and end <= r[2] for r in refused)
                assert [c[2:] for c in around] == inside == ([(purpose, step)] if recorded else [])


def collected(records):
    """Return (begin, end, purpose, step) of each collection, checking that each opens and closes alone."""
    found, current = [], None
    for record in records:
        if record["kind"] == "open":
            assert current is None, "a second start, or an overlap"
            current = record
        elif record["kind"] == "close":
            assert current is not None, "a stop without its start"
            assert record["collection"] == current["collection"], "a stop of another collection"
            found.append((current["t"], record["t"], current["purpose"], current["step"]))
            current = None
    assert current is None, "left open"
    return found


def refused_bodies(records):
    """Return (what, begin, end) of each window or stage that its backend refused; none else may be so."""
    enters = {record["id"]: record for record in records if record["kind"] == "enter"}
    exits = {record["id"]: record["t"] for record in records if record["kind"] == "exit"}
    assert enters.keys() == exits.keys()
    skips = [record for record in records if record["kind"] == "skip"]
    assert {record["reason"] for record in skips} <= {"paused", "backend"}
    return [
        (enters[skip["id"]]["what"], enters[skip["id"]]["t"], exits[skip["id"]])
        for skip in skips
        if skip["reason"] == "backend"
    ]


class RealColocate(RealLoop):
    """The same for "colocate"."""

    mode = "colocate"


class RealSyncSteps(RealLoop):
    """The same with one collection a step, which a window between two stages splits."""

    collect = "step"


class RealColocateSteps(RealSyncSteps):
    """The same for "colocate"."""

    mode = "colocate"


QUICK = settings(max_examples=150, stateful_step_count=40, deadline=None)
RealLoop.TestCase.settings = QUICK
RealColocate.TestCase.settings = QUICK
RealSyncSteps.TestCase.settings = QUICK
RealColocateSteps.TestCase.settings = QUICK
TestRealSync = RealLoop.TestCase
TestRealColocate = RealColocate.TestCase
TestRealSyncSteps = RealSyncSteps.TestCase
TestRealColocateSteps = RealColocateSteps.TestCase
