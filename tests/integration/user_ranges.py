"""Ranges of a user's own that are open while torch's recording stops: one way a function, each for one step."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import torch
from torch.profiler import record_function

from profwin import paused, rollout_window, training_stage, training_step, weight_sync
from profwin.hooks import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

PATIENCE = 100.0


def work(name: str, function: Callable[[Tensor], Tensor]) -> None:
    """Compute something inside a range that ends at once."""
    with record_function(name):
        x = torch.ones(3)
        for _ in range(20):
            function(x)


def in_another_stage() -> Callable[[], None]:
    """Work in a stage of another thread; return what ends it, until which it lasts."""
    done, over = threading.Event(), threading.Event()

    def body() -> None:
        with training_stage("other"):
            work("later", torch.tan)
            done.set()
            assert over.wait(PATIENCE)

    thread = threading.Thread(target=body)
    thread.start()
    assert done.wait(PATIENCE)

    def leave() -> None:
        over.set()
        thread.join()

    return leave


def pause(step: int) -> None:
    """Validate in the middle of a range."""
    with training_step(step), training_stage("part"), record_function("user"):
        work("earlier", torch.sin)
        with paused():
            work("unrecorded", torch.cos)
        work("later", torch.tan)


def split(step: int) -> None:
    """Open a window of other devices in the middle of a range."""
    with rollout_window(step, devices="pretend:one"), record_function("user"):
        work("earlier", torch.sin)
        with rollout_window(step, name="other", devices="pretend:two"):
            work("elsewhere", torch.cos)
        work("later", torch.tan)


def handover(step: int) -> None:
    """Begin a stage in another thread while the window's own thread is in a range."""
    with rollout_window(step):
        with record_function("user"):
            work("earlier", torch.sin)
            leave = in_another_stage()
        leave()


def cut(step: int) -> None:
    """Let the limit of a stage pass in the middle of a range."""
    with training_step(step), training_stage("part", max_seconds=0.0001):
        with record_function("user"):
            work("earlier", torch.sin)
            time.sleep(0.001)
            leave = in_another_stage()
        leave()


def hooks(step: int) -> None:
    """Leave a range that began in a window, in which the step's first stage then began."""
    with Loop("sync") as loop:
        loop.step_begins(step)
        with record_function("user"):
            work("earlier", torch.sin)
            loop.samples_in_hand()
            with training_stage("first"):
                work("later", torch.tan)
        with training_stage("second"):
            work("later", torch.tan)
        loop.step_ends()


def sync(step: int) -> None:
    """Sync the weights in the middle of a range."""
    if step == 1:
        with weight_sync(0):
            pass
    with record_function("user"):
        work("earlier", torch.sin)
        with weight_sync(step):
            work("unrecorded", torch.cos)
        work("later", torch.tan)


def nested(step: int) -> None:
    """End the window while three threads are in ranges inside of ranges, which they leave in a stage."""
    inside, over = threading.Barrier(4), threading.Event()

    def body() -> None:
        with record_function("user"), record_function("inner"):
            work("earlier", torch.sin)
            inside.wait(PATIENCE)
            assert over.wait(PATIENCE)

    threads = [threading.Thread(target=body) for _ in range(3)]
    with rollout_window(step):
        for thread in threads:
            thread.start()
        inside.wait(PATIENCE)
    with training_stage("after"):
        work("later", torch.tan)
        over.set()
        for thread in threads:
            thread.join()
        work("later", torch.tan)


def tasks(step: int) -> None:
    """Let two tasks end their ranges in another order than they began, one of them in the next recording."""

    async def one(go: asyncio.Event, then: asyncio.Event) -> None:
        with record_function("user"):
            work("earlier", torch.sin)
            go.set()
            await then.wait()

    async def both() -> None:
        first, second, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        async with rollout_window(step):
            early = asyncio.create_task(one(first, second))
            await first.wait()
            late = asyncio.create_task(one(second, over))
            await early
        with training_stage("after"):
            work("later", torch.tan)
            over.set()
            await late

    asyncio.run(both())
