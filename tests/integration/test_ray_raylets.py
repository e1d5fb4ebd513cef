"""A node's raylet dies: the processes of its actors live on, and the lock, not Ray's view, says what is free."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from ray_faults import LASTING, frees, goes_on, judged, taken, until
from ray_support import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
NODES, HOSTS = ("first", "second", "third"), True  # of which two tests kill one each

COMMON = (
    LASTING
    + """
connect(steps="1-3", wait_budget=0.5)
"""
)

AGENT = (
    COMMON
    + """
def pids():
    say(json.dumps({each.host: each.pid for each in agents.identities().values()}))
    hear()

agents = profwin.ray.agents(timeout=100)
trainers = [place(Lasting, "second", f"pretend:{name}") for name in "ab"]
for step in (1, 2, 3, 4):
    with rollout_window(step):
        if step == 3:
            pids()
    say(ray.get(trainers[0].update.remote()))
    if step == 1:
        say(ray.get(trainers[1].update.remote()))
        training = trainers[1].train.remote(os.environ["STOP"])
        pids()
ray.get(training)
agents.close()
"""
)

NOTICED = (
    COMMON
    + """
agents = profwin.ray.agents(timeout=100)
places = {"a": "first", "b": "second", "c": "second"}
engines = [place(Engine, node, f"pretend:{name}") for name, node in places.items()]
trainers = [place(Lasting, node, f"pretend:{node}") for node in ("first", "second")]
engine = profwin.ray.actors(engines)
with rollout_window(1, engine=engine):
    pids = ray.get([*(each.generate.remote() for each in engines), *(each.update.remote() for each in trainers)])
    training = [each.train.remote(os.environ["STOP"]) for each in trainers]
    say(json.dumps(pids))
    hear()
    dead(*engines[1:])
say("left")
hear()
with rollout_window(2, engine=engine) as window:
    say(window.recorded)
ray.get(training[0])
agents.close()
"""
)


def raylet(pid):
    """Kill the raylet of a worker and leave it a zombie, for which Ray's workers take it for alive."""
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert "raylet" in Path(f"/proc/{parent}/cmdline").read_text()
    os.kill(parent, signal.SIGKILL)


def driven(script, cluster, output, **environment):
    """Return a driver on the first host."""
    return Driver(script, cluster, output, PROFWIN_PRETEND_HOST="first", **environment)


def test_death_of_an_agent(cluster, output, tmp_path):
    """Killed between two steps and inside one, it is replaced; stages of its host go on, in the steps they are of."""
    stop = tmp_path / "stop"
    with driven(AGENT, cluster, output, STOP=str(stop)) as driver:
        trainer, lasting = int(driver.hear()), int(driver.hear())
        agents = [json.loads(driver.hear())]
        os.kill(agents[0]["second"], signal.SIGKILL)
        goes_on(output, lasting)
        driver.say()
        assert int(driver.hear()) == trainer
        agents.append(json.loads(driver.hear()))
        os.kill(agents[1]["second"], signal.SIGKILL)
        goes_on(output, lasting)
        stop.touch()
        driver.say()
        assert [int(driver.hear()) for _ in (3, 4)] == [trainer, trainer]
        driver.end()
    assert agents[0]["first"] == agents[1]["first"]
    assert agents[0]["second"] != agents[1]["second"]
    assert [each["step"] for each in Evidence(output).of("open", pid=trainer)] == [1, 2, 3]
    judged(output, "no-end")


def test_processes_live_on(cluster, output, tmp_path):
    """They keep their devices, and train on, when Ray takes their node for dead; a device is free with its process."""
    stop = tmp_path / "stop"
    with driven(NOTICED, cluster, output, STOP=str(stop)) as driver:
        first, second, third, *trainers = json.loads(driver.hear())
        raylet(second)
        driver.say()
        assert driver.hear() == "left"
        assert [taken("a", "first"), taken("b", "second"), taken("c", "second")] == [None, "held", "held"]
        for pid in trainers:
            goes_on(output, pid)
        driver.say()
        assert driver.hear() == "True"
        assert (taken("b", "second"), taken("c", "second")) == ("held", "held")
        frees(second, "b", "second")
        assert taken("c", "second") == "held"
        goes_on(output, trainers[1])
        frees(
            third, "c", "second", cause=lambda: cluster.kill("second"), orderly=output
        )  # which reaps it: its workers end
        goes_on(output, trainers[0])
        stop.touch()
        driver.end()
    evidence = Evidence(output)
    reasons = [[(each["step"], each["reason"]) for each in evidence.collections(pid=pid)] for pid in (first, second)]
    assert reasons == [[(1, "end"), (2, "end")], [(1, None)]]
    judged(output, "engine-died", "engine-failed", "died-recording", "node-gone")


ASKED = (
    COMMON
    + """
class Busy(Engine):
    def work(self, path):
        while not os.path.exists(path):
            time.sleep(0.01)

    @ray.method(concurrency_group="beside")
    def beside(self):
        pass

busy = ray.remote(concurrency_groups={"beside": 1})(Busy).options(
    num_cpus=0, resources={"third": 0.001}, runtime_env=profwin.ray.environment(devices="pretend:d")
).remote()
engines = [place(Engine, "first", "pretend:a"), busy]
engine = profwin.ray.actors(engines)
with rollout_window(1, engine=engine):
    say(json.dumps(ray.get([each.generate.remote() for each in engines])))
    working = busy.work.remote(os.environ["STOP"])
ray.get(busy.beside.remote())  # what was sent before has arrived
say("left")
hear()
while profwin.configuration.current().owner.collections:  # what waits for the answer
    time.sleep(0.05)
with rollout_window(2, engine=engine) as window:
    say(window.recorded)
"""
)


def test_answer_after_the_death_of_a_raylet(cluster, output, tmp_path):
    """A stop that waits in an actor's queue when its node dies is done all the same, and frees the device only then."""
    stop = tmp_path / "stop"
    with driven(ASKED, cluster, output, STOP=str(stop)) as driver:
        pid = json.loads(driver.hear())[1]
        assert driver.hear() == "left"
        raylet(pid)
        assert taken("d", "third") == "held"
        driver.say()
        assert driver.hear() == "True"
        driver.end()
    assert taken("d", "third") == "held"
    stop.touch()
    until(lambda: taken("d", "third") is None)
    assert os.path.exists(f"/proc/{pid}")
    cluster.kill("third")
    evidence = Evidence(output)
    assert [(each["step"], each["reason"]) for each in evidence.collections(pid=pid)] == [(1, "end")]
    judged(output, "engine-died", "engine-failed", "late-stop", "no-end")
