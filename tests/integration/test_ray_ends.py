"""Engines on a Ray cluster that stop late, never, or after their driver; and what is seen without the lock."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from check_support import codes
from core_support import ROOT, Evidence
from ray_faults import LASTING, findings, frees, goes_on, judged, taken, until
from ray_support import Driver

from profwin.testing import assert_no_overlap, read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

NO_LOCK = Path(__file__).with_name("no_lock")


STUCK = (
    LASTING
    + """
path = os.environ["STOP"]

class Stuck(Engine):
    def stop_profile(self):
        super().stop_profile()
        while not os.path.exists(path):
            time.sleep(0.01)

def closed():
    while profwin.configuration.current().owner.collections:  # what waits for the answers
        time.sleep(0.01)

connect(steps="1-3", wait_budget=0.5)
engines = [
    place(Stuck, "first", "pretend:a"), place(Stuck, "second", "pretend:b", max_concurrency=2),
    place(Engine, "second", "pretend:c"),
]
trainers = [place(Lasting, "first", f"pretend:{name}") for name in "ad"]
engine = profwin.ray.actors(engines, timeout=60)

def patience(seconds):  # for the two that will not answer
    for each in engine[:2]:
        each._timeout = seconds

with rollout_window(1, engine=engine):
    ray.get([each.generate.remote() for each in engines])
    patience(1.5)
pids = ray.get([each.update.remote() for each in trainers])
training = trainers[1].train.remote(path)
closed()
say(json.dumps(pids))
hear()
with rollout_window(2, engine=engine) as window:
    say(window.recorded)
closed()
say(json.dumps(ray.get(engines[2].said.remote())))
patience(60)
hear()
with rollout_window(3, engine=engine):
    ray.get([each.generate.remote() for each in engines])
    say(json.dumps(ray.get([each.said.remote() for each in engines])))
ray.get(training)
"""
)


def test_stops_that_do_not_answer(cluster, output, tmp_path):
    """The window's end is bounded, the devices stay held, windows and stages elsewhere go on; then all is as before."""
    stop = tmp_path / "stop"
    with Driver(STUCK, cluster, output, STOP=str(stop)) as driver:
        trainer, lasting = json.loads(driver.hear())
        assert [taken(name) for name in "abc"] == ["held", "held", None]
        goes_on(output, lasting)
        driver.say()
        assert driver.hear() == "True"
        assert json.loads(driver.hear()) == ["start", "generate", "stop", "start", "stop"]
        assert [taken(name) for name in "abc"] == ["held", "held", None]
        goes_on(output, lasting)
        stop.touch()
        until(lambda: [taken(name) for name in "ab"] == [None, None])
        driver.say()
        first, second, third = json.loads(driver.hear())
        assert first[-2:] == second[-2:] == third[-2:] == ["start", "generate"]
        driver.end()
    evidence = Evidence(output)
    assert [each["reason"] for each in evidence.of("skip", pid=trainer)] == ["busy"]
    for name in "ab":
        [opened, *_, last] = evidence.collections(devices=[f"pretend-{name}"])
        assert [(each["step"], each["reason"]) for each in (opened, last)] == [(1, "end"), (3, "end")]
    assert findings(output).count("late-stop") >= 1
    judged(output, "late-stop", "engine-failed", "profiler-failed", "skipped-busy", "handover-order")


LATE = """
class Slow(Engine):
    def work(self):
        while not os.path.exists(os.environ["RELEASE"]):
            time.sleep(0.01)

connect(steps="1-2")
engine = ray.remote(Slow).options(num_cpus=0, runtime_env={
    "env_vars": {"PROFWIN_DEVICES": "pretend:a", "RELEASE": os.environ["RELEASE"]}
}).remote()
parts = profwin.ray.actors(engine)
with rollout_window(1, engine=parts):
    engine.work.remote()
    parts[0]._timeout = 1.0
say("left")
with rollout_window(2, engine=parts) as window:
    say(window.recorded)
hear()
say(json.dumps(ray.get(engine.said.remote())))
"""


def test_answers_that_come_too_late(cluster, output, tmp_path):
    """A busy actor keeps its device until its stop comes; a start that comes after its window is undone at once."""
    release = tmp_path / "release"
    with Driver(LATE, cluster, output, RELEASE=str(release)) as driver:
        assert driver.hear() == "left"
        assert taken("a") == "held"
        assert driver.hear() == "False"
        assert taken("a") == "held"
        release.touch()
        driver.say()
        assert json.loads(*driver.end()) == ["start", "stop", "start", "stop"]
    until(lambda: taken("a") is None)
    evidence = Evidence(output)
    closed = [each for each in evidence.of("close") if "error" in each]
    assert ["has not answered" in each["error"] for each in closed] == [True]
    assert [each["reason"] for each in evidence.of("skip")] == ["engine"]
    assert [each["reason"] for each in evidence.collections(devices=["pretend-a"])] == ["end", "end"]
    judged(output, "profiler-failed", "skipped-failed")


LIMITED = """
connect(steps="1-3")
options = {"lifetime": "detached", "max_concurrency": 2}
engines = [place(Engine, "first", f"pretend:{name}", name=name, **options) for name in "abc"]
parts = [
    *profwin.ray.actors(engines[0], revocable=True, max_seconds=1),
    *profwin.ray.actors(engines[1], revocable=True),
    *profwin.ray.actors(engines[2]),
]
with rollout_window(1, engine=parts):
    say(json.dumps(ray.get([each.generate.remote() for each in engines])))
    hear()
"""

ASKING = """
connect(steps="1-3")
say(json.dumps([ray.get(ray.get_actor(name).said.remote()) for name in "ab"]))
hear()
with rollout_window(1):
    pass
ray.get(place(Trainer, "second", "pretend:b").update.remote())
say(json.dumps(ray.get(ray.get_actor("b").said.remote())))
hear()
for name in "abc":
    ray.kill(ray.get_actor(name))
"""


def test_engines_that_outlive_their_driver(cluster, output):
    """One that may be stopped ends after max_seconds, or when it is asked; another keeps its device until its end."""
    with Driver(LIMITED, cluster, output) as driver:
        pids = json.loads(driver.hear())
        driver.kill()
    assert (taken("b"), taken("c")) == ("held", "held")
    until(lambda: taken("a") is None)
    with Driver(ASKING, cluster, output) as driver:
        assert ["stop" in told for told in json.loads(driver.hear())] == [True, False]
        driver.say()
        assert json.loads(driver.hear()) == ["start", "generate", "stop"]
        assert taken("b") is None
        frees(pids[2], "c", cause=driver.say)
        driver.end()
    evidence = Evidence(output)
    reasons = [[each["reason"] for each in evidence.collections(pid=pid)] for pid in pids]
    assert reasons == [["cut"], ["asked"], [None]]
    judged(output, "died-recording", "cut-short", "gave-way")


CONTROL = """
witness = os.environ["WITNESS"]  # a file that only one process at a time can make

class Witnessed(Engine):
    def start_profile(self):
        os.close(os.open(witness, os.O_CREAT | os.O_EXCL))

    def stop_profile(self):
        os.unlink(witness)

class Other:
    @training_stage
    def update(self):
        try:
            os.close(os.open(witness, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return "overlap"
        os.unlink(witness)
        return "alone"

connect(steps="1", wait_budget=60, devices="pretend:a")
engine, trainer = (
    ray.remote(kind).options(
        num_cpus=0, resources={node: 0.001},
        runtime_env=profwin.ray.environment({"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}),
    ).remote()
    for kind, node in ((Witnessed, "first"), (Other, "second"))
)
with rollout_window(1, engine=profwin.ray.actors(engine)):
    ray.get(engine.generate.remote())
    updated = trainer.update.remote()
    hear()
say(ray.get(updated))
"""


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "no lock"])
def test_without_the_lock(cluster, output, tmp_path, locked):
    """A stage in another process than the engine's waits for it; without the lock, all that looks sees the overlap."""
    path = os.pathsep.join([str(ROOT)] if locked else [str(NO_LOCK), str(ROOT)])
    with Driver(CONTROL, cluster, output, WITNESS=str(tmp_path / "witness"), PYTHONPATH=path) as driver:
        if locked:
            until(lambda: Evidence(output).of("ask", answer="refused"))
        else:
            until(lambda: Evidence(output).of("exit", what="stage") or Evidence(output).of("close"))
        driver.say()
        assert driver.hear() == ("alone" if locked else "overlap")
        driver.end()
    if locked:
        assert "died-recording" not in judged(output)
        return
    assert "overlap" in codes(output / "run")
    with pytest.raises(AssertionError, match="overlap"):
        assert_no_overlap(read_record(output))
    with pytest.raises(AssertionError):
        judged(output)
