"""Engines that confirm their stop late or never: the device is unknown, and training goes on within the budget."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from core_support import Evidence
from release_support import PROMPT, Engine, Holder, configure

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.engines import ObjectEngine
from profwin.errors import DeviceBusyError, EngineError

BUDGET = 0.4
LEAST = 0.8 * BUDGET
"""Seconds; what was waited before counts too, so a whole budget may not be left."""


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@training_stage
def update():
    """Train."""


def timed(call):
    """Return how long a call takes."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def until_closed():
    """Wait until nothing of this process records or stops any more."""
    deadline = time.monotonic() + PROMPT
    while current().owner.collections:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def window(step, engine):
    """Open and close a window."""
    with rollout_window(step, engine=engine):
        pass


def test_training_goes_on_within_the_budget(output):
    """The window's exit waits for the budget, the step's stages run unrecorded at once; once confirmed, they do not."""
    configure(output, wait_budget=BUDGET)
    engine = Engine(patience=60.0)
    assert LEAST < timed(lambda: window(1, engine)) < PROMPT
    with training_step(1):
        for _ in range(5):
            update()
        with training_stage("elsewhere", devices="pretend:free"):
            pass
    with training_step(2):
        assert timed(update) < PROMPT
    engine.let_go.set()
    until_closed()
    with training_step(3):
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "unknown")] * 6
    assert sum(skip["waited"] for skip in evidence.of("skip")[:5]) < LEAST
    assert [(each["name"], each["step"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", 1, "end"), ("elsewhere", 1, "end"), ("update", 3, "end"),
    ]  # fmt: skip
    assert [record["code"] for record in evidence.of("finding")] == ["late-stop"]
    skip = evidence.of("skip")[0]
    assert skip["device"] == "pretend-card"
    assert "rollout window 'rollout' of step 1" in skip["holder"]


def test_never_confirmed(output):
    """An engine that never confirms keeps nobody: every step trains unrecorded, and the process ends in order."""
    configure(output, wait_budget=0.1)
    engine = Engine(patience=60.0)
    window(1, engine)
    for step in (1, 2, 3):
        with training_step(step):
            assert timed(update) < PROMPT
        if step < 3:
            assert timed(lambda step=step: window(step + 1, engine)) < PROMPT
    assert timed(profwin.shutdown) < PROMPT
    evidence = Evidence(output)
    assert evidence.skips() == [(name, "unknown") for name in ("update", "rollout") * 2] + [("update", "unknown")]
    assert engine.acts == ["start", "stop"]
    engine.let_go.set()


def test_a_failure_that_comes_late_leaves_the_device_unknown(output):
    """A stop that fails after its budget keeps the device from everybody, until the engine's next stop is confirmed."""
    configure(output, wait_budget=BUDGET)
    engine = Engine(patience=60.0, faults=1, process_ids=(os.getpid(),))
    window(1, engine)
    engine.let_go.set()
    until_closed()
    with training_step(1):
        update()
    window(2, engine)
    with training_step(2):
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "unknown")]
    assert evidence.recorded() == ["rollout", "rollout", "update"]
    assert "no answer" in evidence.of("close")[0]["error"]


def test_strict_says_so_at_the_exit_and_at_the_stage(output):
    """Under strict the window's exit raises, and so does the stage that finds the device unknown."""
    configure(output, wait_budget=BUDGET, strict=True)
    engine = Engine(patience=60.0)
    with pytest.raises(EngineError, match="not confirmed"):
        window(1, engine)
    with training_step(1), pytest.raises(DeviceBusyError, match="has not confirmed its stop"):
        update()
    engine.let_go.set()
    until_closed()
    profwin.shutdown()


def test_the_next_window_waits_for_the_late_one(output):
    """A window of the next step of the same engine waits within its own budget and is recorded after the late stop."""
    configure(output, wait_budget=2.0)
    engine = Engine(patience=60.0)
    window(1, engine)
    timer = threading.Timer(0.3, engine.let_go.set)
    began = time.monotonic()
    timer.start()
    with rollout_window(2, engine=engine) as second:
        assert second.recorded
        assert time.monotonic() - began >= 0.3
    timer.join()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == []
    assert engine.acts == ["start", "stop"] * 2


def test_late_in_another_process(output):
    """While the engine of another process hangs in its stop, stages are skipped, naming it; afterwards recorded."""
    configure(output, wait_budget=BUDGET)
    with Holder("Engine(patience=60.0)", steps=(1, 2), PROFWIN_WAIT_BUDGET="0.2") as other:
        with training_step(1):
            assert LEAST < timed(update) < PROMPT
        assert other.leave() is False
        with training_step(2):
            update()
        assert other.hear() == "inside"
        other.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + PROMPT
        while not Evidence(output).of("confirmed"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.1)
        with training_step(3):
            update()
        assert other.leave() is False
        other.acts()
        pid = other.pid
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert sorted(evidence.skips()) == [("rollout", "unknown"), ("update", "busy"), ("update", "busy")]
    assert all(f"pid {pid}" in skip["holder"] for skip in evidence.of("skip", reason="busy"))
    assert [(each["name"], each["step"]) for each in evidence.collections()] == [("rollout", 1), ("update", 3)]
    assert "late-stop" in [record["code"] for record in evidence.of("finding", pid=pid)]


class Mover(ObjectEngine):
    """An engine that takes its time to bring its files, after its stop is confirmed."""

    def __init__(self, engine):
        super().__init__(engine)
        self.moving = threading.Event()

    def export(self, directory, prefix):
        """Write a file, in the end."""
        self.moving.set()
        time.sleep(1.5)  # longer than the moment that an end of the process gives to an engine that is late
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, f"{prefix}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("whole")
        return [path]


@pytest.mark.parametrize("confirmed", ["before the end", "during it"])
def test_the_end_waits_for_what_a_late_engine_brings(output, confirmed):
    """The files of an engine that confirmed late are brought, and in the journal, before the session ends."""
    configure(output, wait_budget=BUDGET)
    engine = Engine(patience=60.0)
    mover = Mover(engine)
    window(1, mover)
    if confirmed == "before the end":
        engine.let_go.set()
        assert mover.moving.wait(PROMPT)
        profwin.shutdown()
    else:
        timer = threading.Timer(0.2, engine.let_go.set)
        timer.start()
        profwin.shutdown()
        timer.join()
    exported = Evidence(output).of("export")
    assert [record.get("error") for record in exported] == [None]
    assert exported[0]["bytes"] == len("whole")
