"""HTTP servers on another host of a cluster, behind windows of a driver: their node's agent drives and guards them."""

from __future__ import annotations

import os
import signal

import pytest

pytest.importorskip("ray", reason="ray is not installed: agents cannot be tried")

from core_support import PATIENCE, Child, Evidence
from ray_support import Driver
from stand_in_support import Server, until

from profwin.testing import assert_no_overlap, read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HOST = "second"
HOSTS = True

DRIVE = """
from profwin.engines import VLLMServer
connect(steps="1-9", wait_budget=float(os.environ.get("BUDGET", "60")))
agents = profwin.ray.agents(timeout=100)
there, agent = next((node, each.pid) for node, each in agents.identities().items() if each.host == "second")
def engine(**more):
    return agents.engine(VLLMServer(os.environ["URL"], devices="pretend:card", **more), there)
say(agent)
"""
WINDOW = """
for step in STEPS:
    with rollout_window(step, engine=engine()) as window:
        say(window.recorded)
        hear()
    say("left")
    hear()
"""
TWICE = "STEPS = (1, 2)" + WINDOW
UNANSWERED = TWICE.replace("engine()", "engine(stop_timeout=1.0)")
PROBE = """
from profwin.registry.lock import Registry
while hear():
    states = {each.key: each.state for each in Registry(None).survey()}
    say(states.get("pretend-card", "free"))
"""
TRAINER = """
profwin.configure(
    steps="1-9", output={output!r}, run={run!r}, devices="pretend:card", wait_budget={budget}
)
with training_step(1), training_stage("update"):
    say("inside")
    hear()
profwin.shutdown()
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Return a stand-in for a vLLM server on the second host."""
    with monkeypatch.context() as patch:
        patch.setenv("PROFWIN_PRETEND_HOST", HOST)
        started = Server("vllm", tmp_path / "traces")
    with started:
        yield started


@pytest.fixture
def state():
    """Return a function that says what the second host's registry knows of the device."""
    with Child(PROBE, PROFWIN_PRETEND_HOST=HOST) as child:

        def ask():
            child.say("look")
            return child.hear()

        yield ask
        child.say()


def drive(cluster, output, server, script="STEPS = (1,)" + WINDOW, **environment):
    """Start a driver on the first host; its first word is the pid of the second host's agent."""
    return Driver(DRIVE + script, cluster, output, PROFWIN_PRETEND_HOST="first", URL=server.url, **environment)


def trainer(output, run="run", budget=60.0):
    """Start a process of the second host that has a stage on the server's device, whatever the driver does."""
    return Child(TRAINER.format(output=str(output), run=run, budget=budget), PROFWIN_PRETEND_HOST=HOST)


def findings(output, pid=None):
    """Return the codes of a process's findings, or of all, without what short runs are told."""
    found = Evidence(output).of("finding", **({} if pid is None else {"pid": pid}))
    return sorted({each["code"] for each in found} - {"no-stages"})


def test_the_servers_host_guards_it(cluster, output, server, state):
    """The agent locks and marks the device on the server's host and brings the trace; a stage there asks and waits."""
    with drive(cluster, output, server) as driver:
        agent = int(driver.hear())
        assert driver.hear() == "True"
        assert (server.recording, state()) == (True, "held")
        assert os.listdir(server.directory) == []
        with trainer(output / "stranger", run="stranger", budget=0.2) as child:
            assert child.hear() == "inside"  # of another run: it cannot ask, and is not recorded
            child.say()
            assert child.finish()[0] == 0
        assert server.told == ["start"]
        with trainer(output) as child:
            assert child.hear() == "inside"
            assert (server.recording, server.told, state()) == (False, ["start", "stop"], "held")
            driver.say()
            assert driver.hear() == "left"
            child.say()
            assert child.finish()[0] == 0
        assert state() == "free"
        driver.say()
        driver.end()
    assert Evidence(output / "stranger").skips() == [("update", "busy")]
    evidence = Evidence(output)
    (there,) = evidence.collections(pid=agent)
    (here,) = evidence.collections(pid=driver.pid)
    (stage,) = evidence.collections(purpose="training")
    assert (there["devices"], there["reason"], here["devices"]) == (["pretend-card"], "asked", [])
    assert here["t"] <= there["t"] < there["end"] <= stage["t"]
    (mark,) = evidence.of("mark", pid=agent)
    assert server.process.pid in mark["processes"]
    (trace,) = [each["path"] for each in evidence.of("export", pid=agent)]
    assert output.joinpath("run", trace).is_file()
    assert findings(output) == []
    assert_no_overlap(read_record(output))


TURNED_AWAY = """
for step in (1, 2):
    hear()
    with rollout_window(step, engine=engine()) as window:
        say(window.recorded)
"""


def test_a_trainer_of_that_host_comes_first(cluster, output, server, state):
    """While a stage there is on the device, the window is turned away and nothing is started; the next one records."""
    with drive(cluster, output, server, TURNED_AWAY, BUDGET="0.2") as driver:
        driver.hear()
        with trainer(output / "other", run="other") as child:
            assert child.hear() == "inside"
            driver.say()
            assert driver.hear() == "False"
            assert (server.told, state()) == ([], "held")
            child.say()
            assert child.finish()[0] == 0
        driver.say()
        assert driver.hear() == "True"
        driver.end()
    (skip,) = Evidence(output).of("skip", pid=driver.pid)
    assert "busy: training stage 'update'" in skip["detail"]
    until(lambda: server.told == ["start", "stop"])
    assert_no_overlap(read_record(output))


def test_death_of_the_agent(cluster, output, server, state):
    """Its lock goes and the mark stays; at the window's end the agent in its place stops the server and confirms it."""
    with drive(cluster, output, server, TWICE) as driver:
        agent = int(driver.hear())
        assert driver.hear() == "True"
        os.kill(agent, signal.SIGKILL)
        until(lambda: state() != "held")
        assert (server.recording, state()) == (True, "unknown")
        with trainer(output / "stage", budget=0.2) as child:
            assert child.hear() == "inside"
            child.say()
            assert child.finish()[0] == 0
        driver.say()
        assert driver.hear() == "left"
        assert (server.recording, state()) == (False, "free")
        driver.say()
        assert driver.hear() == "True"  # the next window is the new agent's
        assert (server.told, state()) == (["start", "stop", "start"], "held")
        driver.say()
        assert driver.hear() == "left"
        driver.say()
        driver.end()
    assert Evidence(output / "stage").skips() == [("update", "unknown")]
    evidence = Evidence(output)
    confirmed, other = [each["pid"] for each in evidence.of("confirmed", devices=["pretend-card"])]
    assert confirmed == other not in (agent, driver.pid)
    assert findings(output, driver.pid) == ["agent-died"]


def test_death_of_the_driver(cluster, output, server, state):
    """Its agent ends with it, and the device is unknown; the next run's window there stops the server, and records."""
    with drive(cluster, output, server) as driver:
        driver.hear()
        assert driver.hear() == "True"
        driver.kill()
    until(lambda: state() != "held", PATIENCE)
    assert (server.recording, state()) == (True, "unknown")
    with drive(cluster, output / "next", server) as driver:
        driver.hear()
        assert driver.hear() == "True"
        assert (server.told, state()) == (["start", "stop", "start"], "held")
        driver.say()
        assert driver.hear() == "left"
        assert (server.recording, state()) == (False, "free")
        driver.say()
        driver.end()
    assert findings(output / "next") == []


def test_death_of_the_server(cluster, output, server, state):
    """The device of a server that is dead, with all its processes, is free by that proof, and both journals say so."""
    with drive(cluster, output, server) as driver:
        agent = int(driver.hear())
        assert driver.hear() == "True"
        os.kill(server.state()["worker"], signal.SIGKILL)
        server.process.kill()
        server.process.wait()
        assert state() == "held"  # until the window's end, at the latest
        driver.say()
        assert driver.hear() == "left"
        assert state() == "free"
        driver.say()
        driver.end()
    assert findings(output, agent) == ["engine-died"]
    assert findings(output, driver.pid) == ["engine-died"]


def test_a_stop_that_is_never_answered(cluster, output, server, state):
    """The driver goes on after a time, the device is unknown there; the next window's first act is another stop."""
    with drive(cluster, output, server, UNANSWERED) as driver:
        driver.hear()
        assert driver.hear() == "True"
        server.faults(stop="hang", times=9)
        driver.say()
        assert driver.hear() == "left"
        assert (server.recording, state()) == (True, "unknown")
        server.faults()
        told = len(server.told)
        driver.say()
        assert driver.hear() == "True"
        assert server.told[told:] == ["stop", "start"]
        driver.say()
        assert driver.hear() == "left"
        assert (server.recording, state()) == (False, "free")
        driver.say()
        driver.end()
    (failed,) = [each for each in Evidence(output).of("close", pid=driver.pid) if "error" in each]
    assert "its stop is not confirmed" in failed["error"]


def test_a_stop_that_comes_late(cluster, output, server, state):
    """The loop goes on after the wait budget; the device stays held until the stop is answered; both journals tell."""
    with drive(cluster, output, server, BUDGET="0.3") as driver:
        agent = int(driver.hear())
        assert driver.hear() == "True"
        server.faults(stop_hold=True)
        driver.say()
        assert driver.hear() == "left"
        assert (server.recording, state()) == (True, "held")
        until(lambda: findings(output, agent))  # its budget began a little later than the driver's
        server.faults()
        until(lambda: Evidence(output).of("close", pid=driver.pid))
        assert state() == "free"
        driver.say()
        driver.end()
    assert findings(output, driver.pid) == findings(output, agent) == ["late-stop"]
    (confirmed,), (closed,) = Evidence(output).of("confirmed"), Evidence(output).of("close", pid=driver.pid)
    assert (confirmed["pid"], confirmed["t"] <= closed["t"], "error" in closed) == (agent, True, False)
