"""Decorated things that tests send to other processes, by reference."""

from __future__ import annotations

import collections
import json
import os
from typing import TYPE_CHECKING

import profwin
from profwin import training_stage

if TYPE_CHECKING:
    import pathlib


@training_stage
def update(x):
    """Add one."""
    return x + 1


class Trainer:
    """Every kind of method that an actor can have."""

    @training_stage
    def step(self, x):
        """Add two."""
        return x + 2

    @training_stage("loss")
    @staticmethod
    def loss(x):
        """Add three."""
        return x + 3

    @training_stage
    def batches(self, n):
        """Count."""
        for item in range(n):  # noqa: UP028  # Ray sends values in, which a range cannot take
            yield item


class AsyncTrainer:
    """The same for an actor that has an event loop."""

    @training_stage(name="astep")
    async def step(self, x, *, y=2):
        """Add."""
        return x + y

    @training_stage
    async def stream(self, n):
        """Count."""
        for item in range(n):
            yield item


def arm(directory: pathlib.Path) -> None:
    """Configure this process, and by the environment every process that it starts, to record step 2."""
    os.environ["PROFWIN_LOCK_DIR"] = str(directory / "locks")
    profwin.configure(steps="2", backend="record", output=str(directory / "out"))
    os.environ.update(profwin.environment())


def recorded(directory: pathlib.Path) -> collections.Counter[tuple[str, bool]]:
    """Count the stages in the journals under *directory* by name and by "in the process that calls this"."""
    found: collections.Counter[tuple[str, bool]] = collections.Counter()
    for path in (directory / "out").glob("*/journal/*.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        here = records[0]["pid"] == os.getpid()
        opened = {record["id"]: record for record in records if record["kind"] == "enter"}
        joined = [record for record in records if record["kind"] == "open"]
        ended = {record["id"] for record in records if record["kind"] == "exit" and record["status"] == "ok"}
        assert len(joined) >= 1 or not opened, records
        for number in ended & opened.keys():
            assert opened[number]["step"] == 2
            found[opened[number]["name"], here] += 1
    return found
