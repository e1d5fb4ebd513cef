"""Node agents on two hosts: stages on either are recorded in the steps that a process on the other says."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("ray", reason="ray is not installed: agents cannot be tried")

from core_support import Evidence
from ray_support import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
HOSTS = True


def drive(script, address, output):
    """Run a driver on the first host to its end; return what it said."""
    with Driver(script, address, output, PROFWIN_PRETEND_HOST="first") as driver:
        return driver.end()


def steps(output, name="update", **values):
    """Return the steps of a stage's records, in order; all of them must have been recorded."""
    found = Evidence(output).of("enter", name=name, **values)
    assert all("collection" in each for each in found), found
    return [each["step"] for each in found]


def findings(output):
    """Return the code of every finding."""
    return [record["code"] for record in Evidence(output).of("finding")]


WINDOWS = """
connect(steps="1,3")
profwin.ray.agents(timeout=100)
called = []

def watch(frame, event, function):
    if event == "call":
        called.append(frame.f_globals.get("__name__") or "")
    elif event == "c_call":
        called.append(getattr(function, "__module__", None) or "")

def calls(block):
    called.clear()
    sys.setprofile(watch)
    with block:
        sys.setprofile(None)
    return [name for name in called if name.startswith(("ray", "concurrent"))]

trainer = place(Trainer, "second", "pretend:b")
made = []
for step in range(8):
    made.append(bool(calls(rollout_window(step))))
    ray.get(trainer.update.remote())
say(json.dumps(made))
with training_step(1):
    say(json.dumps(calls(training_stage("here", devices="pretend:a"))))
"""


def test_windows_of_the_driver(cluster, output):
    """Stages on another host follow the driver's windows; unselected steps and stages make no call to Ray."""
    made, stage = drive(WINDOWS, cluster, output)
    assert steps(output) == [1, 3]
    assert json.loads(made) == [False, True, True, True, True, False, False, False]
    assert steps(output, "here") == [1]
    assert json.loads(stage) == []
    assert findings(output) == []


HYBRID = """
connect(steps="1,3", devices="pretend:a")
profwin.ray.agents(timeout=100)
both = place(Hybrid, "second", "pretend:b")
for step in range(6):
    with rollout_window(step, engine=profwin.ray.actors(both), weight_version=10 + step):
        ray.get(both.generate.remote())
    say(ray.get(both.update.remote()))
"""


def test_windows_over_actors(cluster, output):
    """In an actor that generates and trains on another host, stages of unselected steps are not recorded."""
    pid = int(drive(HYBRID, cluster, output)[0])
    opened = Evidence(output).of("open", pid=pid)
    assert [(each["step"], each["purpose"], each["version"]) for each in opened] == [
        (step, purpose, 10 + step) for step in (1, 3) for purpose in ("rollout", "training")
    ]
    assert findings(output) == []


DECLARED = """
connect(steps="1-2,4")
with profwin.ray.agents(timeout=100) as agents:
    trainer = place(Trainer, "second", "pretend:b")
    for step in range(6):
        with training_step(step, weight_version=20 + step):
            ray.get(trainer.update.remote())
        ray.get(trainer.update.remote())
        with rollout_window(step):  # says nothing of training, since this process declares that
            ray.get(trainer.update.remote())
        if step == 2:
            say(json.dumps(agents.status()))
"""


def test_training_steps_of_the_driver(cluster, output):
    """Between and beside the driver's training steps nothing is recorded on the other host; versions are carried."""
    status = json.loads(*drive(DECLARED, cluster, output))
    assert steps(output) == [1, 2, 4]
    assert [each["version"] for each in Evidence(output).of("open", name="update")] == [21, 22, 24]
    assert findings(output) == []
    second = next(node for node in status["nodes"].values() if node["host"] == "second")
    assert [each["key"] for each in second["devices"]] == ["pretend-b"]
    sides, agent = second["board"], second["agent"]
    assert [(sides[side]["step"], sides[side]["selected"]) for side in ("rollout", "training")] == [
        (2, True), (2, False),
    ]  # fmt: skip
    assert (sides["training"]["declarer"], sides["training"]["declarer_start"]) == (agent["pid"], agent["start"])


ASYNC = """
class AsyncTrainer:
    def __init__(self):
        self.agents = profwin.ray.agents(timeout=100)
        self.pids = [each.pid for each in self.agents.identities().values() if each.host == "first"]
        self.inside = 0

    async def train(self, step, worker):
        async with training_step(step, weight_version=step):
            self.inside += 1
            await worker.update.remote()
        await worker.update.remote()
        return sorted(self.pids)

    async def stop(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    async def go_on(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)
        return self.inside

connect(steps="1,3")
agents = profwin.ray.agents(timeout=100)
trainer, worker = place(AsyncTrainer, "second", "pretend:b"), place(Trainer, "first", "pretend:a")
for step in range(6):
    with rollout_window(step):
        pass
    if step == 1:
        ray.get(trainer.stop.remote())
    trained = trainer.train.remote(step, worker)
    if step == 1:
        time.sleep(0.5)
        say(ray.get(trainer.go_on.remote()))  # in its event loop, which goes on while the agent is waited for
    shared = ray.get(trained)
say([each.pid for each in agents.identities().values() if each.host == "first"] == shared)
"""


def test_training_steps_of_an_async_actor(cluster, output):
    """An actor elsewhere declares what is trained, sharing the driver's agents, and waits without blocking its loop."""
    inside, shared = drive(ASYNC, cluster, output)
    assert shared == "True"
    assert inside == "1"  # of step 0 alone: that of step 1 waits
    assert steps(output) == [1, 3]
    assert [each["version"] for each in Evidence(output).of("open", name="update")] == [1, 3]
    assert findings(output) == []


ASYNC_WINDOW = """
connect(steps="1", devices="pretend:a")
agents = profwin.ray.agents(timeout=100)
pids = [each.pid for each in agents.identities().values() if each.host == "second"]
trainer = place(Trainer, "second", "pretend:b")
ray.get(trainer.update.remote())

async def generate(step):
    async with rollout_window(step) as window:
        return window.recorded

async def main():
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    generated = asyncio.create_task(generate(1))
    await asyncio.sleep(0.5)
    say(generated.done())
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    say(await generated)
    await trainer.update.remote()
    await generate(2)
    await trainer.update.remote()

asyncio.run(main())
"""


def test_async_windows(cluster, output):
    """A window of a coroutine begins when the other host has confirmed its step, and blocks no event loop meanwhile."""
    assert drive(ASYNC_WINDOW, cluster, output) == ["False", "True"]
    assert steps(output) == [1]
    assert findings(output) == []


RUN = """
profwin.configure(steps="1", output=os.environ["OUTPUT"], run=os.environ["NAME"])
environment = profwin.ray.environment()
ray.init(os.environ["CLUSTER"], namespace="both", runtime_env=environment, logging_level="ERROR", log_to_driver=False)
agents = profwin.ray.agents(timeout=100)
say(json.dumps(sorted(each.pid for each in agents.identities().values())))
hear()
trainer = place(Trainer, "second", "pretend:b")
with rollout_window(1):
    pass
ray.get(trainer.update.remote())
profwin.shutdown()
say(json.dumps([agents.identities(), agents.status(), agents.each(print)]))
"""


def test_two_runs_on_one_cluster(cluster, output):
    """Each run has agents of its own, and the end of one does not touch the other's."""
    first = {"PROFWIN_PRETEND_HOST": "first"}
    with (
        Driver(RUN, cluster, output, NAME="one", **first) as one,
        Driver(RUN, cluster, output, NAME="two", **first) as two,
    ):
        pids = [pid for each in (one, two) for pid in json.loads(each.hear())]
        assert len(set(pids)) == 4
        for each in (one, two):
            each.say()
            assert json.loads(*each.end()) == [{}, {"nodes": {}}, {}]
    assert steps(output) == [1, 1]
    assert findings(output) == []
