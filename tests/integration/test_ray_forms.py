"""Actors in all their forms, on a real cluster: what Ray gives them, on cards that are not there, and how they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from ray_support import Driver, drive

from profwin.testing import assert_no_overlap, read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

CARDS = str(Path(__file__).with_name("card_stand_in"))

PRELUDE = f"""
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

def card(kind, count, given=(), **options):
    variables = {{"PYTHONPATH": {CARDS!r}, "MEETING": os.environ.get("MEETING", "")}}
    environment = profwin.ray.environment({{"env_vars": variables}}, **dict(given))
    return ray.remote(kind).options(num_cpus=0, num_gpus=count, runtime_env=environment, **options).remote()

def ids(actors):
    read = lambda _: ray.get_runtime_context().get_accelerator_ids()["GPU"]
    return ray.get([each.__ray_call__.remote(read) for each in actors])
"""


def opened(output, **values):
    """Return of each collection on devices its purpose, name and devices."""
    return [(each["purpose"], each["name"], each["devices"]) for each in Evidence(output).collections(**values)]


GROUP = """
connect(steps="1")
group = placement_group([{"GPU": 1}])
ray.get(group.ready())
there = {"scheduling_strategy": PlacementGroupSchedulingStrategy(group)}
first, hurried, patient = (
    card(Engine, part, {"wait_budget": budget}, **there) for part, budget in ((0.4, 60), (0.2, 0.2), (0.2, 60))
)
trainer = card(Trainer, 0.2, {"devices": "cuda:0"}, **there)
say(json.dumps(ids([first, hurried, patient, trainer])))

def judge(engine):
    with rollout_window(1, engine=profwin.ray.actors(engine), name="judge") as window:
        say(window.recorded, *(window.skipped or ())[:1])

judging = threading.Thread(target=judge, args=(patient,))
with rollout_window(1, engine=profwin.ray.actors(first)) as window:
    judge(hurried)
    judging.start()
    hear()
    assert window.recorded
judging.join()
ray.get(trainer.update.remote())
"""


def test_fractions_of_one_card_in_a_placement_group(cluster, output):
    """All in one bundle have one key: the second is turned away, or waits its turn; so does what trains there."""
    with Driver(PRELUDE + GROUP, cluster, output) as driver:
        [one] = {tuple(each) for each in json.loads(driver.hear())}
        assert driver.hear() == "False engine"
        driver.say()
        assert driver.end() == ["True"]
    key = [f"GPU-{one[0]}"]
    assert opened(output, devices=key) == [
        ("rollout", "rollout", key), ("rollout", "judge", key), ("training", "update", key),
    ]  # fmt: skip
    evidence = Evidence(output)
    assert sorted(each["reason"] for each in evidence.of("skip")) == ["busy", "engine"]
    assert_no_overlap(read_record(output))


GROUPS = """
connect(steps="1")

class Member(Engine):
    def start_profile(self):
        super().start_profile()
        open(os.environ["MEETING"] + str(os.getpid()), "w").close()
        while len(os.listdir(os.path.dirname(os.environ["MEETING"]))) < 3:  # until all have begun
            time.sleep(0.01)

members = [card(Member, count) for count in (2, 2, 1)]
say(json.dumps(ids(members)))
with rollout_window(1, engine=profwin.ray.actors(members)) as window:
    say(window.recorded)
    say(json.dumps(ray.get([each.said.remote() for each in members])))
"""


def test_tensor_parallel_groups(cluster, output, tmp_path):
    """An actor with two cards locks both; the actors of a group start side by side, each on its own."""
    (tmp_path / "meeting").mkdir()
    meeting = str(tmp_path / "meeting" / "m")
    with Driver(PRELUDE + GROUPS, cluster, output, MEETING=meeting) as driver:
        granted, recorded, said = driver.hear(), driver.hear(), driver.hear()
        driver.end()
    keys = sorted(sorted(f"GPU-{number}" for number in each) for each in json.loads(granted))
    assert [len(each) for each in keys] in ([1, 2, 2], [2, 1, 2], [2, 2, 1])
    assert len({key for each in keys for key in each}) == 5
    assert (recorded, json.loads(said)) == ("True", [["start"]] * 3)
    found = [each["devices"] for each in Evidence(output).collections(purpose="rollout") if each["devices"]]
    assert sorted(found) == keys


NAMED = """
connect(steps="1-2")
engine = card(Engine, 1, name="served")
ray.get(engine.said.remote())
say("there")
hear()
say(json.dumps(ray.get(engine.said.remote())))
hear()
"""

OTHER = """
connect(steps="1-2")
with rollout_window(2, engine=profwin.ray.actors(ray.get_actor("served"))) as window:
    say(window.recorded)
"""


def test_named_actor_of_another_driver(cluster, output):
    """Who gets an actor by its name opens a window in its process, whoever has started it."""
    with Driver(PRELUDE + NAMED, cluster, output) as owner:
        assert owner.hear() == "there"
        assert drive(PRELUDE + OTHER, cluster, output) == ["True"]
        owner.say()
        assert json.loads(owner.hear()) == ["start", "stop"]
        owner.say()
        owner.end()
    [(_, _, devices)] = [each for each in opened(output, purpose="rollout") if each[2]]
    assert devices[0].startswith("GPU-")


TWO = """
connect(steps="1-2")
engines = [place(Engine, "first", f"pretend:{name}") for name in "ab"]

@training_stage
def own(): ...

for step in (1, 2):
    with rollout_window(step, engine=profwin.ray.actors(engines[0])):
        own()
        with rollout_window(step, engine=profwin.ray.actors(engines[1]), name="reward"):
            say(json.dumps(ray.get([each.said.remote() for each in engines])))
loop = profwin.Loop(
    "separate", engine=profwin.ray.actors(engines[0]), hybrid_engine=profwin.ray.actors(engines[1])
)
loop.step_begins(1)
loop.devices_to_generation()
say(json.dumps(ray.get([each.said.remote() for each in engines])))
loop.devices_to_training()
say(json.dumps(ray.get([each.said.remote() for each in engines])))
loop.step_ends()
loop.loop_ends()
"""


def test_two_windows_of_one_driver(cluster, output):
    """Windows over different actors, and the driver's own stages, have nothing to do with each other."""
    once, again = ["start"], ["start", "stop", "start"]
    lent, taken = [*again, "stop", "start"], [*again, "stop", "start", "stop"]
    assert [json.loads(each) for each in drive(TWO, cluster, output)] == [
        [once, once], [again, again], [lent, lent], [lent, taken],
    ]  # fmt: skip
    evidence = Evidence(output)
    assert {each["reason"] for each in evidence.collections()} == {"end"}
    assert {each.get("unlocked", False) for each in evidence.collections(devices=[], purpose="rollout")} == {True}
    assert_no_overlap(read_record(output))


STAGES = """
class Worker:
    def __init__(self):
        self.calls = []

    def counted(self):
        "Have this process's calls of Ray's core noted from now on, by their names."
        worker = ray._private.worker.global_worker
        core, calls = worker.core_worker, self.calls

        class Core:
            def __getattr__(self, name):
                calls.append(name)
                return getattr(core, name)

        worker.core_worker = Core()
        ray.get(ray.put(1))
        seen, calls[:] = len(calls), []
        return core, seen

    def train(self, times):
        core, seen = self.counted()
        try:
            for _ in range(times):
                assert self.update(1) == 2
                assert list(self.batches(2)) == [0, 1]
        finally:
            ray._private.worker.global_worker.core_worker = core
        return seen, list(self.calls)

    @training_stage
    def update(self, value):
        with span("inside"):
            return value + 1

    @training_stage
    def batches(self, count):
        for number in range(count):  # Ray 2.60 sends values into a generator, which a range does not take
            yield number

    @training_stage
    @ray.method(num_returns=2)
    def pair(self):
        return 1, 2

    @ray.method(num_returns=2)
    @training_stage("turned")
    def turned(self):
        return 1, 2

class Looped(Worker):
    async def train(self, times):
        core, seen = self.counted()
        try:
            for _ in range(times):
                assert await self.update(1) == 2
                assert [each async for each in self.batches(2)] == [0, 1]
        finally:
            ray._private.worker.global_worker.core_worker = core
        return seen, list(self.calls)

    @training_stage
    async def update(self, value):
        await asyncio.sleep(0)
        return value + 1

    @training_stage
    async def batches(self, count):
        for number in range(count):
            yield number

connect(steps="1")
with training_step(1):
    threaded, looped = (
        ray.remote(kind).options(num_cpus=0, resources={"first": 0.001}, **options).remote()
        for kind, options in ((Worker, {"max_concurrency": 2}), (Looped, {}))
    )
    for actor in (threaded, looped):
        seen, calls = ray.get(actor.train.remote(2))
        assert seen > 0
        say(json.dumps(calls))
    assert [ray.get(each) for each in threaded.batches.options(num_returns="streaming").remote(2)] == [0, 1]
    assert [ray.get(each) for each in looped.batches.remote(2)] == [0, 1]
    assert ray.get(threaded.pair.remote()) == [1, 2]
    assert ray.get(list(threaded.turned.options(num_returns=2).remote())) == [1, 2]
    from ray.util import ActorPool
    group = [ray.remote(Worker).options(num_cpus=0, resources={"second": 0.001}).remote() for _ in range(2)]
    pool = ActorPool(group)
    assert sorted(pool.map_unordered(lambda actor, value: actor.update.remote(value), range(4))) == [1, 2, 3, 4]
    say(json.dumps([ray.get([each.__ray_call__.remote(lambda _: os.getpid()) for each in group])]))
"""


def test_stages_in_all_kinds_of_actors(cluster, output):
    """Each kind of method is a stage in each kind of actor, and in a pool; none makes a call to Ray on that account."""
    *calls, pids = (json.loads(line) for line in drive(STAGES, cluster, output))
    assert calls == [[], []]
    evidence = Evidence(output)
    stages = [each["name"] for each in evidence.of("enter", what="stage")]
    counts = {name: stages.count(name) for name in sorted(set(stages))}
    assert counts == {"batches": 6, "pair": 1, "turned": 1, "update": 8}
    assert evidence.skips() == []
    in_pool = [each["name"] for pid in pids[0] for each in evidence.of("enter", pid=pid, what="stage")]
    assert in_pool == ["update"] * 4
