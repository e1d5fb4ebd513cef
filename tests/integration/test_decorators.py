"""`training_stage` and `rollout_window` as decorators, on real sessions: what is recorded, and when."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import threading
import time

import pytest

import profwin
from profwin import StateError, rollout_window, training_stage, training_step


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """Record step 2 on one pretend device; return a function that gives the records of the wanted kinds."""
    monkeypatch.setenv("PROFWIN_LOCK_DIR", str(tmp_path / "locks"))
    profwin.configure(steps="2", backend="record", output=str(tmp_path / "out"), devices="pretend:0")

    def read(*kinds):
        records = []
        for path in (tmp_path / "out").glob("*/journal/*.jsonl"):
            records += [json.loads(line) for line in path.read_text().splitlines()]
        return [record for record in records if record["kind"] in kinds]

    yield read
    profwin.shutdown()


def names(records):
    """Return what was entered, in order."""
    return [record["name"] for record in records]


def test_body_lies_between_the_records(journal):
    """For every kind, the stage is entered before the body's first line and left after the last."""
    seen = []

    def look():
        seen.append((len(journal("enter")), len(journal("exit"))))

    @training_stage
    def function():
        look()

    @training_stage
    async def coroutine():
        await asyncio.sleep(0)
        look()

    @training_stage
    def batches():
        yield 1
        look()

    @training_stage
    async def stream():
        yield 1
        look()

    async def collect():
        return [item async for item in stream()]

    with training_step(2):
        function()
        asyncio.run(coroutine())
        assert list(batches()) == [1]
        assert asyncio.run(collect()) == [1]
    assert seen == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert names(journal("enter")) == ["function", "coroutine", "batches", "stream"]
    assert [record["status"] for record in journal("exit")] == ["ok"] * 4


def test_nothing_is_recorded_before_a_coroutine_or_generator_starts(journal):
    """Making a coroutine or a generator records nothing; one that never starts leaves no trace of itself."""

    @training_stage
    async def coroutine(): ...

    @training_stage
    def batches():
        yield 1

    with training_step(2):
        coroutine().close()
        batches().close()
    assert journal("enter") == []


def test_signature_names_and_parameters(journal):
    """The signature is the function's own, the stage has its or the given name, no parameter is reserved."""

    @training_stage(name="upd")
    def update(a, b=2, *, c):
        return a, b, c

    @training_stage
    def g(self=1, instance=2, wrapped=3, args=4, kwargs=5, step=6, name=7, role=8, devices=9):
        return (self, instance, wrapped, args, kwargs, step, name, role, devices)

    assert str(inspect.signature(update)) == "(a, b=2, *, c)"
    with training_step(2):
        assert update(1, c=3) == (1, 2, 3)
        assert g(wrapped=9, args=8, instance=7, role="r") == (1, 7, 9, 8, 5, 6, 7, "r", 9)
        training_stage(functools.partial(update.__wrapped__, 1))(c=1)
    assert names(journal("enter")) == ["upd", "g", "update"]


def test_stage_inside_a_stage_opens_nothing_of_its_own(journal):
    """A stage inside another, decorated twice, or calling itself, is one collection and does not block."""

    @training_stage
    def inner(): ...

    @training_stage
    def outer():
        inner()

    @training_stage("fact")
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    with training_step(2):
        outer()
        training_stage(inner)()
        assert factorial(3) == 6
    assert names(journal("open")) == ["outer", "inner", "fact"]
    assert len(journal("close")) == 3
    assert names(journal("enter")) == ["outer", "inner", "inner", "inner", "fact", "fact", "fact"]


def test_decorated_window_takes_its_step_from_the_call(journal):
    """A rollout window as a decorator finds the step of each call, and records only the selected one."""

    @rollout_window(lambda prompts, *, step: step)
    def generate(prompts, *, step):
        return [prompts, step]

    assert [generate("p", step=step) for step in (1, 2, 3)] == [["p", 1], ["p", 2], ["p", 3]]
    assert [record["step"] for record in journal("open")] == [2]


def test_one_decorator_in_four_threads(journal):
    """A window object as a decorator has no state: four threads at once open and close their own."""
    barrier = threading.Barrier(4)

    @rollout_window(2)
    def generate():
        barrier.wait(30)
        time.sleep(0.02)

    threads = [threading.Thread(target=generate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(journal("enter")) == 4
    assert [record["status"] for record in journal("exit")] == ["ok"] * 4
    assert len(journal("open")) == len(journal("close")) >= 1


def test_window_object_is_entered_once(journal):
    """Entering one window object a second time is an error that says what to do."""
    window = rollout_window(2)
    with window, pytest.raises(StateError, match="rollout_window"):
        window.__enter__()
    assert len(journal("open")) == len(journal("close")) == 1
