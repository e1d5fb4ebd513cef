"""Actors of a real Ray: an engine that notes what it is told, and verl's rollouter in front of it."""

from __future__ import annotations

import ray
from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncRollouter

from fully_async_driver.rollout import Replica

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Rollouter", "Server"]


@ray.remote(num_cpus=0)
class Server:
    """An engine."""

    def __init__(self) -> None:
        self._told: list[str] = []

    async def start_profile(self) -> None:
        """Note it."""
        self._told.append("start")

    async def stop_profile(self) -> None:
        """Note it."""
        self._told.append("stop")

    async def note(self, what: str) -> None:
        """Note something else."""
        self._told.append(what)

    async def told(self) -> list[str]:
        """Return all that was noted."""
        return self._told


class _Manager:
    """What verl's rollouter tells of its profiling, where that is not silent."""

    def __init__(self, server: Any) -> None:
        self._server = server

    async def start_profile(self) -> None:
        await self._server.note.remote("start by verl")

    async def stop_profile(self) -> None:
        await self._server.note.remote("stop by verl")


class _Rollouter(FullyAsyncRollouter.__ray_metadata__.modified_class):  # type: ignore[misc]  # verl has no types
    """verl's rollouter, without what generates."""

    def __init__(self, server: Any) -> None:
        self._server, self._replica = server, Replica([server], "server")
        self.llm_server_manager = _Manager(server)

    async def get_replicas(self) -> list[Replica]:
        return [self._replica]

    get_standalone_replicas = get_replicas

    async def get_all_hybrid_replicas(self) -> dict[str, Replica]:
        return {}

    async def get_total_produced_samples(self) -> int:
        return 0

    async def get_completed_steps(self) -> int:
        return 1

    async def reset_staleness(self) -> dict[str, float]:
        return {}

    async def do_validate(self) -> dict[str, float]:
        await self._server.note.remote("validation")
        return {}


Rollouter = ray.remote(num_cpus=0)(_Rollouter)
