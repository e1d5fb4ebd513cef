"""The rollout side: verl's real rollouter, server manager, replicas and checkpoint managers, on servers that log."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from unittest.mock import MagicMock

from verl.checkpoint_engine import CheckpointEngineManager
from verl.experimental.fully_async_policy import fully_async_rollouter
from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncLLMServerManager
from verl.workers.rollout.replica import RolloutReplica

from fully_async_driver.remote import Handle, shipped
from fully_async_driver.scenario import EngineFaultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from verl_driver.devicelog import DeviceLog

    from fully_async_driver.remote import Actors
    from fully_async_driver.scenario import Scenario

__all__ = ["STANDALONE", "Manager", "Replica", "Server", "replica", "rollouter"]

STANDALONE = "standalone"


class Server:
    """An engine: its profiler starts and stops, and fails, hangs or is slow the first time if it is to."""

    def __init__(self, log: DeviceLog, device: str, *, start: str = "", stop: str = "") -> None:
        self._log, self._device = log, device
        self._faults = {"start": start, "stop": stop}
        self.released, self.answered = threading.Event(), threading.Event()
        if "slow" not in (start, stop):
            self.answered.set()

    async def start_profile(self, **kwargs: object) -> None:
        """Begin to record; with no more arguments than vLLM takes."""
        if kwargs:
            raise TypeError(f"AsyncLLM.start_profile() got an unexpected keyword argument {next(iter(kwargs))!r}")
        await self._done("start")

    async def stop_profile(self) -> None:
        """Record no more."""
        await self._done("stop")

    async def _done(self, what: str) -> None:
        fault, self._faults[what] = self._faults[what], ""
        if fault == "fail":
            raise EngineFaultError(f"the engine's {what} fails")
        if fault == "hang":
            await asyncio.Event().wait()
        while fault == "slow" and not self.released.is_set():
            await asyncio.sleep(0.005)
        self._log.note(what, "rollout", self._device, self._device)
        if fault:
            self.answered.set()

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class Replica(RolloutReplica):
    """verl's replica, without what launches its servers."""

    def __init__(self, servers: list[Any], device: str) -> None:
        self.servers = servers
        self._server_address, self._server_handle, self.workers = device, self.servers[0], []

    async def launch_servers(self) -> None:
        """Do nothing: they are there."""


def replica(actors: Actors, server: Server, device: str) -> Replica:
    """Return a replica of one server."""
    return Replica([Handle(actors, server)], device)


class Manager(CheckpointEngineManager):
    """verl's manager of replicas, whose weight sync has only the worker's part."""

    def __init__(self, log: DeviceLog, replicas: list[Replica], worker: Any, device: str) -> None:
        self.replicas, self._log, self._worker, self._device = replicas, log, worker, device

    async def update_weights(self, global_steps: int | None = None) -> dict[str, object]:
        """Let the worker send its weights, and log that they are there."""
        await self._worker.update_weights(global_steps=global_steps, mode="nccl")
        self._log.note("sync", "weights", self._device, str(global_steps))
        return {}


def rollouter(scenario: Scenario, log: DeviceLog, standalone: list[Replica], hybrid: list[Replica]) -> Any:
    """Return a rollouter, made without its ``__init__``."""
    manager = FullyAsyncLLMServerManager.__new__(FullyAsyncLLMServerManager)
    manager.rollout_replicas = list(standalone)
    manager.server_addresses = [each._server_address for each in standalone]
    manager.server_handles = [each._server_handle for each in standalone]
    manager.hybrid_replicas = {f"hybrid_{number}": each for number, each in enumerate(hybrid)}
    manager.alive_replicas, manager.alive_addresses = {}, {}
    manager.global_load_balancer = SimpleNamespace(add_servers=_Done(), remove_servers=_Done())
    cls = shipped(fully_async_rollouter.FullyAsyncRollouter)

    class Rollouter(cls):  # type: ignore[misc, valid-type]  # known only when it runs
        """verl's rollouter; it generates when it is asked how much there is."""

        async def reset_staleness(self) -> dict[str, float]:
            return {}

        async def wait_for_enough_samples(self, count: int) -> int:
            self.generate()
            return count

        def generate(self, detail: str = "") -> None:
            for each in manager.rollout_replicas:
                log.note("generate", "rollout", each._server_address, detail)

        def _validate(self) -> dict[str, float]:
            self.generate("validation")
            return {"val": 1.0}

        def _update_max_concurrent_samples(self) -> None:
            pass

    found = Rollouter.__new__(Rollouter)
    found.llm_server_manager = manager
    found.total_generated_samples, found._completed_steps = 0, 1
    found.config = MagicMock()
    return found


class _Done:
    async def remote(self, **kwargs: object) -> None:
        pass
