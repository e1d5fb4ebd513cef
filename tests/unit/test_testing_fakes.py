"""The fakes note what they are asked, in order, and fail or are late exactly where a test says so."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time

import pytest

import profwin
from profwin import clock, rollout_window, span, training_stage
from profwin.testing import FakeClock, Host, RecordingEngine
from profwin.testing.backend import BACKEND

PATIENCE = 100.0


@pytest.fixture
def host(tmp_path):
    """Return a pretend host."""
    with Host(tmp_path) as found:
        yield found


def train(name="update"):
    """Run one recorded stage of step 1 with a span in it."""
    with profwin.training_step(1), training_stage(name), span("part"):
        pass


def test_backend_notes_everything_in_order(host):
    """Each act of a collection is noted with its name, step and purpose; spans have their own names."""
    with rollout_window(1):
        pass
    train()
    assert [(act.action, act.purpose, act.name) for act in host.backend.acts] == [
        ("open", "rollout", "rollout"), ("enter", "rollout", "rollout"), ("span", "rollout", "rollout"),
        ("span_ends", "rollout", "rollout"), ("exit", "rollout", "rollout"), ("export", "rollout", "rollout"),
        ("open", "training", "update"), ("enter", "training", "update"), ("span", "training", "update"),
        ("span", "training", "part"), ("span_ends", "training", "part"), ("span_ends", "training", "update"),
        ("exit", "training", "update"), ("export", "training", "update"),
    ]  # fmt: skip
    assert {act.step for act in host.backend.acts} == {1}
    assert [act.time for act in host.backend.acts] == sorted(act.time for act in host.backend.acts)


@pytest.mark.parametrize(
    ("action", "said"),
    [("open", "skip"), ("enter", "skip"), ("exit", "close"), ("export", "export"), ("span", None)],
)
def test_backend_fails_where_told(host, action, said):
    """A failure anywhere leaves the training alone, is in the journal, and under strict is a BackendError."""
    host.backend.fail(action, ValueError("told"), times=1)
    train()
    (stage,) = host.record.stages
    assert (stage.problem is None) is (said is None)
    assert said is None or "told" in stage.problem
    assert (stage.skip is not None) is (said == "skip")
    train()
    assert host.record.stages[-1].recorded
    if said:
        host.configure(strict=True)
        host.backend.fail(action)
        with pytest.raises(profwin.BackendError, match=f"{action}: told to fail"):
            train()


def test_backend_steps_and_foreign_profilers(host):
    """A recording's own steps are noted and can fail; a profiler that is in the way skips what begins."""
    host.backend.fail("step")
    backend = BACKEND(None)
    request = type("Request", (), {"metadata": {"purpose": "training", "name": "x", "step": 3}, "stem": "unused"})()
    with backend.open(request) as recording, pytest.raises(RuntimeError, match="step: told to fail"):
        recording.step()
    assert [act.action for act in host.backend.acts] == ["open", "enter", "step", "exit"]
    host.backend.foreign = "another profiler"
    train()
    assert host.record.stages[-1].skip.reason == "foreign"


def test_backend_is_late_where_told(host):
    """A delay lasts until the test's event is set, and meanwhile the collection is not open."""
    event, entered = threading.Event(), threading.Event()
    host.backend.delay("enter", event, name="update")

    def stage():
        with profwin.training_step(1), training_stage("update"):
            entered.set()

    thread = threading.Thread(target=stage)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while "enter" not in [act.action for act in host.backend.acts] and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not entered.is_set()
    event.set()
    thread.join(PATIENCE)
    assert entered.is_set()


def test_backend_bound_to_a_thread(host):
    """Bound to a thread, a recording complains when it is left in another one, as real ones lose their data."""
    host.backend.thread_bound, host.backend.revocable = True, False
    backend = BACKEND(None)
    assert (backend.thread_bound, backend.revocable) == (True, False)
    request = type("Request", (), {"metadata": {"purpose": "training", "name": "x", "step": 3}, "stem": "unused"})()
    recording = backend.open(request)
    thread = threading.Thread(target=recording.__enter__)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="bound to a thread"):
        recording.__exit__(None, None, None)
    host.backend.reset()
    assert (BACKEND(None).thread_bound, BACKEND(None).revocable, host.backend.acts) == (False, True, [])


def test_unknown_actions_are_refused(host):
    """A mistyped action is an error at once, and lists those there are."""
    with pytest.raises(ValueError, match=r"opne.*open, enter, span, step, exit, export"):
        host.backend.fail("opne")
    with pytest.raises(ValueError, match="start, stop"):
        host.engine().delay("export", 1.0)


def test_engine_notes_windows(host):
    """An engine notes each start and stop with the window's name and step, and knows whether it records."""
    engine = host.engine(host.device("generator"))
    with rollout_window(3, engine=engine, name="reward"):
        assert engine.recording
    assert not engine.recording
    assert [(call.what, call.name, call.step) for call in engine.calls] == [
        (what, "reward", 3) for what in ("start", "started", "stop", "stopped")
    ]
    assert (engine.starts, engine.stops) == (1, 1)
    (collection,) = host.record.collections
    assert collection.devices == ("pretend-generator",)


def test_engine_refuses_a_second_start():
    """While it records, a second start is refused as a real server does, unless it was made to accept it."""
    engine = RecordingEngine("pretend:0")
    engine.start_profile(profile_prefix="as vLLM takes it")
    with pytest.raises(RuntimeError, match="409"):
        engine.start_profile()
    assert engine.order == ["start", "started", "start", "failed"]
    engine.stop_profile()
    engine.stop_profile()
    assert engine.stops == 1
    patient = RecordingEngine(refuse_second_start=False)
    patient.start_profile()
    patient.start_profile()
    assert (patient.starts, patient.devices) == (2, None)


def test_engine_that_never_confirms(host):
    """A stop that fails leaves the engine recording, and its device unknown to the stage after it."""
    engine = host.engine("pretend:0", process_ids=[os.getppid()])
    engine.fail("stop", TimeoutError("no answer"))
    with rollout_window(1, engine=engine):
        pass
    with FakeClock(pace=5.0), profwin.training_step(1), training_stage("update"):
        pass  # after the wait budget, which is over after a few looks at this clock
    assert engine.recording
    (window,), (stage,) = host.record.windows, host.record.stages
    assert "no answer" in window.problem
    assert stage.skip.reason == "unknown"
    engine.heal()
    with rollout_window(2, engine=engine):
        pass
    assert host.record.windows[-1].recorded


def test_engine_that_fails_to_start(host):
    """A start that fails leaves the window unrecorded and the engine off."""
    engine = host.engine("pretend:0")
    engine.fail("start", times=1)
    for step in (1, 2):
        with rollout_window(step, engine=engine):
            pass
    assert [window.recorded for window in host.record.windows] == [False, True]
    assert engine.starts == 1


def test_asynchronous_engine():
    """An asynchronous engine has coroutine functions, waits without blocking, and behaves the same."""
    engine = RecordingEngine("pretend:0", asynchronous=True, revocable=True)
    assert inspect.iscoroutinefunction(engine.start_profile)
    assert inspect.iscoroutinefunction(engine.stop_profile)
    assert engine.revocable
    event = threading.Event()
    engine.delay("stop", event)

    async def drive():
        await engine.start_profile(metadata={"name": "rollout", "step": 1})
        stop = asyncio.ensure_future(engine.stop_profile())
        await asyncio.sleep(0.01)
        assert engine.recording
        event.set()
        await asyncio.wait_for(stop, PATIENCE)
        engine.fail("start")
        with pytest.raises(RuntimeError, match="start: told to fail"):
            await engine.start_profile()

    asyncio.run(drive())
    assert engine.order == ["start", "started", "stop", "stopped", "start", "failed"]


def test_host_ends_delays(tmp_path):
    """Leaving the host ends what an engine or the backend still waits for, so that no test hangs."""
    with Host(tmp_path) as host:
        engine = host.engine("pretend:0", revocable=True)
        engine.delay("stop", threading.Event())
        engine.start_profile()
        thread = threading.Thread(target=engine.stop_profile)
        thread.start()
    thread.join(PATIENCE)
    assert not engine.recording


def test_clock_stands_still_until_told(host):
    """While the clock is entered, profwin's time moves by what it is told alone, and is real again afterwards."""
    real = clock.now
    with FakeClock() as fake:
        before = clock.now()
        assert clock.now() == before == fake.now()
        fake.advance(2.5)
        assert clock.now() == before + 2.5
        with pytest.raises(ValueError, match="use 0 or more"):
            fake.advance(-1)
        with FakeClock(pace=1.0):
            assert clock.now() + 1 == clock.now()
        assert clock.now() == before + 2.5
    assert clock.now is real


def test_clock_moves_delays():
    """A delay in seconds goes by the clock, so a test need not wait for the 19 seconds of a real stop."""
    engine = RecordingEngine("pretend:0")
    engine.delay("stop", 19.0)
    with FakeClock() as fake:
        engine.start_profile()
        thread = threading.Thread(target=engine.stop_profile)
        thread.start()
        time.sleep(0.01)
        assert engine.recording
        fake.advance(19.0)
        thread.join(PATIENCE)
    assert not engine.recording


def test_clock_ends_a_window_that_is_over_its_time(host):
    """Advancing past max_seconds cuts a window at the next safe point of its process."""
    with FakeClock() as fake, rollout_window(1, max_seconds=10) as window:
        fake.advance(9)
        with span("early"):
            assert window.recorded
        fake.advance(2)
        with span("late"):
            assert not window.recorded
    assert host.record.collections[0].reason == "cut"


def test_advancing_asks_the_listener_to_look(host):
    """Advancing past max_seconds stops a revocable engine at once, by the listener, without a safe point."""
    engine = host.engine("pretend:0", revocable=True)
    with FakeClock() as fake, rollout_window(1, engine=engine, max_seconds=10):
        fake.advance(11)
        deadline = time.monotonic() + PATIENCE
        while engine.recording and time.monotonic() < deadline:
            time.sleep(0.001)
        assert not engine.recording
