"""A server in a process of its own, as verl's are: an asynchronous actor that sets its list of cards itself.

It imports nothing of verl, which takes five seconds of a core.
"""

from __future__ import annotations

import os

import ray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Server", "server"]


class Server:
    """What stands for verl's ``vLLMHttpServer``: its profiler takes no more arguments than that of vLLM."""

    def __init__(self, cuda_visible_devices: str) -> None:
        os.environ["CUDA_VISIBLE_DEVICES"] = cuda_visible_devices
        self._told: list[str] = []

    async def start_profile(self, **kwargs: object) -> None:
        """Note it."""
        if kwargs:
            raise TypeError(f"AsyncLLM.start_profile() got an unexpected keyword argument {next(iter(kwargs))!r}")
        self._told.append("start")

    async def stop_profile(self) -> None:
        """Note it."""
        self._told.append("stop")

    async def sleep(self) -> None:
        """Note that training has the card."""
        self._told.append("sleep")

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        """Do nothing: nothing is generated."""

    async def resume_generation(self) -> None:
        """Do nothing."""

    async def note(self, what: str) -> None:
        """Note something else."""
        self._told.append(what)

    async def told(self) -> list[str]:
        """Return all that was noted since this was asked for the last time."""
        told, self._told = self._told, []
        return told


def server(cards: str, name: str | None = None) -> Any:
    """Start a server, without GPUs of Ray's, as verl does."""
    noset = {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}
    options = {"num_cpus": 0, "runtime_env": {"env_vars": noset}, "max_concurrency": 1000}
    return ray.remote(Server).options(name=name, **options).remote(cuda_visible_devices=cards)
