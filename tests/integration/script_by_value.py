"""Run as a script: defines decorated things in ``__main__`` and sends them by value to a fresh interpreter.

Arguments: the directory to record in. The other interpreter knows nothing but the bytes and the environment.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

import cloudpickle
from travellers import arm

from profwin import training_stage, training_step

RECEIVE = """
import asyncio, pickle, sys
update, partial, bound, trainer, wait, items, stream = pickle.loads(sys.stdin.buffer.read())
assert update(1) == 2
assert partial() == 4
assert bound(1) == 3
assert trainer().fit(1) == 3
assert trainer.loss(1) == 4
assert asyncio.run(wait(1)) == 2
assert list(items(2)) == [0, 1]
async def collect():
    return [item async for item in stream(2)]
assert asyncio.run(collect()) == [0, 1]
"""


@training_stage
def update(x):
    """Add one."""
    return x + 1


class Trainer:
    """Has methods that are stages."""

    @training_stage
    def fit(self, x):
        """Add two."""
        return x + 2

    @classmethod
    @training_stage
    def loss(cls, x):
        """Add three."""
        return x + 3


class Model:
    """Has a method that becomes a stage from outside."""

    def apply(self, x):
        """Add two."""
        return x + 2


@training_stage
async def wait(x):
    """Add one."""
    return x + 1


@training_stage
def items(n):
    """Count."""
    yield from range(n)


@training_stage
async def stream(n):
    """Count."""
    for item in range(n):
        yield item


if __name__ == "__main__":
    import functools

    model = Model()
    model.apply = training_stage(model.apply)
    things = (update, functools.partial(update, 3), model.apply, Trainer, wait, items, stream)
    blob = cloudpickle.dumps(things)  # while profwin is off: a switch that travels by value would stay off
    arm(pathlib.Path(sys.argv[1]))
    with training_step(2):
        subprocess.run([sys.executable, "-c", RECEIVE], input=blob, check=True, timeout=60)
