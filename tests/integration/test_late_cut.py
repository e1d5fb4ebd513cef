"""An engine that is late to stop where the window's exit did not begin the stop: who waits there says so, once."""

from __future__ import annotations

import asyncio
import threading

import pytest
from core_support import Evidence
from release_support import PROMPT, Engine, configure
from stand_in_support import until

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.errors import EngineError

BUDGET = 0.3


@pytest.fixture
def engine():
    """Return an engine whose stop waits until it may go on, which it may at the end of the test at the latest."""
    made = Engine(patience=60.0)
    yield made
    made.let_go.set()
    for thread in threading.enumerate():
        if thread.name == "profwin-stop":
            thread.join(PROMPT)
    profwin.shutdown()


def cut(engine, step=1, **options):
    """Open a window, and return when its recording is being cut."""
    window = rollout_window(step, engine=engine, max_seconds=0.05, **options)
    window.open()
    assert engine.stopping.wait(PROMPT)
    return window


def findings(output):
    """Return code and words of every finding but that no stage is there."""
    found = [(each["code"], each["detail"]) for each in Evidence(output).of("finding")]
    return [each for each in found if each[0] != "no-stages"]


def test_a_cut_that_is_late_is_said_at_the_exit(tmp_path, engine):
    """The exit waits for the wait budget, and says that the stop is not confirmed: once, whoever else then waits."""
    configure(tmp_path, wait_budget=BUDGET)
    window = cut(engine)
    assert findings(tmp_path) == []
    window.close()
    [(code, words)] = findings(tmp_path)
    assert code == "late-stop"
    assert "rollout window 'rollout' of step 1: its stop is not confirmed after" in words
    with training_step(2), training_stage("update"):
        pass
    current().owner.close_all("end")
    profwin.shutdown()
    assert [each[0] for each in findings(tmp_path)] == ["late-stop"]
    assert engine.acts == ["start", "stop"]


def test_it_is_said_in_an_event_loop_too(tmp_path, engine):
    """A coroutine that leaves the window waits, too, and says it."""
    configure(tmp_path, wait_budget=BUDGET)
    window = cut(engine)
    asyncio.run(window.aclose())
    assert [each[0] for each in findings(tmp_path)] == ["late-stop"]


def test_under_strict_the_exit_raises(tmp_path, engine):
    """Under strict the exit of a window whose cut is late raises, as that of one whose own stop is."""
    configure(tmp_path, wait_budget=BUDGET, strict=True)
    window = cut(engine)
    with pytest.raises(EngineError, match="not confirmed"):
        window.close()


def test_a_cut_that_is_in_time_is_not_said(tmp_path, engine):
    """Where the stop is confirmed while the exit waits, there is nothing to be said."""
    configure(tmp_path, wait_budget=PROMPT)
    window = cut(engine)
    engine.let_go.set()
    window.close()
    assert findings(tmp_path) == []
    assert [each["reason"] for each in Evidence(tmp_path).collections()] == ["cut"]


def test_a_late_stop_is_said_though_nobody_waits(tmp_path, engine):
    """A window that used its budget up on a wait ends at once; that its stop is late is said all the same."""
    configure(tmp_path, wait_budget=BUDGET)
    window = rollout_window(1, engine=engine)
    window.open()
    current().budget.spend(("pretend-card",), 1, BUDGET)
    window.close()
    assert findings(tmp_path) == []
    until(lambda: findings(tmp_path))
    [(code, words)] = findings(tmp_path)
    assert (code, "not confirmed after" in words) == ("late-stop", True)


def test_a_stop_that_nobody_waits_for_is_not_late_at_once(tmp_path, engine):
    """Where that window's stop is confirmed soon after, there is nothing to be said."""
    configure(tmp_path, wait_budget=BUDGET)
    window = rollout_window(1, engine=engine)
    window.open()
    current().budget.spend(("pretend-card",), 1, BUDGET)
    window.close()
    engine.let_go.set()
    until(lambda: not current().owner.collections)
    current().listener().look()
    profwin.shutdown()
    assert findings(tmp_path) == []
