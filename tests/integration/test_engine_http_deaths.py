"""Servers, workers and trainers that die or are late, while a stage of another process wants the device."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from core_support import Child, Evidence, run
from stand_in_support import DEVICE, Server, configure, until

import profwin
from profwin import rollout_window

STAGE = """
profwin.configure(
    steps="1-9", backend="record", output={output!r}, run={run!r}, devices="pretend:card", wait_budget={budget}
)
with training_step(1), training_stage("update"):
    say("inside")
profwin.shutdown()
"""
WINDOW = """
from profwin.engines import VLLMServer
profwin.configure(steps="1-9", backend="record", output={output!r}, run="mine")
with rollout_window(1, engine=VLLMServer({url!r}, devices="pretend:card")):
    say("recording")
    hear()
profwin.shutdown()
"""


@pytest.fixture
def server(tmp_path):
    """Return a stand-in for a vLLM server."""
    with Server("vllm", tmp_path / "traces") as started:
        yield started


def _stage(tmp_path, budget: float = 0.3, name: str = "trainer") -> str:
    """Run a training stage in a process of its own; return why it was not recorded, or ``recorded``."""
    output = tmp_path / f"stage{len(list(tmp_path.iterdir()))}"
    run(STAGE.format(output=str(output), run=name, budget=budget))
    skips = Evidence(output).skips()
    return skips[0][1] if skips else "recorded"


def test_the_device_is_taken_until_the_stop_is_answered(tmp_path, server):
    """While a stop takes long no stage gets the device; one that waits gets it when the stop was answered."""
    configure(tmp_path / "out", wait_budget=60.0)
    server.faults(stop_hold=True)
    window = rollout_window(1, engine=server.engine())
    window.open()
    closing = threading.Thread(target=window.close)
    closing.start()
    until(lambda: "stop" in server.told)
    with Child(STAGE.format(output=str(tmp_path / "stage"), run="mine", budget=60.0)) as child:
        assert _stage(tmp_path) == "busy"
        server.faults()
        assert child.finish()[0] == 0
    closing.join()
    profwin.shutdown()
    stage, rollout = Evidence(tmp_path / "stage"), Evidence(tmp_path / "out")
    assert stage.recorded() == ["update"]
    assert stage.of("open")[0]["t"] >= rollout.of("confirmed")[0]["t"]


def test_a_stop_beyond_the_budget(tmp_path, server):
    """The loop goes on after the wait budget; the device stays taken until the stop is answered, then it is free."""
    configure(tmp_path / "out", wait_budget=0.2)
    server.faults(stop_hold=True)
    with rollout_window(1, engine=server.engine()):
        pass
    assert server.recording
    assert _stage(tmp_path) == "busy"
    server.faults()
    until(lambda: Evidence(tmp_path / "out").of("export"))
    profwin.shutdown()
    assert _stage(tmp_path) == "recorded"
    evidence = Evidence(tmp_path / "out")
    assert evidence.of("finding")[0]["code"] == "late-stop"
    assert len(evidence.of("export")) == 1


def test_another_process_of_the_run_can_have_the_device(tmp_path, server):
    """A stage of the same run that needs the device gets it in the middle of the window, whose recording ends there."""
    configure(tmp_path / "out")
    with rollout_window(1, engine=server.engine()):
        assert _stage(tmp_path, budget=60.0, name="mine") == "recorded"
        assert not server.recording
    profwin.shutdown()
    assert [each["reason"] for each in Evidence(tmp_path / "out").collections()] == ["asked"]


def test_one_that_is_not_revocable_keeps_it(tmp_path, server):
    """A server that is not revocable is not asked to stop by others."""
    configure(tmp_path / "out")
    with rollout_window(1, engine=server.engine(revocable=False)):
        assert _stage(tmp_path, name="mine") == "busy"
        assert server.recording


@pytest.mark.parametrize("moment", ["inside", "at the stop"])
def test_a_server_that_dies_frees_its_devices(tmp_path, server, moment):
    """Where all its processes are proven dead, a server's devices are free at once."""
    configure(tmp_path / "out")
    with rollout_window(1, engine=server.engine()):
        if moment == "inside":
            os.kill(server.state()["worker"], signal.SIGKILL)
            server.process.kill()
            server.process.wait()
        else:
            server.faults(stop="die")
    server.process.wait()
    assert _stage(tmp_path) == "recorded"
    profwin.shutdown()
    assert Evidence(tmp_path / "out").of("finding")[0]["code"] == "engine-died"


def test_a_worker_that_outlives_its_server_keeps_the_device(tmp_path, server):
    """Where the server is gone and its worker is not, the device is unknown until the worker is dead."""
    configure(tmp_path / "out")
    worker = server.state()["worker"]
    os.kill(worker, signal.SIGSTOP)  # else it would end with the server, whose pipe it reads
    try:
        with rollout_window(1, engine=server.engine()):
            server.faults(stop="orphan")
        assert _stage(tmp_path) == "unknown"
    finally:
        os.kill(worker, signal.SIGKILL)
    until(lambda: _stage(tmp_path) == "recorded")
    profwin.shutdown()


def test_a_trainer_that_is_killed_inside_a_window(tmp_path, server):
    """The device is unknown while the server lives and may record; it is free when the server is dead."""
    with Child(WINDOW.format(output=str(tmp_path / "out"), url=server.url)) as child:
        assert child.hear() == "recording"
        child.kill()
    assert server.recording
    assert _stage(tmp_path) == "unknown"
    server.kill()
    until(lambda: _stage(tmp_path) == "recorded")


def test_a_trainer_that_comes_back_stops_what_it_left(tmp_path, server):
    """A window of the next launch on the same server stops the session that a killed one left, and records."""
    with Child(WINDOW.format(output=str(tmp_path / "out"), url=server.url)) as child:
        assert child.hear() == "recording"
        child.kill()
    configure(tmp_path / "out")
    with rollout_window(1, engine=server.engine()) as window:
        assert window.recorded
        assert server.told == ["start", "stop", "start"]
    profwin.shutdown()
    assert _stage(tmp_path) == "recorded"


def test_a_trainer_that_ends_inside_a_window(tmp_path, server):
    """A process that ends in order inside a window stops the server, and leaves the device free."""
    with Child(WINDOW.format(output=str(tmp_path / "out"), url=server.url)) as child:
        assert child.hear() == "recording"
        child.kill(signal.SIGINT)
    assert not server.recording
    assert _stage(tmp_path) == "recorded"


def test_a_forked_child_has_requests_of_its_own(tmp_path, server):
    """A child that is forked inside a window neither stops the server nor keeps it from being stopped."""
    configure(tmp_path / "out")
    with rollout_window(1, engine=server.engine()):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        assert server.recording
    assert server.told == ["start", "stop"]
    assert DEVICE == "pretend:card"
