"""The public names as a type checker sees them; checked, never run. What it must refuse is in misuse.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

from typing_extensions import assert_type

import profwin
from profwin import (
    Loop,
    every,
    names,
    paused,
    ranks,
    rollout_window,
    span,
    steps,
    training_stage,
    training_step,
    weight_sync,
)
from profwin.selection import Names, Selection
from profwin.sync import WeightSync
from profwin.window import Window


@training_stage
def bare(a: int, *, b: str = "") -> float:
    """Be decorated bare."""
    return a + len(b)


@training_stage("called", role="actor", devices=["0"])
def called(a: int) -> list[int]:
    """Be decorated by a call."""
    return [a]


@training_stage()
async def waits(a: int) -> str:
    """Be a coroutine function."""
    return str(a)


@training_stage
def yields(n: int) -> Iterator[int]:
    """Be a generator function."""
    yield n


@training_stage
async def streams(n: int) -> AsyncIterator[int]:
    """Be an async generator function."""
    yield n


@rollout_window(lambda prompts, step: step)
def generate(prompts: list[str], step: int) -> dict[str, int]:
    """Be a decorated rollout."""
    return dict.fromkeys(prompts, step)


@weight_sync(lambda weights, version: version)
async def load(weights: bytes, version: int) -> int:
    """Be a decorated weight sync."""
    return version + len(weights)


class Worker:
    """Has decorated methods of each kind."""

    @training_stage
    def method(self, a: int) -> str:
        """Be a method."""
        return str(a)

    @training_stage(name="v")
    async def waits(self, a: int) -> bytes:
        """Be a coroutine method."""
        return bytes(a)

    @training_stage
    @classmethod
    def class_inside(cls, a: int) -> float:
        """Be a class method."""
        return float(a)

    @classmethod
    @training_stage
    def class_outside(cls, a: int) -> complex:
        """Be a class method."""
        return complex(a)

    @training_stage("s")
    @staticmethod
    def static_inside(a: int) -> list[int]:
        """Be a static method."""
        return [a]

    @staticmethod
    @training_stage("s")
    def static_outside(a: int) -> set[int]:
        """Be a static method."""
        return {a}

    @property
    @training_stage
    def value(self) -> int:
        """Be a property."""
        return 1


def check_functions() -> None:
    """Decorated functions keep their parameters and results."""
    assert_type(bare(1, b="x"), float)
    assert_type(called(1), list[int])
    made = assert_type(waits(1), Coroutine[Any, Any, str])
    assert_type(yields(1), Iterator[int])
    assert_type(streams(1), AsyncIterator[int])
    assert_type(generate(["a"], step=1), dict[str, int])
    assert_type(training_stage(bare)(1), float)
    assert_type(load(b"", 1), Coroutine[Any, Any, int]).close()
    shape: Callable[[int], Coroutine[Any, Any, str]] = waits
    made = shape(1)
    made.close()


def check_methods(worker: Worker) -> None:
    """Decorated methods bind as undecorated."""
    assert_type(worker.method(1), str)
    assert_type(worker.waits(1), Coroutine[Any, Any, bytes]).close()
    assert_type(Worker.class_inside(1), float)
    assert_type(Worker.class_outside(1), complex)
    assert_type(worker.static_inside(1), list[int])
    assert_type(Worker.static_outside(1), set[int])
    assert_type(worker.value, int)


def check_blocks() -> int:
    """No block swallows exceptions, so what follows a return inside one needs no return of its own."""
    window = rollout_window(1, engine=object(), devices="pretend:0", name="reward")
    assert_type(window, Window)
    window.open()
    window.close()
    assert_type(window.recorded, bool)
    with rollout_window(1), training_step(1), training_stage("x"), span("y"), paused():
        return 1


async def check_async_blocks() -> int:
    """The async forms neither."""
    async with rollout_window(2) as window, training_stage("x", role="critic"):
        assert_type(window, Window)
        return 1


def check_settings() -> None:
    """Selections and settings take what the documentation says they take."""
    chosen = steps(2, 4) | every(100, start=10) & ~steps("7")
    assert_type(chosen, Selection)
    assert_type(3 in chosen, bool)
    assert_type(names("actor_*"), Names)
    profwin.configure("2,4-6", "torch", "out")
    profwin.configure(steps=chosen, backend=["record"], ranks=ranks(0), stages=names("a*"), wait_budget=1)
    profwin.configure(steps=[1, 2], devices="pretend:0", strict=True, torch_options={"with_stack": True})
    profwin.configure(lambda step: step % 2 == 0)
    assert_type(profwin.environment(), dict[str, str])
    profwin.shutdown()


def check_weight_sync() -> int:
    """A weight sync is a block that swallows nothing."""
    with weight_sync(0, object(), devices="pretend:0", name="rollout") as sync, weight_sync(1, window=False):
        assert_type(sync, WeightSync)
        return 1


async def check_async_weight_sync() -> int:
    """So is its async form."""
    async with weight_sync(0, devices=["pretend:0"]) as sync:
        assert_type(sync, WeightSync)
        return 1


def check_loop() -> None:
    """A loop is a block, and its events take what they are told."""
    with Loop("sync", engine=object()) as loop:
        assert_type(loop, Loop)
        loop.step_begins(1)
        loop.samples_in_hand()
        loop.step_ends()
    with Loop("fully_async", devices=["0"], hybrid_engine=object(), hybrid_devices=["1"], name="sample") as loop:
        loop.weights_about_to_sync(1)
        loop.devices_to_generation()
        loop.weights_synced(1)


async def check_async_loop() -> None:
    """A loop is an async block too, and any event can be told."""
    async with Loop("separate", perform=print) as loop:
        assert_type(loop, Loop)
        await loop.tell("step_begins", 1, weight_version=0)
        await loop.tell("devices_to_training")
