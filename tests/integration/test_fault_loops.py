"""Deaths in loops with weight syncs, and engines that are gone or never confirm their stop."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest
from core_support import Child, Evidence
from release_support import PROMPT, Engine, configure

import profwin
from profwin import rollout_window, training_stage, training_step, weight_sync
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@pytest.fixture
def server():
    """Start a process that stands for an engine's."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    yield process
    process.kill()
    process.wait()


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


def check(evidence, *killed):
    """Assert the rules; a window that only the end of the run closes has no exit of its own."""
    ended = {(each["pid"], each["collection"]) for each in evidence.collections() if each["reason"] == "shutdown"}
    last = [each for each in evidence.of("enter") if (each["pid"], each.get("collection")) in ended]
    left = {(each["pid"], each["id"]) for each in evidence.of("exit")}
    for each in last:
        if (each["pid"], each["id"]) not in left:
            evidence.records.remove(each)
    evidence.check(killed=killed)


ROLLOUTER = """
from profwin import weight_sync
from release_support import Engine
engine = Engine(process_ids=({pid},))
first = int(hear())
for version in range(first, 10):
    with weight_sync(version, engine):
        say("syncing", version)
        if hear() == "die":
            os.kill(os.getpid(), signal.SIGKILL)
    say("generating", version + 1)
    if hear() == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if version == 3:
        break
profwin.shutdown()
"""


def generate(child, versions, *, last=""):
    """Lead a rollouter through some syncs; the last thing that it hears may be its end."""
    lines = [f"{what} {version + more}" for version in versions for what, more in (("syncing", 0), ("generating", 1))]
    for line in lines[: -1 if last == "sync" else None]:
        assert child.hear() == line
        if line != lines[-1] and not (last == "sync" and line == lines[-2]):
            child.say()


@pytest.mark.parametrize("where", ["sync", "window"])
def test_the_rollouter_is_killed(output, server, where):
    """Between stop and sync the device is free, in the window unknown; training goes on; its successor resumes."""
    configure(output, steps="1-9", wait_budget=0.5)
    script = ROLLOUTER.format(pid=server.pid)
    with Child(script, **profwin.environment()) as child:
        child.say("0")
        generate(child, [0, 1], last=where)
        if where == "window":
            with training_stage("elsewhere", devices="pretend:other"):
                pass
        child.say("die")
        assert child.process.wait(PROMPT) == -signal.SIGKILL
        killed = child.pid
    with training_step(1):
        assert timed(update) < PROMPT
    if where == "window":
        server.kill()
        server.wait()
    with training_step(2):
        assert timed(update) < PROMPT
    own = ROLLOUTER.format(pid="os.getpid()")
    with Child(own, **profwin.environment()) as child:
        child.say("2")
        generate(child, [2, 3])
        child.say()
        status, _, errors = child.finish()
        assert status == 0, errors
    profwin.shutdown()
    evidence = Evidence(output)
    check(evidence, killed)
    assert [skip for skip in evidence.skips() if skip[0] == "update"] == (
        [("update", "unknown")] if where == "window" else []
    )
    windows = evidence.collections(purpose="rollout")
    assert [(each["step"], each.get("version")) for each in windows] == (
        [(1, 0), (3, 2), (4, 3)] if where == "sync" else [(1, 0), (2, 1), (3, 2), (4, 3)]
    )
    assert windows[0]["reason"] == "end"
    manifest = json.loads((output / "mine" / "manifest.json").read_text())
    assert [each["ended"] for each in manifest["processes"]].count(None) == 1


TRAINER = """
from profwin import weight_sync
for version in (0, 1):
    with weight_sync(version, window=False):
        pass
    with training_stage("theirs"{device}):
        say("training", version + 1)
        hear()
profwin.shutdown()
"""


@pytest.mark.parametrize("device", ["", ', devices="pretend:other"'])
def test_the_trainer_is_killed_in_a_stage(output, device):
    """Its device is free at once, no window waits for its steps, and its successor trains the right step."""
    configure(output, steps="1-9")
    engine = Engine()
    with Child(TRAINER.format(device=device), **profwin.environment()) as child:
        assert child.hear() == "training 1"
        assert current().position.board.read("training")[:3] == (1, True, 0)
        child.kill()
        killed = child.pid
    assert timed(lambda: weight_sync(1, engine).__enter__().__exit__(None, None, None)) < PROMPT
    assert current().syncs["rollout", True].window.recorded
    # Nobody declares any more which step is trained, so the windows say it, as in a loop that takes turns.
    assert current().position.board.read("training").step == 2
    with weight_sync(2, engine):
        pass
    with Child(TRAINER.replace("(0, 1)", "(2,)").format(device=device), **profwin.environment()) as child:
        assert child.hear() == "training 3"
        child.say()
        assert child.finish()[0] == 0
    with weight_sync(3, engine):
        pass
    profwin.shutdown()
    evidence = Evidence(output)
    check(evidence, killed)
    assert evidence.skips() == []
    assert [(each["step"], each.get("version")) for each in evidence.collections(name="theirs")] == [(1, 0), (3, 2)]
    reasons = [(each["step"], each["reason"]) for each in evidence.collections(purpose="rollout")]
    # On its own device nobody asks the window to go.
    assert reasons == [(2, "end"), (3, "end" if device else "asked"), (4, "shutdown")]


def test_a_stop_that_is_never_confirmed_keeps_no_sync_waiting(output):
    """A sync waits for it within the budget; windows are skipped until it is confirmed, and recorded after that."""
    configure(output, steps="1-9", wait_budget=0.4)
    engine = Engine(patience=60.0)
    took = []
    for version in range(4):
        began = time.monotonic()
        with weight_sync(version, engine):
            took.append(time.monotonic() - began)
            if version == 3:
                engine.let_go.set()
                until(lambda: not current().owner.collections)
        with training_step(version + 1), training_stage("elsewhere", devices="pretend:other"):
            pass
    assert max(took) < PROMPT
    assert took[1] > 0.3
    profwin.shutdown()
    evidence = Evidence(output)
    check(evidence)
    assert evidence.skips() == [("rollout", "unknown"), ("rollout", "unknown")]
    assert [(each["step"], each["reason"]) for each in evidence.collections(name="rollout")] == [
        (1, "end"), (4, "shutdown"),
    ]  # fmt: skip
    assert len(evidence.collections(name="elsewhere")) == 4
    assert engine.acts == ["start", "stop"] * 2


def test_an_engine_whose_process_is_gone(output, server):
    """Its window runs unrecorded and says why, its device stays free, and no error of profwin's own is logged."""
    configure(output)
    server.kill()
    server.wait()
    engine = Engine(process_ids=(server.pid,))
    with rollout_window(1, engine=engine) as window:
        assert not window.recorded
    with training_step(1):
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("rollout", "engine")]
    assert f"no process {server.pid}" in evidence.of("skip")[0]["detail"]
    assert engine.acts == []
