"""Jobs on one Ray cluster: they exclude each other on each device, not elsewhere; one leaves Ray and comes back."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from ray_faults import LASTING, frees, goes_on, judged, taken, until
from ray_support import Driver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


LEAVES = """
connect(steps="1-3")
engines = [place(Engine, "first", "pretend:a"), place(Engine, "second", "pretend:b")]
kept = place(Engine, "second", "pretend:c", name="left", lifetime="detached")
engine = profwin.ray.actors([*engines, kept])
with rollout_window(1, engine=engine):
    pass
with rollout_window(2, engine=engine):
    say(json.dumps(ray.get([each.generate.remote() for each in [*engines, kept]])))
    hear()
    ray.shutdown()
    say("shut down")
    hear()
say("left")
hear()
with rollout_window(3, engine=engine) as window:
    say(window.recorded)
assert not ray.is_initialized()
join()
kept = ray.get_actor("left")
engines = [place(Engine, "first", "pretend:a"), kept]
with rollout_window(3, engine=profwin.ray.actors(engines)) as window:
    say(window.recorded)
    ray.get([each.generate.remote() for each in engines])
say(json.dumps(ray.get([each.said.remote() for each in engines])))
ray.kill(kept)
profwin.shutdown()
"""


def ends(evidence, **which):
    """Return how some collections ended: whose, of which step, and why."""
    return [(each["pid"], each["step"], each["reason"]) for each in evidence.collections(**which)]


def test_ray_shutdown_in_a_window(cluster, output):
    """It ends the job's actors, which frees their devices; the window's end says so; a new connection records on."""
    with Driver(LEAVES, cluster, output) as driver:
        first, second, kept = json.loads(driver.hear())
        frees(first, "a", cause=driver.say, orderly=output)
        assert driver.hear() == "shut down"
        until(lambda: taken("b") is None)
        assert taken("c") == "held"
        driver.say()
        assert driver.hear() == "left"
        assert taken("c") == "held"
        driver.say()
        assert driver.hear() == "False"
        assert driver.hear() == "True"
        again, told = json.loads(driver.hear())
        driver.end()
    assert again == ["start", "generate", "stop"]
    assert told == ["start", "stop", "start", "generate", "stop", "start", "generate", "stop"]
    evidence = Evidence(output)
    assert ends(evidence, pid=kept) == [(kept, 1, "end"), (kept, 2, "end"), (kept, 3, "end")]
    for pid in (first, second):
        [opened, last] = evidence.collections(pid=pid)
        assert (opened["step"], opened["reason"], last["step"]) == (1, "end", 2)
        assert last["reason"] in (None, "exit")  # Ray kills it, or lets it run to its end
    assert ["not connected to Ray" in each["error"] for each in evidence.of("close") if "error" in each] == [True]
    judged(output, "profiler-failed", "skipped-failed")


JOB = (
    LASTING
    + """
name = os.environ["JOB"]
profwin.configure(
    steps="1-9", output=os.environ["OUTPUT"], run=os.environ["RUN"], wait_budget=float(os.environ["BUDGET"])
)
ray.init(
    os.environ["CLUSTER"], namespace=name, runtime_env=profwin.ray.environment(), logging_level="ERROR",
    log_to_driver=False,
)
options = {"max_concurrency": 2}
engines = [place(Engine, node, f"pretend:{each}", **options) for node, each in (("first", "s"), ("second", name))]
trainer = place(Lasting, "first", f"pretend:{name}-training")
engine = profwin.ray.actors(engines, revocable=True)
for step in (1, 2):
    hear()
    with rollout_window(step, engine=engine):
        pids = ray.get([each.generate.remote() for each in engines])
        if step == 1:
            trainer_pid, training = ray.get(trainer.update.remote()), trainer.train.remote(os.environ["STOP"])
        say(json.dumps([*pids, trainer_pid]))
        hear()
    say("left")
ray.get(training)
"""
)


def test_two_jobs_share_a_device(cluster, output, tmp_path):
    """On that device each waits for the other, as long as it may, or goes without; all else of both goes on, whole."""
    stop = tmp_path / "stop"
    both = {"STOP": str(stop)}
    with (
        Driver(JOB, cluster, output, JOB="a", RUN="run", BUDGET="60", **both) as one,
        Driver(JOB, cluster, output, JOB="b", RUN="other", BUDGET="0.5", **both) as two,
    ):
        one.say()
        pids = json.loads(one.hear())
        two.say()
        others = json.loads(two.hear())  # its window goes without the shared device, which another run holds
        assert [taken(name) for name in "sab"] == ["held"] * 3
        for driver in (one, two):
            driver.say()
            assert driver.hear() == "left"
        two.say()
        assert json.loads(two.hear()) == others
        one.say()
        with pytest.raises(TimeoutError):
            one.hear(patience=1.0)
        goes_on(output, pids[2])
        goes_on(output, others[2])
        two.say()
        assert two.hear() == "left"
        assert json.loads(one.hear()) == pids
        one.say()
        assert one.hear() == "left"
        stop.touch()
        one.end()
        two.end()
    evidence = Evidence(output)
    assert ends(evidence, devices=["pretend-s"]) == [
        (pids[0], 1, "end"), (others[0], 2, "end"), (pids[0], 2, "end"),
    ]  # fmt: skip
    assert [(each["reason"], each["pid"]) for each in evidence.of("skip")] == [("busy", others[0])]
    for pid in (pids[1], others[1]):
        assert ends(evidence, pid=pid) == [(pid, 1, "end"), (pid, 2, "end")]
    assert not {"died-recording", "skipped-busy"} & judged(output)
    judged(output, "engine-failed", "skipped-busy", run="other")


def test_two_jobs_of_one_run(cluster, output, tmp_path):
    """Of one run, the later job's window asks the earlier one's for the device, and for nothing else."""
    stop = tmp_path / "stop"
    both = {"STOP": str(stop), "BUDGET": "60", "RUN": "run"}
    with Driver(JOB, cluster, output, JOB="a", **both) as one, Driver(JOB, cluster, output, JOB="b", **both) as two:
        one.say()
        pids = json.loads(one.hear())
        two.say()
        others = json.loads(two.hear())
        goes_on(output, pids[2])
        for driver in (one, two):
            driver.say()
            assert driver.hear() == "left"
            driver.say()
            driver.hear()
            driver.say()
            assert driver.hear() == "left"
        stop.touch()
        one.end()
        two.end()
    evidence = Evidence(output)
    assert ends(evidence, devices=["pretend-s"]) == [
        (pids[0], 1, "asked"), (others[0], 1, "asked"), (pids[0], 2, "end"), (others[0], 2, "end"),
    ]  # fmt: skip
    for pid in (pids[1], others[1]):
        assert ends(evidence, pid=pid) == [(pid, 1, "end"), (pid, 2, "end")]
    judged(output, "gave-way")


WAITS = """
path = os.environ["STOP"]

class Stuck(Engine):
    def stop_profile(self):
        while not os.path.exists(path):
            time.sleep(0.01)

connect(steps="1-3", wait_budget=0.5)
engine = place(Stuck, "first", "pretend:a")
with rollout_window(1, engine=profwin.ray.actors(engine)):
    say(ray.get(engine.generate.remote()))
hear()
ray.shutdown()
join()
other = place(Engine, "second", "pretend:b")
with rollout_window(2, engine=profwin.ray.actors(other)) as window:
    say(window.recorded)
while profwin.configuration.current().owner.collections:  # what waited for the answer
    time.sleep(0.01)
profwin.shutdown()
"""


def test_ray_shutdown_while_a_stop_is_awaited(cluster, output, tmp_path):
    """What waits for the answer ends with an error in the journal, and no later window waits for it."""
    with Driver(WAITS, cluster, output, STOP=str(tmp_path / "stop")) as driver:
        frees(int(driver.hear()), "a", cause=driver.say)
        assert driver.hear() == "True"
        driver.end()
    evidence = Evidence(output)
    late = [each["error"] for each in evidence.of("close") if "error" in each]  # or Ray has still said that it died
    assert evidence.of("finding", code="engine-died") or "not connected to Ray" in late[0]
    assert [each["reason"] for each in evidence.collections(devices=["pretend-b"])] == ["end"]
    judged(output, "late-stop", "no-stop", "no-end")
