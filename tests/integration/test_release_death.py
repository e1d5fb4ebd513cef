"""Who dies between a request to release and the release leaves nobody hanging."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
from core_support import Child, Evidence
from release_support import PROMPT, Holder, configure

import profwin
from profwin import training_stage, training_step


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
    deadline = time.monotonic() + 4 * PROMPT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waiting(output):
    """Start a stage that waits for the device in a thread; return when its request has arrived."""
    thread = threading.Thread(target=update)
    thread.start()
    until(lambda: Evidence(output).of("asked"))
    return thread


@pytest.mark.parametrize("engine", ["dead", "alive", "unknown"])
def test_the_holder_is_killed_after_the_request(output, engine):
    """The device is free once its engine's processes are known to be dead; else it stays unknown within the budget."""
    configure(output, wait_budget=0.8 if engine != "dead" else 30.0)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        pids = {"dead": (process.pid,), "alive": (process.pid,), "unknown": ()}[engine]
        try:
            with (
                Holder(f"Engine(patience=60, process_ids={pids})") as other,
                training_step(1),
            ):
                thread = waiting(output)
                began = time.monotonic()
                if engine == "dead":
                    process.kill()
                assert other.kill() == -signal.SIGKILL
                thread.join()
                took = time.monotonic() - began
        finally:
            process.kill()
    assert took < PROMPT
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check(killed=(other.pid,))
    assert [each["answer"] for each in evidence.of("ask")] == ["sent"]
    assert evidence.skips() == ([] if engine == "dead" else [("update", "unknown")])
    assert len(evidence.of("enter", name="update")) == 1


def test_the_one_who_asked_is_killed(output):
    """The holder lets go all the same, nothing hangs, and whoever comes next has the device."""
    configure(output)
    asker = """
with training_step(1):
    with training_stage("killed"):
        say("recorded")
        hear()
"""
    with Holder("Engine(seconds=0.5)", steps=(1, 2)) as other, Child(asker, **profwin.environment()) as asking:
        until(lambda: Evidence(output).of("asked"))
        assert asking.kill() == -signal.SIGKILL
        with training_step(1):
            update()
        assert other.leave() is False
        assert other.hear() == "inside"
        assert other.leave() is True
        other.acts()
        killed = asking.pid
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check(killed=(killed,))
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "asked"), ("update", "end"), ("rollout", "end"),
    ]  # fmt: skip
    assert evidence.of("asked")[0]["asker"] == killed


def test_the_one_who_asked_is_killed_before_anybody_hears(output):
    """A request that is found in the FIFO after its sender's death is served, at the cost of the window's rest."""
    configure(output)
    with Holder() as other:
        other.process.send_signal(signal.SIGSTOP)
        asker = """
with training_step(1), training_stage("killed"):
    pass
"""
        with Child(asker, **profwin.environment()) as asking:
            until(lambda: Evidence(output).of("ask"))
            assert asking.kill() == -signal.SIGKILL
            killed = asking.pid
        other.process.send_signal(signal.SIGCONT)
        with training_step(1):
            update()
        other.leave()
        other.acts()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check(killed=(killed,))
    assert "update" in evidence.recorded()


@pytest.mark.parametrize("victim", ["holder", "asking"])
def test_deaths_at_any_point_of_a_request(output, victim):
    """Wherever in a request or a stop one of the two is killed, the other one goes on, and the device can be had."""
    configure(output, steps="0-99")
    asker = """
say("ready")
hear()
with training_step({step}), training_stage("theirs"):
    pass
profwin.shutdown()
"""
    killed = []
    for number in range(8):
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as engine:
            try:
                with (
                    Holder(f"Engine(seconds=0.003, process_ids=({engine.pid},))", steps=(number,)) as other,
                    Child(asker.format(step=number), **profwin.environment()) as asking,
                ):
                    assert asking.hear() == "ready"
                    asking.say()
                    time.sleep(0.0015 * number)
                    if victim == "holder":
                        killed.append(other.pid)
                        other.kill()
                        engine.kill()
                        assert asking.finish()[0] == 0
                    else:
                        killed.append(asking.pid)
                        asking.kill()
                        other.leave()
                        other.acts()
            finally:
                engine.kill()
        with training_step(number):
            assert timed(update) < PROMPT
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check(killed=tuple(killed))
    assert evidence.skips() == []
    assert evidence.recorded().count("update") == 8
