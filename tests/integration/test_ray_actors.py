"""Ray actors as engines, on two raylets: each holds its device in its own process, and training takes turns with it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from ray_support import Driver, drive

from profwin.testing import assert_no_overlap, assert_rollout_before_training, read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def findings(output):
    """Return the code of every finding."""
    return [record["code"] for record in Evidence(output).of("finding")]


LOOP = """
connect(steps="1,3")
engines = [place(Engine, "first", "pretend:a"), place(Engine, "second", "pretend:b", name="named")]
engine = profwin.ray.actors([engines[0], ray.get_actor("named")])
trainers = [place(Trainer, "first", "pretend:a"), place(Trainer, "second", "pretend:b")]
for step in (1, 2, 3):
    with rollout_window(step, engine=engine):
        pids = ray.get([each.generate.remote() for each in engines])
    trained = ray.get([each.update.remote() for each in trainers])
say(json.dumps([pids, trained, ray.get([each.said.remote() for each in engines])]))
"""


def test_windows_on_two_nodes(cluster, output):
    """In each selected step both actors hold their devices, then the trainers do; nothing is mixed or missing."""
    engines, trainers, said = json.loads(*drive(LOOP, cluster, output))
    assert said == [["start", "generate", "stop", "generate", "start", "generate", "stop"]] * 2
    evidence = Evidence(output)
    for pids, purpose in ((engines, "rollout"), (trainers, "training")):
        for pid, device in zip(pids, ("pretend-a", "pretend-b"), strict=True):
            opened = [(each["step"], each["purpose"], each["devices"]) for each in evidence.of("open", pid=pid)]
            assert opened == [(step, purpose, [device]) for step in (1, 3)]
    record = read_record(output)
    assert_no_overlap(record)
    for step in (1, 3):
        assert_rollout_before_training(record, step)
    assert findings(output) == []
    done = subprocess.run(
        [sys.executable, "-m", "profwin", "check", str(output / "run")], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clean" in done.stdout, done.stdout


HYBRID = """
connect(steps="1,3", devices="pretend:a")
both = place(Hybrid, "first", "pretend:a")
for step in (1, 2, 3):
    with rollout_window(step, engine=profwin.ray.actors(both)):
        ray.get(both.generate.remote())
    pid = ray.get(both.update.remote())
say(pid)
"""


def test_actor_that_generates_and_trains(cluster, output):
    """In one actor windows and stages take turns, in selected steps alone; the driver's own devices do not matter."""
    [pid] = drive(HYBRID, cluster, output)
    opened = [(each["step"], each["purpose"]) for each in Evidence(output).of("open", pid=int(pid))]
    assert opened == [(step, purpose) for step in (1, 3) for purpose in ("rollout", "training")]
    assert findings(output) == []


ASKED = """
connect(steps="1")
engine = place(Engine, "first", "pretend:a", max_concurrency=2)
trainer = place(Trainer, "second", "pretend:a")
with rollout_window(1, engine=profwin.ray.actors(engine, revocable=True)):
    ray.get(trainer.update.remote())
    say(json.dumps(ray.get(engine.said.remote())))
"""


def test_revocable_actor(cluster, output):
    """An actor that may be stopped at any time lets go of its device when a stage elsewhere asks its process for it."""
    assert json.loads(*drive(ASKED, cluster, output)) == ["start", "stop"]
    evidence = Evidence(output)
    collections = evidence.collections(devices=["pretend-a"])
    assert [(each["purpose"], each["reason"]) for each in collections] == [("rollout", "asked"), ("training", "end")]
    assert_no_overlap(read_record(output))
    assert findings(output) == []


SYNCS = """
connect(steps="1-2")
engine = place(Engine, "second", "pretend:a")
parts = profwin.ray.actors(engine)
for version in (0, 1, 2):
    with profwin.weight_sync(version, parts):
        pass
    ray.get(engine.generate.remote())
say(json.dumps(ray.get(engine.said.remote())))
loop = profwin.Loop("sync", engine=parts)
for step in (2, 3):
    loop.step_begins(step)
    loop.samples_in_hand()
    loop.step_ends()
say(json.dumps(ray.get(engine.said.remote())))
"""


def test_weight_syncs_and_loops(cluster, output):
    """Actors are engines of weight syncs and loops, too, and their windows have the version of the weights."""
    said = [json.loads(line) for line in drive(SYNCS, cluster, output)]
    synced = ["start", "generate", "stop", "start", "generate", "stop", "generate"]
    assert said == [synced, [*synced, "start", "stop"]]
    opened = Evidence(output).of("open", devices=["pretend-a"])
    assert [(each["step"], each.get("version")) for each in opened[:2]] == [(1, 0), (2, 1)]


STAGES = """
class Threaded(Trainer):
    @training_stage
    @ray.method(concurrency_group="beside")
    def evaluate(self):
        return threading.get_ident()

    @training_stage
    def batches(self):
        yield 1
        yield 2

class Looped:
    @training_stage
    @ray.method(concurrency_group="beside")
    async def update(self):
        return threading.get_ident()

    @training_stage
    async def stream(self):
        yield threading.get_ident()

connect(steps="1")
options = {"num_cpus": 0, "concurrency_groups": {"beside": 1}}
threaded = ray.remote(**options, max_concurrency=2)(Threaded).remote()
looped = ray.remote(**options)(Looped).remote()
with training_step(1):
    ray.get([threaded.update.remote(), threaded.evaluate.remote(), looped.update.remote()])
    assert [ray.get(each) for each in threaded.batches.remote()] == [1, 2]
    assert [ray.get(each) for each in looped.stream.remote()] != ray.get([looped.update.remote()])
"""


def test_stages_of_concurrent_actors(cluster, output):
    """Stages are recorded in threaded actors and in those with concurrency groups, in whichever loop they run."""
    drive(STAGES, cluster, output)
    evidence = Evidence(output)
    assert sorted(evidence.recorded()) == ["batches", "evaluate", "stream", "update", "update", "update"]
    assert evidence.skips() == []


OVERTAKEN = """
class Training:
    @training_stage
    def update(self, path):
        open(path + "-inside", "w").close()
        while not os.path.exists(path):
            time.sleep(0.01)

connect(steps="1-2")
path = os.environ["RELEASE"]
engine, trainer = place(AsyncEngine, "second", "pretend:a"), place(Training, "first", "pretend:a")
with training_step(1):
    training = trainer.update.remote(path)
    while not os.path.exists(path + "-inside"):
        time.sleep(0.01)
part = profwin.ray.actors(engine, timeout=0.5)
with rollout_window(1, engine=part) as window:
    say(window.recorded)
open(path, "w").close()
ray.get(training)
beside = engine.beside.remote()
with rollout_window(2, engine=profwin.ray.actors(engine)) as window:
    say(window.recorded)
ray.get(beside)
say(json.dumps(ray.get(engine.said.remote())))
"""


def test_stop_while_a_start_waits(cluster, output, tmp_path):
    """A start that waits for a busy device in an asynchronous actor, and its stop, leave the actor as it was."""
    release = str(tmp_path / "release")
    with Driver(OVERTAKEN, cluster, output, RELEASE=release) as driver:
        assert (driver.hear(), driver.hear()) == ("False", "True")
        [calls, _loops] = json.loads(*driver.end())
    told = [call for call in calls if call != "beside"]
    assert told in (["start", "stop"], ["start", "stop"] * 2)  # the first one may have had its device for a moment
    windows = Evidence(output).collections(purpose="rollout", devices=["pretend-a"])
    assert windows[-1]["step"] == 2
    assert_no_overlap(read_record(output))


ASYNC = """
connect(steps="1")
engine = place(AsyncEngine, "second", "pretend:a")
threaded = place(Engine, "first", "pretend:b", max_concurrency=3)

async def main():
    beside = engine.beside.remote()  # the start waits for it, and it for the start
    async with rollout_window(1, engine=profwin.ray.actors([engine, threaded])):
        await beside

asyncio.run(asyncio.wait_for(main(), 200))
say(json.dumps([ray.get(engine.said.remote()), ray.get(threaded.said.remote())]))
"""


def test_async_and_threaded_actors(cluster, output):
    """Coroutine methods run in the actor's own loop, which goes on meanwhile; threads may begin and end a window."""
    (calls, loops), threaded = json.loads(*drive(ASYNC, cluster, output))
    assert (calls, loops) == (["start", "beside", "stop"], 1)
    assert threaded == ["start", "stop"]
    evidence = Evidence(output)
    assert sorted(each["devices"] for each in evidence.collections(purpose="rollout")) == [
        [],
        ["pretend-a"],
        ["pretend-b"],
    ]
    assert {each["reason"] for each in evidence.collections()} == {"end"}
    assert findings(output) == ["no-stages"]


PARTIAL = """
connect(steps="1", wait_budget=0.5)
first, second = (
    place(Engine, "second", "pretend:shared", num_gpus=0.5, name=name) for name in ("one", "two")
)
broken, off = place(Broken, "first", "pretend:broken"), ray.remote(Engine).options(
    num_cpus=0, runtime_env={"env_vars": {"PROFWIN_STEPS": ""}}
).remote()
killed = place(Engine, "first", "pretend:dead")
ray.kill(killed)
dead(killed)
ray.get([each.said.remote() for each in (first, second, broken, off)])
engine = profwin.ray.actors([first, second, broken, off, killed])
with rollout_window(1, engine=engine) as window:
    say(window.recorded)
say(json.dumps(ray.get([each.said.remote() for each in (first, second, broken, off)])))
with rollout_window(1, engine=profwin.ray.actors(second, timeout=60)) as window:
    say(window.recorded)
"""


def test_parts_that_do_not_record(cluster, output):
    """Who is turned away, raises, is not configured or is dead is said and undone, and keeps nobody else from it."""
    recorded, said, again = drive(PARTIAL, cluster, output)
    assert (recorded, again) == ("True", "True")
    one, two, broken, off = json.loads(said)
    assert sorted([one, two]) == [[], ["start", "stop"]]
    assert (broken, off) == (["start", "stop"], [])
    evidence = Evidence(output)
    details = [record["detail"] for record in evidence.of("finding", code="engine-failed")]
    assert len(details) == 4
    for words in ("busy: rollout window", "engine: ", "off: profwin is off", "the actor has died"):
        assert [f"did not record: {words}" in detail for detail in details].count(True) == 1, (words, details)
    assert [each["reason"] for each in evidence.of("skip")] in (["busy", "engine"], ["engine", "busy"])
    assert_no_overlap(read_record(output))
    assert len(evidence.of("enter")) == len(evidence.of("exit"))
    assert {each["reason"] for each in evidence.collections(purpose="rollout")} <= {"end", "failure"}
