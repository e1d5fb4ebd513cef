"""The actors: the demo's engine, trainer and rollouter, as Ray wants them.

The trainer is an actor as it stands, with its decorated methods.
"""

from __future__ import annotations

import asyncio

from profwin.demo.engine import Engine
from profwin.demo.rollouter import Generation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["EngineActor", "RollouterActor", "end"]

TURN = 0.005
"""Seconds between two looks for a batch."""


class EngineActor(Engine):
    """The demo's engine without concurrency: one call after the other, so nothing is decoded between two."""

    def generate(self, prompts: list[int], group: int, wanted: int) -> dict[str, Any]:
        """Queue answers and decode until so many groups are there, see :meth:`Engine.begin`; others stay half done."""
        self.begin(prompts, group, wanted)
        while (result := self.decode()) is None:
            pass
        return result


class RollouterActor:
    """An asyncio actor that generates without end: every call is served between two decoding steps.

    Its profiler is started and stopped in the event loop, too, so in the thread that decodes.

    Args:
        seed: of prompts and sampling.
        count: how many prompts a batch has.
    """

    def __init__(self, seed: int, count: int) -> None:
        self._generation = Generation(seed, count)
        self._engine = self._generation.engine
        self._free = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start_profile(self, directory: str, profile_prefix: str, metadata: dict[str, Any]) -> None:
        """Start recording, see :meth:`Engine.start_profile`."""
        self._engine.start_profile(directory, profile_prefix, metadata)

    async def stop_profile(self) -> str:
        """Stop recording; return the trace's path."""
        return self._engine.stop_profile()

    async def pause(self) -> None:
        """Decode nothing until :meth:`resume`: the weights are about to change."""
        self._free.clear()

    async def resume(self) -> None:
        """Go on decoding, or begin to."""
        self._free.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def load_weights(self, weights: bytes, version: int, seconds: float) -> dict[str, Any]:
        """Go on with new weights, see :meth:`Generation.take`."""
        return self._generation.take(version, weights, seconds)

    async def evaluate(self, prompts: list[int]) -> list[dict[str, Any]]:
        """Return the likeliest answer to each prompt."""
        return self._engine.evaluate(prompts)

    async def samples(self) -> list[dict[str, Any]]:
        """Wait for a batch and return it."""
        while not self._generation.finished:
            if self._task is not None and self._task.done():
                self._task.result()
            await asyncio.sleep(TURN)
        return self._generation.finished.popleft()

    async def _run(self) -> None:
        while True:
            await self._free.wait()
            pause = self._generation.pause()
            await asyncio.sleep(TURN if pause is None else pause)
            if pause is not None and self._free.is_set():
                self._generation.decode()


def end(actor: object) -> None:  # noqa: ARG001 - Ray's __ray_call__ passes it
    """End profwin in an actor's process, so that its journal says so: Ray kills actors, whose exit hooks never run."""
    import profwin

    profwin.shutdown()
