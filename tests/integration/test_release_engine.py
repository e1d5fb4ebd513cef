"""A holder's engine that may be stopped at any time is stopped on request, and the device changes hands."""

from __future__ import annotations

import threading
import time

import pytest
from core_support import Child, Evidence
from release_support import PROMPT, Holder, configure

import profwin
from profwin import rollout_window, training_stage, training_step


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


def test_the_engine_of_another_process_is_stopped_on_request(output):
    """The stage is recorded at once, the holder's body goes on without its recording, and its next window works."""
    configure(output)
    with Holder(steps=(1, 2)) as other:
        with training_step(1):
            assert timed(update) < PROMPT
        assert other.leave() is False
        assert other.hear() == "inside"
        assert other.leave() is True
        acts, threads = other.acts()
        pid = other.pid
    profwin.shutdown()
    assert acts == ["start", "stop", "start", "stop"]
    assert "MainThread" not in threads
    evidence = Evidence(output)
    evidence.check()
    windows = evidence.collections(purpose="rollout")
    assert [(each["step"], each["reason"]) for each in windows] == [(1, "asked"), (2, "end")]
    (ask,) = evidence.of("ask")
    assert ask["answer"] == "sent"
    assert ask["device"] == "pretend-card"
    assert f"pid {pid}" in ask["holder"]
    assert ask["id"] == evidence.of("enter", name="update")[0]["id"]
    (asked,) = evidence.of("asked")
    assert (asked["pid"], asked["collection"]) == (pid, windows[0]["collection"])
    assert (asked["asker"], asked["purpose"], asked["name"], asked["step"]) == (ask["pid"], "training", "update", 1)
    (stage,) = evidence.collections(name="update")
    assert windows[0]["end"] <= stage["t"]


def test_a_window_is_given_way_to_like_a_stage(output):
    """A window of another process asks too: of two engines on one device, the one that comes later records."""
    configure(output)
    with Holder() as other:
        with rollout_window(1, name="reward") as window:
            assert window.recorded
        assert other.leave() is False
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "asked"), ("reward", "end"),
    ]  # fmt: skip
    assert evidence.of("asked")[0]["purpose"] == "rollout"


def test_a_driver_may_wait_inside_its_window(output):
    """The common mistake, a driver that waits in its window for a worker's stage on the device, costs no wait."""
    configure(output)
    worker = """
@training_stage
def update():
    pass
with training_step(1):
    update()
profwin.shutdown()
"""
    script = f"""
from release_support import Engine
from core_support import Child
with rollout_window(1, engine=Engine()):
    began = time.monotonic()
    with Child({worker!r}) as worker:
        status, out, errors = worker.finish()
    assert status == 0, errors
    say(time.monotonic() - began)
profwin.shutdown()
"""
    with Child(script, **profwin.environment()) as other:
        assert float(other.hear()) < 3 * PROMPT
        assert other.finish()[0] == 0
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.recorded() == ["rollout", "update"]
    assert evidence.skips() == []
    assert [each["reason"] for each in evidence.collections()] == ["asked", "end"]


def test_a_stop_that_takes_long_is_waited_for(output):
    """The device changes hands when the stop is confirmed, not when it is asked for, whoever leaves meanwhile."""
    configure(output)
    with Holder("Engine(seconds=2.0)") as other, training_step(1):
        thread = threading.Thread(target=update)
        thread.start()
        time.sleep(0.5)
        took = timed(other.leave)
        assert Evidence(output).of("close", reason="asked"), "a window is left when its engine has stopped"
        thread.join()
        other.acts()
    profwin.shutdown()
    assert took < PROMPT
    evidence = Evidence(output)
    evidence.check()
    window, stage = evidence.collections()
    assert window["reason"] == "asked"
    assert evidence.of("confirmed")[0]["t"] <= window["end"] <= stage["t"]
    assert stage["waited"] > 1.5


def test_a_wait_of_over_a_second_names_the_holder(output):
    """Who waits for over a second says on its standard error for whom, once, although the request was sent."""
    configure(output)
    with Holder("Engine(seconds=2.0)") as other:
        waiter = """
with training_step(1):
    for _ in range(2):
        with training_stage("update"):
            pass
profwin.shutdown()
"""
        with Child(waiter, **profwin.environment()) as asking:
            status, _, errors = asking.finish()
        other.leave()
        other.acts()
        pid = other.pid
    assert status == 0
    assert errors.count(f"pid {pid}") == 1
    assert "stage 'update' of step 1 has waited for pretend-card" in errors
    assert "rollout window 'rollout'" in errors
    profwin.shutdown()
    assert Evidence(output).recorded() == ["rollout", "update", "update"]


@pytest.mark.parametrize("again", [True, False])
def test_a_stop_that_fails_leaves_the_device_unknown(output, again):
    """The one who asked runs unrecorded within its budget; when the engine's next stop is confirmed, it is recorded."""
    configure(output, wait_budget=0.6)
    with Holder(f"Engine(faults={1 if again else 9}, process_ids=(os.getpid(),))", steps=(1, 2)) as other:
        with training_step(1):
            assert timed(update) < PROMPT
        assert other.leave() is False
        assert other.hear() == "inside"
        with training_step(2):
            update()
        assert other.leave() is False
        other.acts()
    with training_step(3):
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    first, *rest = evidence.collections()
    assert first["reason"] == "asked"
    assert "no answer" in evidence.of("close")[0]["error"]
    skips = [skip for skip in evidence.skips() if skip[0] == "update"]
    if again:
        assert skips == [("update", "unknown")]
        assert [(each["name"], each["step"], each["reason"]) for each in rest] == [
            ("rollout", 2, "asked"), ("update", 2, "end"), ("update", 3, "end"),
        ]  # fmt: skip
    else:
        assert skips == [("update", "unknown"), ("update", "unknown")]
        assert evidence.collections(step=3), "the death of its processes frees the device"


def test_two_that_ask_at_once(output):
    """Two processes that ask for one device are both served, one after the other, and the holder is asked once."""
    configure(output)
    asker = """
hear()
with training_step(1):
    with {block}:
        pass
profwin.shutdown()
"""
    blocks = ('training_stage("update")', 'rollout_window(1, name="reward")')
    variables = profwin.environment()
    with Holder("Engine(seconds=0.3)") as other:
        children = [Child(asker.format(block=block), **variables) for block in blocks]
        try:
            time.sleep(0.5)
            for child in children:
                child.say()
            for child in children:
                status, _, errors = child.finish()
                assert status == 0, errors
        finally:
            for child in children:
                child.__exit__()
        other.leave()
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == []
    assert sorted(evidence.recorded()) == ["reward", "rollout", "update"]
    assert len(evidence.of("asked")) == 1
