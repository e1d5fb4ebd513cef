"""The real `Loop` with standalone and hybrid engines under any order of events, judged by the journal alone."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from loop_model import NUMBERED, Model

import profwin
from profwin.journal import read
from profwin.loop import EVENTS

SELECTED = (1, 2, 4)
PARTS = ("standalone", "hybrid")
OTHER_EVENTS = [event for event in EVENTS if event not in NUMBERED]


class Engine:
    """An engine on one pretend device that notes from when to when it recorded."""

    def __init__(self, part):
        self.devices, self.process_ids = [f"pretend:{part}"], [os.getpid()]
        self.since, self.recorded = None, []

    def start_profile(self):
        """Begin to record; a second start is what no engine stands."""
        assert self.since is None
        self.since = time.monotonic_ns()

    def stop_profile(self):
        """Stop recording; so is a stop without a start."""
        assert self.since is not None
        self.recorded.append((self.since, time.monotonic_ns()))
        self.since = None


class BodyError(Exception):
    """What a stage's body raises."""


class RealLoop(RuleBasedStateMachine):
    """One process that trains on hybrid devices, with an engine there and one on standalone devices.

    Its bodies note when they ran. `spoilt` says that a stage ran inside the open hybrid window and so has ended it:
    what the hybrid devices generate after that is rightly unrecorded.
    """

    mode, collect = "separate", "stage"

    @initialize()
    def begin(self):
        """Configure a run of its own."""
        self.folder = Path(tempfile.mkdtemp(prefix="loop-"))
        profwin.configure(
            steps=list(SELECTED),
            backend="record",
            output=self.folder / "output",
            lock_dir=self.folder,
            devices="pretend:hybrid",
            run="run",
            collect=self.collect,
        )
        self.engines = {part: Engine(part) for part in PARTS}
        self.loop = profwin.Loop(self.mode, engine=self.engines["standalone"], hybrid_engine=self.engines["hybrid"])
        self.model, self.spoilt, self.overlaps = Model(self.mode), False, 0
        self.bodies = {(part, what): [] for part in PARTS for what in ("rollout", "training")}

    def tell(self, event, *number):
        """Raise an event."""
        before = self.model.windows().get("hybrid")
        self.model.hear(event, *number)
        retried = event == "weights_about_to_sync" and self.model.step is None
        self.spoilt = self.spoilt and not retried and self.model.windows().get("hybrid") == before
        getattr(self.loop, event)(*number)

    @rule(event=st.sampled_from(NUMBERED), number=st.integers(0, 4))
    def numbered_event(self, event, number):
        """A step begins, or weights are or will be synced: in order, late, twice, or without its counterpart."""
        self.tell(event, number)

    @rule(event=st.sampled_from(OTHER_EVENTS))
    def other_event(self, event):
        """Any other event."""
        self.tell(event)

    @precondition(lambda self: self.model.windows())
    @rule()
    def generate(self):
        """Generate on all devices that do; recorded if the step is selected."""
        for part, step in self.model.windows().items():
            if part == "standalone" or not self.spoilt:
                self.note(part, "rollout", step, step in SELECTED)

    @precondition(lambda self: self.model.step is not None)
    @rule(fails=st.booleans())
    def train(self, fails):
        """Run a stage on the hybrid devices, also inside their open window; the standalone one goes on meanwhile."""
        step, windows = self.model.step, self.model.windows()
        recorded = step in SELECTED and not self.model.validating
        self.overlaps += "hybrid" in windows and step in SELECTED and not self.spoilt
        self.spoilt = self.spoilt or "hybrid" in windows
        try:
            with profwin.training_stage("update", devices="pretend:hybrid"):
                self.note("hybrid", "training", step, recorded)
                assert self.engines["hybrid"].since is None
                assert (self.engines["standalone"].since is not None) == recorded
                if recorded:
                    self.note("standalone", "rollout", step, recorded)
                if fails:
                    raise BodyError
        except BodyError:
            pass

    def note(self, part, what, step, recorded):
        """Let a body take a moment, and note when it ran, for which step, and whether it must be recorded."""
        begin = time.monotonic_ns()
        self.bodies[part, what].append((begin, time.monotonic_ns(), step, recorded))

    def teardown(self):
        """End the run and judge it by its journal."""
        if not hasattr(self, "folder"):
            return
        try:
            self.loop.loop_ends()
            assert all(engine.since is None for engine in self.engines.values())
            profwin.shutdown()
            if any(self.bodies.values()):
                self.judge()
        finally:
            profwin.shutdown()
            shutil.rmtree(self.folder)

    def judge(self):
        """Hold every body, and what the engines say, against the collections in the journal."""
        (path,) = (self.folder / "output").glob("*/journal/*.jsonl")
        records = list(read(str(path)))
        assert records[-1]["kind"] == "end"
        # What this process closes itself, to make way, takes milliseconds; who is waited for in vain takes the budget.
        assert all(record.get("waited", 0) < 5 for record in records), "a wait for devices that are not shared"
        assert {record["reason"] for record in records if record["kind"] == "skip"} <= {"paused"}
        assert len([record for record in records if record["kind"] == "overlap"]) == self.overlaps
        assert "stale" not in {record.get("reason") for record in records}
        collections = collected(records)
        for (part, what), bodies in self.bodies.items():
            here = collections.get(f"pretend-{part}", [])
            for begin, end, step, recorded in bodies:
                around = [each for each in here if each[0] <= end and begin <= each[1] and each[2] == what]
                inside = [each[2:] for each in around if each[0] <= begin and end <= each[1]]
                assert [each[2:] for each in around] == inside == ([(what, step)] if recorded else [])
        for part, engine in self.engines.items():
            rollouts = [each for each in collections.get(f"pretend-{part}", []) if each[2] == "rollout"]
            assert len(rollouts) == len(engine.recorded)
            for (begin, end, *_), (start, stop) in zip(rollouts, engine.recorded, strict=True):
                assert begin <= start <= stop <= end


def collected(records):
    """Return (begin, end, purpose, step) of each collection by device, checking that none overlaps on a device."""
    closes = {record["collection"]: record["t"] for record in records if record["kind"] == "close"}
    found = {}
    for record in records:
        if record["kind"] == "open":
            end = closes.pop(record["collection"])
            for device in record["devices"]:
                found.setdefault(device, []).append((record["t"], end, record["purpose"], record["step"]))
    assert not closes, "a stop without its start, or two"
    for spans in found.values():
        assert all(end <= begin for (_, end, *_), (begin, *_) in pairwise(sorted(spans))), "an overlap"
    return found


class RealFullyAsync(RealLoop):
    """The same for "fully_async"."""

    mode = "fully_async"


class RealSeparateSteps(RealLoop):
    """The same with one collection a step, which a window on its device splits."""

    collect = "step"


class RealFullyAsyncSteps(RealSeparateSteps):
    """The same for "fully_async"."""

    mode = "fully_async"


QUICK = settings(max_examples=100, stateful_step_count=40, deadline=None)
RealLoop.TestCase.settings = QUICK
RealFullyAsync.TestCase.settings = QUICK
RealSeparateSteps.TestCase.settings = QUICK
RealFullyAsyncSteps.TestCase.settings = QUICK
TestRealSeparate = RealLoop.TestCase
TestRealFullyAsync = RealFullyAsync.TestCase
TestRealSeparateSteps = RealSeparateSteps.TestCase
TestRealFullyAsyncSteps = RealFullyAsyncSteps.TestCase
