"""Deaths on a Ray cluster, inside windows over actors: whose devices are free, whose are not, and who says what."""

from __future__ import annotations

import json
import os
import signal

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from device_probe import becomes, taken
from ray_support import Driver, running

from profwin.testing import assert_no_overlap, read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def cluster():
    """Return the address of a cluster of two raylets."""
    with running() as address:
        yield address


@pytest.fixture
def output(tmp_path):
    """Return where the runs of a test go."""
    return tmp_path / "out"


ENGINE = """
connect(steps="1-3")
engines = [place(Engine, "first", "pretend:a", max_restarts=1), place(Engine, "second", "pretend:b")]
engine = profwin.ray.actors(engines)
with rollout_window(1, engine=engine):
    say(json.dumps(ray.get([each.generate.remote() for each in engines])))
    hear()
say("left")
for _ in range(600):  # Ray starts it again
    try:
        ray.get(engines[0].said.remote())
        break
    except ray.exceptions.RayActorError:
        time.sleep(0.1)
with rollout_window(2, engine=engine):
    say(json.dumps(ray.get([each.generate.remote() for each in engines])))
ray.kill(engines[0])
with rollout_window(3, engine=engine) as window:
    say(window.recorded)
"""


def test_death_of_an_actor(cluster, output):
    """The killed actor's device is free by the kernel, the other's is not; the next window is in its new process."""
    with Driver(ENGINE, cluster, output) as driver:
        first, second = json.loads(driver.hear())
        assert (taken("a"), taken("b")) == ("busy", "busy")
        os.kill(first, signal.SIGKILL)
        becomes("a", None, patience=60.0)
        assert taken("b") == "busy"
        driver.say()
        assert driver.hear() == "left"
        assert taken("b") is None
        again, same = json.loads(driver.hear())
        assert again != first
        assert same == second
        assert driver.hear() == "True"
        driver.end()
    evidence = Evidence(output)
    assert [each["step"] for each in evidence.of("open", pid=again)] == [2]
    assert [(each["step"], each["reason"]) for each in evidence.collections(pid=second)] == [
        (1, "end"), (2, "end"), (3, "end"),
    ]  # fmt: skip
    codes = [each["code"] for each in evidence.of("finding")]
    assert sorted(codes) == ["engine-died", "engine-failed", "no-stages"]
    assert_no_overlap(read_record(output))


DRIVER_DIES = """
connect(steps="1-3")
engine = place(Engine, "first", "pretend:a", name="kept", lifetime="detached")
other = place(Engine, "second", "pretend:b")
with rollout_window(1, engine=profwin.ray.actors([engine, other])):
    say(ray.get(engine.generate.remote()))
    hear()
"""

DRIVER_COMES = """
connect(steps="1-3")
engine = ray.get_actor("kept")
with rollout_window(2, engine=profwin.ray.actors(engine)):
    say(json.dumps(ray.get(engine.said.remote())))
    hear()
say("left")
hear()
ray.kill(engine)
"""


def test_death_of_the_driver(cluster, output):
    """A detached actor goes on recording, and holds its device, until the next driver's window; then that one is it."""
    with Driver(DRIVER_DIES, cluster, output) as driver:
        pid = int(driver.hear())
        assert taken("b") == "busy"
        driver.kill()
    becomes("b", None, patience=60.0)  # Ray ends the actors of a driver that is gone
    assert taken("a") == "busy"
    with Driver(DRIVER_COMES, cluster, output) as driver:
        assert json.loads(driver.hear()) == ["start", "generate", "stop", "start"]
        assert taken("a") == "busy"
        driver.say()
        assert driver.hear() == "left"
        assert taken("a") is None
        driver.say()
        driver.end()
    evidence = Evidence(output)
    assert [(each["step"], each["reason"]) for each in evidence.collections(pid=pid)] == [(1, "end"), (2, "end")]


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
        assert taken("a") == "busy"
        assert driver.hear() == "False"
        assert taken("a") == "busy"
        release.touch()
        driver.say()
        assert json.loads(*driver.end()) == ["start", "stop", "start", "stop"]
    becomes("a", None, patience=60.0)
    evidence = Evidence(output)
    closed = [each for each in evidence.of("close") if "error" in each]
    assert ["has not answered within 1 s" in each["error"] for each in closed] == [True]
    assert [each["reason"] for each in evidence.of("skip")] == ["engine"]
    assert [each["reason"] for each in evidence.collections(devices=["pretend-a"])] == ["end", "end"]
