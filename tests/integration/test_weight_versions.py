"""Case 10: a rollout that counts its own way beside trainers; the weight version pairs them, where it is said."""

from __future__ import annotations

import json
import threading
import time

import pytest
from asyncio_support import configure
from core_support import Child, Evidence

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.testing import RecordingEngine

ROLLOUTS = range(400, 413)


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


class Weights:
    """The version that generates now, and which windows it generated in."""

    def __init__(self):
        self.version = 3
        self.of = {}
        self.in_use = threading.Event()


def generate(weights, *, said, engine, trained):
    """Generate in windows of their own count, until the last; wait for the new weights in the middle."""
    for number in ROLLOUTS:
        if number == 407:
            assert trained.wait(100)
        weights.of[number] = weights.version
        version = weights.version if said else None
        with rollout_window(number, devices="pretend:card", weight_version=version, engine=engine):
            weights.in_use.set()
            time.sleep(0.002)


@training_stage
def update():
    """Train."""
    time.sleep(0.005)


TRAINER = """
@training_stage
def update():
    time.sleep(0.005)

while (line := hear()) != "end":
    step, *more = json.loads(line)
    with training_step(step, **(more[0] if more else {})):
        for _ in range(3):
            update()
    say("trained")
profwin.shutdown()
"""


def train_here(weights, words):
    """Train steps 3 and 4 in this thread, with the versions in between."""
    for step in (3, 4):
        with training_step(step, **words(step)):
            for _ in range(3):
                update()
        weights.version = step
        yield


def train_elsewhere(weights, words):
    """Train steps 3 and 4 in another process of the run."""
    with Child(TRAINER, **profwin.environment()) as child:
        for step in (3, 4):
            child.say(json.dumps([step, words(step)]))
            assert child.hear() == "trained"
            weights.version = step
            yield
        child.say("end")
        status, _, errors = child.finish()
        assert status == 0, errors


def loop(output, train, words, *, said, engine):
    """Run a rollout thread beside a trainer; return the steps of the manifest and the weights."""
    configure(output, steps="3-4,400-412", wait_budget=20)
    weights, trained = Weights(), threading.Event()
    thread = threading.Thread(
        target=generate, args=(weights,), kwargs={"said": said, "engine": engine, "trained": trained}
    )
    thread.start()
    try:
        assert weights.in_use.wait(100)
        for _ in train(weights, words):
            trained.set()
    finally:
        trained.set()
        thread.join(30)
    assert not thread.is_alive()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [record["name"] for record in evidence.of("enter")].count("update") == 6
    assert len(evidence.of("enter", what="window")) == len(ROLLOUTS)
    return json.loads((output / "mine" / "manifest.json").read_text())["steps"], weights


TRAINERS = pytest.mark.parametrize("train", [train_here, train_elsewhere])
ENGINES = pytest.mark.parametrize("by", ["process", "engine"])


def engine_of(by):
    """Return what records the windows."""
    return RecordingEngine("pretend:card", revocable=True) if by == "engine" else None


@TRAINERS
@ENGINES
def test_paired_by_version(output, train, by):
    """Nothing overlaps, nothing hangs, and windows and training steps are paired by the versions that they name."""

    def words(step):
        return {"weight_version": step, "generated_with": [step - 1, step]}

    steps, weights = loop(output, train, words, said=True, engine=engine_of(by))
    for step in (3, 4):
        found = steps[str(step)]
        assert found["trained_at"] == [step]
        assert found["generated_with"] == [step - 1, step]
        assert found["staleness"] == 1
    generated = {
        int(step): collection["version"]
        for step, found in steps.items()
        for collection in found["collections"]
        if collection["purpose"] == "rollout"
    }
    assert generated
    assert all(weights.of[step] == version for step, version in generated.items())
    assert set(weights.of.values()) >= {3}


@TRAINERS
@ENGINES
def test_unpaired_without_a_version(output, train, by):
    """Where nobody says a version there is no pair: nothing is guessed from steps that happen to run side by side."""
    steps, _ = loop(output, train, lambda step: {}, said=False, engine=engine_of(by))
    for step, found in steps.items():
        assert found["staleness"] is None, step
        assert not found["generated_with"], step
        assert not found["trained_at"], step
        assert all("version" not in collection for collection in found["collections"])


@TRAINERS
def test_half_a_pair(output, train):
    """A trainer that says its version beside windows that say none is not paired, and the other way round neither."""
    steps, _ = loop(output, train, lambda step: {"weight_version": step}, said=False, engine=None)
    assert [steps[step]["trained_at"] for step in ("3", "4")] == [[3], [4]]
    assert [steps[step]["staleness"] for step in ("3", "4")] == [None, None]


@TRAINERS
def test_the_other_half(output, train):
    """Windows that say their version beside a trainer that says none leave the training step unpaired."""
    steps, weights = loop(output, train, lambda step: {}, said=True, engine=None)
    for step in ("3", "4"):
        assert steps[step]["staleness"] is None
        assert not steps[step]["trained_at"], "a version was guessed"
        assert not steps[step]["generated_with"]
    assert weights.version == 4
