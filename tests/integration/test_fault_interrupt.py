"""Ctrl-C at any moment: it ends what runs, and nothing of ours stays behind."""

from __future__ import annotations

import signal

import pytest
from core_support import Child, Evidence, holder, run

BLOCKS = ["rollout_window(1)", "training_stage('update')"]

LEFT = """
from core_support import descriptors
from profwin.configuration import current
from profwin.registry.lock import Held, Registry

def nothing_left():
    held = Registry().acquire(["pretend-card"], kind="rollout", run="t", name="t", step=1)
    free = isinstance(held, Held)
    if free:
        held.release()
    return free and not current().owner.collections and not current().entrance.starting
"""


@pytest.mark.parametrize("block", BLOCKS)
def test_ctrl_c_while_waiting(tmp_path, block):
    """A wait for a device ends at once with KeyboardInterrupt; the body does not run and nothing is open."""
    script = f"""{LEFT}
profwin.configure(steps="1", output={str(tmp_path)!r}, devices="pretend:card", wait_budget=60)
before = descriptors()
try:
    with training_step(1):
        profwin.configuration.current().journal.write("ready")
        before = descriptors()
        say("waiting")
        with {block}:
            say("inside")
except KeyboardInterrupt:
    say("interrupted", descriptors() == before)
hear()
say(nothing_left())
profwin.shutdown()
"""
    with holder(tmp_path) as other, Child(script) as child:
        assert child.hear() == "waiting"
        with pytest.raises(TimeoutError):
            child.hear(0.5)
        child.process.send_signal(signal.SIGINT)
        assert child.hear(5) == "interrupted True"
        other.kill()
        child.say()
        assert child.hear() == "True"
        assert child.finish()[0] == 0
        pid = child.pid
    assert not [each for each in Evidence(tmp_path).of("enter") if each["pid"] == pid]


@pytest.mark.parametrize(("block", "backend"), [(BLOCKS[0], "record"), (BLOCKS[1], "record"), (BLOCKS[0], "torch")])
def test_ctrl_c_while_recording(tmp_path, block, backend):
    """Ctrl-C in the body ends the recording, keeps it, and ends the process as it would without us."""
    script = f"""
profwin.configure(steps="1", backend={backend!r}, output={str(tmp_path)!r}, devices="pretend:card")
with training_step(1):
    with {block}:
        say("inside")
        time.sleep(60)
"""
    with Child(script) as child:
        assert child.hear() == "inside"
        child.process.send_signal(signal.SIGINT)
        status, _, err = child.finish()
    assert status == -signal.SIGINT
    assert "KeyboardInterrupt" in err
    evidence = Evidence(tmp_path)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["failure"]
    assert len(evidence.of("end")) == 1
    traces = list(tmp_path.glob("*/step_000001/**/*.json.gz"))
    assert len(traces) == (1 if backend == "torch" else 0)
    assert not list(tmp_path.glob("**/.*tmp*"))


def test_ctrl_c_at_any_moment(tmp_path):
    """Wherever in our own code Ctrl-C comes, nothing hangs, a shutdown frees everything, and a new session records."""
    script = f"""{LEFT}
import random
class Now(BaseException): pass
def strike(*_): raise Now
def block(turn):
    with rollout_window(1) if turn % 2 else training_stage("update"):
        pass
def configure():
    profwin.configure(steps="1", output={str(tmp_path)!r}, devices="pretend:card")
    with training_step(1):
        for turn in range(2):
            block(turn)
signal.signal(signal.SIGALRM, strike)
random.seed(7)
hits = 0
for _ in range(60):
    configure()
    with training_step(1):
        for turn in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(10e-6, 150e-6))
                block(turn)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Now:
                hits += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
    profwin.shutdown()
    configure()
    if not nothing_left():
        say("left behind", current().owner.collections, current().entrance.starting)
        sys.exit(1)
profwin.shutdown()
say(hits)
"""
    out, _ = run(script)
    assert int(out) > 50
