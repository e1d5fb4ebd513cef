"""Deaths on a Ray cluster of processes that record, or whose window is open: what is free, and who says what."""

from __future__ import annotations

import json
import os
import signal

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from ray_faults import LASTING, findings, frees, goes_on, judged, taken, until
from ray_support import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


ENGINE = """
connect(steps="1-4")
engines = [place(Engine, "first", "pretend:a", max_restarts=2), place(Engine, "second", "pretend:b")]
engine = profwin.ray.actors(engines)

def restarted():
    for _ in range(2000):  # Ray starts it again
        try:
            return ray.get(engines[0].said.remote())
        except ray.exceptions.RayActorError:
            time.sleep(0.1)

with rollout_window(1, engine=engine):
    say(json.dumps(ray.get([each.generate.remote() for each in engines])))
    hear()
say("left")
hear()
for step in (2, 3):
    assert restarted() == []
    with rollout_window(step, engine=engine):
        pids = ray.get([each.generate.remote() for each in engines])
    say(json.dumps(pids))
    hear()
dead(engines[0])  # it is not started again for a third time
with rollout_window(4, engine=engine) as window:
    say(window.recorded)
"""


def test_death_of_an_engine(cluster, output):
    """The killed actor's device is free by the kernel, the other's is not; the next window is in its new process."""
    with Driver(ENGINE, cluster, output) as driver:
        first, second = json.loads(driver.hear())
        assert taken("b") == "held"
        frees(first, "a")
        assert taken("b") == "held"
        driver.say()
        assert driver.hear() == "left"
        assert taken("b") is None
        driver.say()
        pids = [first]
        for _ in (2, 3):
            again, same = json.loads(driver.hear())
            assert again not in pids
            assert same == second
            pids.append(again)
            os.kill(again, signal.SIGKILL)  # between the windows, now
            until(lambda again=again: not os.path.exists(f"/proc/{again}"))
            driver.say()
        assert driver.hear() == "True"
        driver.end()
    evidence = Evidence(output)
    assert [[each["step"] for each in evidence.of("open", pid=pid)] for pid in pids] == [[1], [2], [3]]
    assert [(each["step"], each["reason"]) for each in evidence.collections(pid=second)] == [
        (1, "end"), (2, "end"), (3, "end"), (4, "end"),
    ]  # fmt: skip
    assert findings(output) == ["engine-died", "engine-failed", "no-stages"]
    judged(output, "engine-died", "engine-failed", "died-recording", "no-end")


WORKERS = """
import subprocess

class Parent(Engine):
    def __init__(self):
        super().__init__()
        self.child = subprocess.Popen(["sleep", "100"], start_new_session=True)  # else Ray kills it, too
        self.process_ids = [os.getpid(), self.child.pid]

    def child_pid(self):
        return self.child.pid

connect(steps="1-2")
engines = [place(Parent, "first", "pretend:a"), place(Engine, "second", "pretend:b")]
trainer = place(Trainer, "second", "pretend:a")
with rollout_window(1, engine=profwin.ray.actors(engines)):
    say(ray.get(engines[0].generate.remote()), ray.get(engines[0].child_pid.remote()))
    hear()
for step in (1, 2):
    with profwin.rollout_window(step):
        pass
    say(ray.get(trainer.update.remote()))
    hear()
"""


def test_death_of_an_engine_with_processes_of_its_own(cluster, output):
    """The killed actor's device is unknown, and no stage is recorded there, until the engine's processes are gone."""
    with Driver(WORKERS, cluster, output, PROFWIN_WAIT_BUDGET="0.3") as driver:
        actor, child = map(int, driver.hear().split())
        try:
            assert taken("a") == "held"
            os.kill(actor, signal.SIGKILL)
            until(lambda: taken("a") != "held")
            assert taken("a") == "unknown"
            driver.say()
            trainer = int(driver.hear())
            assert taken("a") == "unknown"
            frees(child, "a", held="unknown")
        finally:
            if os.path.exists(f"/proc/{child}"):
                os.kill(child, signal.SIGKILL)
        driver.say()
        driver.hear()
        driver.say()
        driver.end()
    evidence = Evidence(output)
    assert [each["reason"] for each in evidence.of("skip", pid=trainer)] == ["unknown"]
    assert [each["step"] for each in evidence.collections(pid=trainer)] == [2]
    judged(output, "engine-died", "died-recording", "skipped-unknown")


DRIVER_DIES = (
    LASTING
    + """
connect(steps="1-3")
engines = [place(Engine, "first", "pretend:a", name="kept", lifetime="detached"), place(Engine, "second", "pretend:b")]
trainer = place(Lasting, "second", "pretend:c", name="trainer", lifetime="detached")
with rollout_window(1, engine=profwin.ray.actors(engines)):
    say(json.dumps(ray.get([each.generate.remote() for each in engines] + [trainer.update.remote()])))
    trainer.train.remote(os.environ["STOP"])
    hear()
"""
)

DRIVER_COMES = """
connect(steps="1-3")
engine = ray.get_actor("kept")
with rollout_window(2, engine=profwin.ray.actors(engine)):
    say(json.dumps(ray.get(engine.said.remote())))
    hear()
say("left")
say(ray.get(ray.get_actor("trainer").update.remote()))
hear()
ray.kill(ray.get_actor("trainer"))
ray.kill(engine)
"""


def test_death_of_the_driver(cluster, output, tmp_path):
    """Its actors keep their devices until they end; a detached one keeps its until the next driver's window."""
    stop = tmp_path / "stop"
    with Driver(DRIVER_DIES, cluster, output, STOP=str(stop)) as driver:
        kept, other, trainer = json.loads(driver.hear())
        goes_on(output, trainer)
        frees(other, "b", cause=driver.kill, orderly=output)  # Ray ends the actors of a driver that is gone
    assert taken("a") == "held"
    goes_on(output, trainer)
    with Driver(DRIVER_COMES, cluster, output) as driver:
        assert json.loads(driver.hear()) == ["start", "generate", "stop", "start"]
        assert taken("a") == "held"
        goes_on(output, trainer)
        driver.say()
        assert driver.hear() == "left"
        assert taken("a") is None
        stop.touch()
        assert int(driver.hear()) == trainer
        driver.say()
        driver.end()
    evidence = Evidence(output)
    assert [(each["step"], each["reason"]) for each in evidence.collections(pid=kept)] == [(1, "end"), (2, "end")]
    judged(output, "died-recording", "no-end")


TRAINERS = (
    LASTING
    + """
class Hanging(Lasting):
    @training_stage
    def hang(self):
        time.sleep(100)

def outcome(reference):
    try:
        return ray.get(reference)
    except ray.exceptions.RayActorError as error:
        return type(error).__name__

connect(steps="1")
trainers = [place(Hanging, "second", f"pretend:{name}", max_restarts=number) for number, name in enumerate("ab")]
lasting = place(Lasting, "first", "pretend:c")
with rollout_window(1):
    training = lasting.train.remote(os.environ["STOP"])
hanging = [each.hang.remote() for each in trainers]
for each in hanging:
    say(outcome(each))
hear()
while (said := outcome(trainers[0].update.remote())) == "ActorUnavailableError":
    time.sleep(0.1)
say(said)
while not isinstance(again := outcome(trainers[1].update.remote()), int):
    time.sleep(0.1)
say(again)
ray.get(training)
"""
)


def test_death_of_trainers(cluster, output, tmp_path):
    """Killed in a stage, each frees its device; one that Ray starts again trains on, recorded, in its new process."""
    stop = tmp_path / "stop"
    with Driver(TRAINERS, cluster, output, STOP=str(stop)) as driver:
        until(lambda: {"pretend-a", "pretend-b", "pretend-c"} <= {*_opened(output)})
        opened = _opened(output)
        for name in "ab":
            frees(opened[f"pretend-{name}"], name)
            goes_on(output, opened["pretend-c"])
            assert "Error" in driver.hear()
        driver.say()
        assert driver.hear() == "ActorDiedError"
        again = int(driver.hear())
        goes_on(output, opened["pretend-c"])
        stop.touch()
        driver.end()
    evidence = Evidence(output)
    killed = [
        [(each["name"], each["reason"]) for each in evidence.collections(devices=[f"pretend-{name}"])] for name in "ab"
    ]
    assert killed == [[("hang", None)], [("hang", None), ("update", "end")]]
    assert [each["pid"] for each in evidence.of("open", devices=["pretend-b"])] == [opened["pretend-b"], again]
    judged(output, "died-recording")


def _opened(output):
    return {device: each["pid"] for each in Evidence(output).of("open") for device in each["devices"]}
