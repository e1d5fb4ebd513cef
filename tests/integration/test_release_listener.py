"""The thread that hears requests to release dies, or does not run."""

from __future__ import annotations

import ctypes
import signal
import time

import pytest
from core_support import Child, Evidence
from release_support import PROMPT, Engine, Holder, configure

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current


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


def until(condition):
    """Wait until something is so."""
    deadline = time.monotonic() + 2 * PROMPT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


DYING = """
import ctypes
from release_support import Engine
from profwin.configuration import current
say("ready")
for line in iter(hear, "end"):
    with rollout_window(int(line), engine=Engine()) as window:
        say("inside")
        if hear() == "die":
            listener = current().listener()
            thread = listener._thread
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
            listener._ring()
            thread.join(10)
            say(thread.is_alive())
            hear()
        say(window.recorded)
profwin.shutdown()
"""


def test_the_thread_that_hears_requests_dies(output):
    """Requests are refused at once, the wait budget holds, and the next window can be asked again."""
    configure(output, wait_budget=0.5)
    with Child(DYING, **profwin.environment()) as child:
        assert child.hear() == "ready"
        child.say("1")
        assert child.hear() == "inside"
        child.say("die")
        assert child.hear() == "False"
        with training_step(1):
            assert 0.4 < timed(update) < PROMPT
        child.say()
        assert child.hear() == "True"
        child.say("2")
        assert child.hear() == "inside"
        with training_step(2):
            assert timed(update) < PROMPT
        child.say()
        assert child.hear() == "False"
        child.say("end")
        status, _, errors = child.finish()
        assert status == 0, errors
        assert "has ended; the next window starts another" in errors
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["answer"] for each in evidence.of("ask")] == ["refused", "sent"]
    assert evidence.skips() == [("update", "busy")]
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "end"), ("rollout", "asked"), ("update", "end"),
    ]  # fmt: skip


def test_it_dies_while_it_keeps_time(output):
    """A limit is kept by the next safe point, where the thread that would have kept it is dead."""
    configure(output)
    with rollout_window(1, engine=Engine(), max_seconds=0.3) as window:
        listener = current().listener()
        thread = listener._thread
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        listener._ring()
        thread.join(PROMPT)
        assert not thread.is_alive()
        time.sleep(0.4)
        assert window.recorded
        with training_stage("elsewhere", devices="pretend:other"):
            pass
        until(lambda: not window.recorded)
    profwin.shutdown()
    assert Evidence(output).collections()[0]["reason"] == "cut"


def test_a_holder_that_is_stopped_by_a_signal(output):
    """A request to a process that is stopped is served when it goes on; who asks keeps to the budget meanwhile."""
    configure(output, wait_budget=0.5)
    with Holder() as other:
        other.process.send_signal(signal.SIGSTOP)
        with training_step(1):
            assert 0.4 < timed(update) < PROMPT
        other.process.send_signal(signal.SIGCONT)
        until(lambda: Evidence(output).of("close", reason="asked"))
        with training_step(2):
            update()
        assert other.leave() is False
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "busy")]
