"""Fully asynchronous training over Ray: whatever becomes of what is told and answered at a sync, no versions mix.

One pair of actors goes through all faults, each with versions of its own: 10 to 13 the first, 20 to 23 the second. Its
second start or stop is the one that goes wrong; of its steps the first three are selected.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("ray", reason="ray is not installed: actors cannot be tried")

from core_support import Evidence
from ray_support import Driver

from profwin.testing import assert_no_overlap, read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

FAULTS = (
    "nothing", "begin late", "begin answered late", "begin lost", "begin twice", "begin overtaken", "begin again",
    "end late", "end answered late", "end lost", "end twice", "end again",
)  # fmt: skip
"""What becomes of the second start (``begin``) or stop (``end``).

``late``, ``answered late``: the message, or the answer, takes a while. ``lost``: the answer never comes, though it was
done. ``twice``: the message arrives twice. ``overtaken``: it arrives when the stop has been answered. ``again``: it
arrives once more when the next start has been answered.
"""
_NOT_BEGUN = {"begin overtaken"}
_NOT_ANSWERED = {"begin lost", "begin overtaken"}

SCRIPT = """
from concurrent.futures import Future
from types import SimpleNamespace

class Unreliable:
    "An actor's handle, to which a fault is added."

    def __init__(self, handle, fault):
        self._handle, self._actor_id = handle, handle._actor_id
        self._work, _, self._fault = fault.partition(" ")
        self._count, self._kept = 0, None
        self.__ray_call__ = self

    def remote(self, work):
        send = lambda: self._handle.__ray_call__.remote(work).future()
        name, found = work.func.__name__, Future()
        self._count += name == self._work
        fault = self._fault if name == self._work and self._count == 2 else ""
        if fault == "late":
            threading.Timer(0.3, lambda: pass_on(send(), found)).start()
        elif fault == "answered late":
            send().add_done_callback(lambda sent: threading.Timer(0.3, pass_on, (sent, found)).start())
        elif fault == "lost":
            send().add_done_callback(lambda _: found.set_exception(TimeoutError("the answer is lost")))
        elif fault == "overtaken":
            self._kept = "end", send
            found.set_exception(TimeoutError("it is still under way"))
        else:
            kept = None
            if self._kept is not None and name == self._kept[0]:
                kept, self._kept = self._kept[1], None
            if fault == "again":
                self._kept = "begin", send
            sent = send()
            if fault == "twice":
                send()
            if kept is None:
                pass_on(sent, found)
            else:  # what was kept has its answer first, so that nothing else can hide what it does
                then = lambda: kept().add_done_callback(lambda _: pass_on(sent, found))
                sent.add_done_callback(lambda _: threading.Thread(target=then).start())
        return SimpleNamespace(future=lambda: found)

def pass_on(sent, found):
    def done(sent):
        error = sent.exception()
        found.set_result(sent.result()) if error is None else found.set_exception(error)

    sent.add_done_callback(done)

class Rollouter:
    "Generates without end. Its profiler starts and stops only while the trainer's event loop goes on."

    def __init__(self):
        self.version = self.recording = self.generating = None
        self.generated, self.ticks, self.paused = [], 0, True

    async def start_profile(self, metadata):
        assert self.recording is None, "it records already"
        await self.ticked()
        self.recording = metadata["weight_version"]

    async def stop_profile(self):
        await self.ticked()
        assert self.recording is not None, "it does not record"
        self.recording = None

    async def ticked(self):
        before = self.ticks
        while self.ticks < before + 2:
            await asyncio.sleep(0.002)

    async def tick(self):
        self.ticks += 1

    async def generate(self):
        while True:
            await asyncio.sleep(0.002)
            if not self.paused:
                self.generating = [self.version, time.monotonic_ns(), self.recording]
                await asyncio.sleep(0.004)
                self.generated.append([*self.generating, self.recording, time.monotonic_ns()])
                self.generating = None

    async def update(self, version):
        self.paused = True
        while self.generating:
            await asyncio.sleep(0.002)
        self.version, self.paused = version, False

    async def take(self, count):
        until = len(self.generated) + count
        while len(self.generated) < until:
            await asyncio.sleep(0.002)
        return self.generated[-count:]

    async def all(self):
        return self.generated

class FullyAsyncTrainer:
    def __init__(self, rollouter):
        self.rollouter = rollouter

    async def fit(self, first, fault):
        engine = profwin.ray.actors(Unreliable(self.rollouter, fault))
        ticking = asyncio.create_task(self.tick())
        try:
            for version in range(first, first + 4):
                async with profwin.weight_sync(version, engine):
                    await self.rollouter.update.remote(version)
                self.update(await self.rollouter.take.remote(3))
        finally:
            ticking.cancel()

    async def tick(self):
        while True:
            await self.rollouter.tick.remote()
            await asyncio.sleep(0.001)

    @training_stage
    def update(self, samples): ...

faults = json.loads(os.environ["FAULTS"])
connect(steps=[10 * number + step for number in range(1, len(faults) + 1) for step in (1, 2, 3)])
rollouter = place(Rollouter, "second", "pretend:rollout")
trainer = ray.remote(FullyAsyncTrainer).options(
    num_cpus=0, resources={"first": 0.001}, runtime_env=profwin.ray.environment(devices="pretend:trainer")
).remote(rollouter)
rollouter.generate.remote()
for number, fault in enumerate(faults, 1):
    ray.get(trainer.fit.remote(10 * number, fault))
pids = ray.get([each.__ray_call__.remote(lambda _: os.getpid()) for each in (rollouter, trainer)])
say(json.dumps([ray.get(rollouter.all.remote()), *pids]))
"""


@pytest.fixture(scope="module")
def found(cluster, tmp_path_factory):
    """Return what was generated, the processes of rollouter and trainer, and where the evidence is."""
    output, locks = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("locks")
    locks.chmod(0o1777)
    variables = {"FAULTS": json.dumps(FAULTS), "PROFWIN_LOCK_DIR": str(locks)}
    with Driver(SCRIPT, cluster, output, **variables) as driver:
        [said] = driver.end()
    return *json.loads(said), output


def steps(records, number):
    """Return the steps of those records that are of a fault, counted from its first version."""
    return [record["step"] % 10 for record in records if record["step"] // 10 == number]


def test_generations_are_recorded_for_their_own_version(found):
    """By the engine: whatever is recorded from its beginning to its end is so for the version that generates it."""
    generated, _rollouter, _trainer, _output = found
    assert {version for version, *_ in generated} == {10 * n + v for n in range(1, len(FAULTS) + 1) for v in range(4)}
    for version, _, before, after, _ in generated:
        assert {before, after} <= {None, version}
    recorded = {version for version, _, before, after, _ in generated if version in (before, after)}
    for number, fault in enumerate(FAULTS, 1):
        lost = {10 * number + 1} if fault in _NOT_ANSWERED else set()
        assert {10 * number + version for version in range(3)} - lost <= recorded, fault


def test_windows_hold_no_other_version(found):
    """By the journal of the engine's process: nothing of another version is generated between a window's two ends."""
    generated, rollouter, _trainer, output = found
    windows = Evidence(output).collections(pid=rollouter, purpose="rollout")
    for window in windows:
        assert window["version"] == window["step"] - 1
        inside = {version for version, begin, _, _, end in generated if window["t"] < end and begin < window["end"]}
        assert inside <= {window["version"]}, window
    for number, fault in enumerate(FAULTS, 1):
        assert steps(windows, number) == ([1, 3] if fault in _NOT_BEGUN else [1, 2, 3]), fault
    assert {window["reason"] for window in windows} == {"end"}


def test_training_goes_on_and_says_what_was_lost(found):
    """By the trainer's journal: each selected step is trained and recorded, and what was not answered is said."""
    _generated, _rollouter, trainer, output = found
    evidence = Evidence(output)
    training = evidence.collections(pid=trainer, purpose="training")
    entered = {each["id"]: each for each in evidence.of("enter", pid=trainer)}
    skips = [{**entered[each["id"]], "reason": each["reason"]} for each in evidence.of("skip", pid=trainer)]
    opened = {each["collection"]: each for each in evidence.of("open", pid=trainer, purpose="rollout")}
    failed = [opened[each["collection"]] for each in evidence.of("close", pid=trainer) if "error" in each]
    for number, fault in enumerate(FAULTS, 1):
        assert steps(training, number) == [1, 2, 3], fault
        assert steps(skips, number) == ([2] if fault in _NOT_ANSWERED else []), fault
        assert steps(failed, number) == ([2] if fault == "end lost" else []), fault
    assert {each["reason"] for each in skips} == {"engine"}
    assert {each["reason"] for each in evidence.collections(pid=trainer)} == {"end", "failure"}
    assert_no_overlap(read_record(output))
