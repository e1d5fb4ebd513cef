"""What the death of a process does to the windows and stages of others."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
from core_support import Child, Evidence, holder

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.registry.lock import Registry

SOON = 15.0
"""Seconds; a waiter that is not woken by the death waits for its whole budget of 60."""


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(
        **{"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "mine", "wait_budget": 60, **more}
    )


@pytest.fixture
def engine():
    """Start a process that stands for an engine's worker."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("block", ["rollout_window(1)", "training_stage('theirs')"])
@pytest.mark.parametrize("mine", ["window", "stage"])
def test_sigkill_of_a_holder_lets_the_waiter_in(output, block, mine):
    """Who waits for a window or stage of a process that is killed is recorded at once; the killed one stays visible."""
    configure(output)
    with holder(output, block) as other, training_step(1):
        killer = threading.Timer(0.3, other.process.kill)
        killer.start()
        if "stage" in block and mine == "stage":
            other.process.wait(SOON)  # a stage does not wait for training: the death alone must free the device
        began = time.monotonic()
        with rollout_window(1) if mine == "window" else training_stage("update"):
            assert time.monotonic() - began < SOON
        killer.join()
        other.process.wait(SOON)
        pid = other.pid
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check(killed=(pid,))
    assert [each["end"] for each in evidence.collections(pid=pid)] == [None]
    assert len(evidence.recorded()) == 2
    assert not evidence.of("skip")


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL", "exit", "abort"])
def test_killed_window_is_visible_and_frees_its_device(output, end):
    """Case 41: however a process dies in its window, the device is free, and the journal shows no exit of it."""
    act = {"exit": "os._exit(3)", "abort": "os.abort()"}.get(end, f"os.kill(os.getpid(), signal.{end})")
    script = f"profwin.configure(steps='1', output={str(output)!r}, devices='pretend:card')\n"
    with Child(script + f"with rollout_window(1):\n    say('inside')\n    {act}\n    time.sleep(60)") as child:
        assert child.hear() == "inside"
        child.finish()
        pid = child.pid
    configure(output, wait_budget=0)
    with rollout_window(1) as window:
        assert window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.of("enter", pid=pid)
    assert not evidence.of("exit", pid=pid)
    assert not evidence.of("end", pid=pid)


def test_a_signal_handler_of_the_user_runs_and_may_close(output):
    """Case 41: we install no handler; the user's own runs in a window, and may close it and end the run."""
    script = f"""
before = signal.getsignal(signal.SIGTERM)
def handler(*_):
    window.close()
    profwin.shutdown()
    say("handled")
    raise SystemExit(7)
signal.signal(signal.SIGTERM, handler)
profwin.configure(steps="1", output={str(output)!r}, devices="pretend:card")
with rollout_window(1) as window:
    assert signal.getsignal(signal.SIGTERM) is handler
    say("inside")
    time.sleep(60)
"""
    with Child(script) as child:
        assert child.hear() == "inside"
        assert child.kill(signal.SIGTERM) == 7
        assert child.hear() == "handled"
    Evidence(output).check()


DRIVER = """
class Engine:
    devices, process_ids = ["pretend:card"], [{engine}]
    def start_profile(self): say("started")
    def stop_profile(self): {stop}

profwin.configure(steps="1-3", output={output!r}, run="driver")
with rollout_window({step}, engine=Engine()) as window:
    say(window.recorded)
    hear()
profwin.shutdown()
"""


@pytest.fixture
def orphaned(output, engine):
    """Kill a driver whose engine goes on recording."""
    with Child(DRIVER.format(engine=engine.pid, output=str(output), stop="pass", step=1)) as driver:
        assert driver.hear() == "started"
        assert driver.hear() == "True"
        driver.kill()
    return engine


def update():
    """Return whether a stage of the device is recorded now."""
    before = profwin.configuration.current()
    with training_step(1), training_stage("update"):
        return any(each.purpose == "training" for each in before.owner.collections)


def test_device_of_an_orphaned_engine_is_unknown(output, orphaned):
    """After the driver's SIGKILL its engine may record on: stages are skipped as "unknown" until the engine is dead."""
    configure(output, wait_budget=0.2)
    assert not update()
    orphaned.kill()
    orphaned.wait()
    assert update()
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("update", "unknown")]
    assert str(orphaned.pid) in evidence.of("skip")[0]["holder"]


def test_the_engines_death_lets_a_waiter_in(output, orphaned):
    """A stage that waits for an unknown device begins soon after the engine's death."""
    configure(output)
    killer = threading.Timer(0.3, orphaned.kill)
    killer.start()
    began = time.monotonic()
    assert update()
    assert time.monotonic() - began < SOON
    killer.join()
    profwin.shutdown()
    assert not Evidence(output).of("skip")


def test_a_new_driver_confirms_the_stop(output, orphaned):
    """A driver with the same engine stops it before it starts it again; after its window the device is free."""
    stop = "say('stopped')"
    with Child(DRIVER.format(engine=orphaned.pid, output=str(output), stop=stop, step=2)) as driver:
        assert [driver.hear() for _ in range(3)] == ["stopped", "started", "True"]
        driver.say()
        assert driver.hear() == "stopped"
        assert driver.finish()[0] == 0
    configure(output, wait_budget=0)
    assert update()
    profwin.shutdown()
    assert not Evidence(output).of("skip")


def test_a_person_may_confirm(output, locks, orphaned):
    """Whoever knows that the engine stopped can say so, and the device is free."""
    assert Registry(locks).confirm("pretend-card")
    configure(output, wait_budget=0)
    assert update()
    profwin.shutdown()
    assert orphaned.poll() is None


def test_an_engine_that_cannot_stop_leaves_the_device_unknown(output, engine, caplog):
    """A failed stop is no stop: the window ends, the device stays unknown, and it is said once."""
    stop = "raise OSError('connection lost')"
    with Child(DRIVER.format(engine=engine.pid, output=str(output), stop=stop, step=1)) as driver:
        assert [driver.hear() for _ in range(2)] == ["started", "True"]
        driver.say()
        status, _, said = driver.finish()
    assert status == 0
    assert said.count("connection lost") == 1
    configure(output, wait_budget=0)
    assert not update()
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("update", "unknown")]
    assert evidence.of("mark")
    assert not evidence.of("confirmed")


def test_an_engine_that_dies_in_its_window_frees_the_device(output, engine):
    """An engine killed while it records is proven gone: the stop that fails is no matter, and it is a finding."""
    stop = "raise OSError('connection lost')"
    with Child(DRIVER.format(engine=engine.pid, output=str(output), stop=stop, step=1)) as driver:
        assert [driver.hear() for _ in range(2)] == ["started", "True"]
        engine.kill()
        driver.say()
        assert driver.finish()[0] == 0
    configure(output, wait_budget=0)
    assert update()
    profwin.shutdown()
    evidence = Evidence(output)
    assert len(evidence.of("finding", code="engine-died")) == 1
    assert not evidence.of("skip")
