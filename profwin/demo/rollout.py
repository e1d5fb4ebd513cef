"""The driver's handle on the engine process: what profwin is given as ``engine=``."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.demo.child import Child

__all__ = ["RolloutEngine"]


class RolloutEngine:
    """An engine in another process.

    ``start_profile``, ``stop_profile``, ``devices`` and ``process_ids`` are all that profwin needs of it.

    Args:
        start: makes the child process; called again for each restart.
        devices: names of the devices that the engine runs on.
    """

    def __init__(self, start: Callable[[], Child], devices: list[str]) -> None:
        self._start = start
        self._child = start()
        self._weights, self._version = b"", 0
        self.devices = devices

    @property
    def process_ids(self) -> list[int]:
        """The processes that record when this engine is asked to."""
        return [self._child.pid]

    def start_profile(self, directory: str, profile_prefix: str, metadata: dict[str, Any]) -> None:
        """Start the engine's profiler; returns when it records."""
        self._child.call(
            "start_profile",
            directory=os.path.abspath(directory),
            profile_prefix=profile_prefix,
            metadata=metadata,
        )

    def stop_profile(self) -> str:
        """Stop the engine's profiler; returns the trace's path when it is stopped and the trace written."""
        return str(self._child.call("stop_profile"))

    def generate(self, prompts: list[int], *, group: int, wanted: int) -> dict[str, Any]:
        """Return ``wanted`` finished groups; the engine goes on with the others."""
        return self.generated(self.begin(prompts, group=group, wanted=wanted))

    def begin(self, prompts: list[int], *, group: int, wanted: int) -> int:
        """Let the engine generate and do not wait; return what to ask :meth:`generated` for the result with."""
        return self._child.send("generate", prompts=prompts, group=group, wanted=wanted)

    def generated(self, generation: int) -> dict[str, Any]:
        """Wait for ``wanted`` finished groups."""
        result: dict[str, Any] = self._child.receive(generation)
        return result

    def evaluate(self, prompts: list[int]) -> list[dict[str, Any]]:
        """Return the likeliest answer to each prompt."""
        groups: list[dict[str, Any]] = self._child.call("evaluate", prompts=prompts)
        return groups

    def abort(self) -> dict[str, int]:
        """Stop decoding; unfinished answers are kept for the next step. Return how much that is."""
        carried: dict[str, int] = self._child.call("abort")
        return carried

    def sleep(self) -> None:
        """Give the device's memory back."""
        self._child.call("sleep")

    def load_weights(self, weights: bytes, version: int) -> None:
        """Hand new weights to the engine."""
        self._weights, self._version = weights, version
        self._child.call("load_weights", weights=weights, version=version)

    def kill(self) -> None:
        """End the engine with SIGKILL, as a host that is out of memory does."""
        self._child.kill()

    def restart(self) -> None:
        """Start a new engine with the newest weights; unfinished answers are lost."""
        self._child = self._start()
        self.load_weights(self._weights, self._version)

    def close(self) -> None:
        """End the engine. May be called twice."""
        self._child.close()
