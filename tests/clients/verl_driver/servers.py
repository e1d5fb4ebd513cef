"""Replicas whose servers are Ray actors, as verl's are, and verl's manager of them."""

from __future__ import annotations

from verl.workers.rollout.llm_server import LLMServerManager
from verl.workers.rollout.replica import RolloutReplica

from verl_driver.server import server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["manager"]


class Replica(RolloutReplica):
    """verl's replica, without what launches its servers: they are as it makes them."""

    def __init__(self, devices: list[str]) -> None:
        self.servers = [server(each) for each in devices]
        self._server_handle, self._server_address = self.servers[0], devices[0]

    async def launch_servers(self) -> None:
        """Do nothing: they are there."""


def manager(devices: list[list[str]]) -> Any:
    """Return verl's manager of replicas.

    Args:
        devices: for each replica, the lists of devices of its servers, one for each node.
    """
    found = LLMServerManager.__new__(LLMServerManager)
    found.rollout_replicas = [Replica(each) for each in devices]
    found.server_handles = [each._server_handle for each in found.rollout_replicas]
    found.server_addresses = [each._server_address for each in found.rollout_replicas]
    return found
