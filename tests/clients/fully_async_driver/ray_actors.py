"""verl's trainer and rollouter as actors of a real Ray, on servers that are actors, too, and a worker on one's card."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import ray
from verl.experimental.fully_async_policy.dynamic_schedule import StaticFullyAsyncPolicy, register_policy
from verl.experimental.fully_async_policy.fully_async_rollouter import FullyAsyncLLMServerManager, FullyAsyncRollouter
from verl.experimental.fully_async_policy.fully_async_trainer import FullyAsyncTrainer
from verl.workers.rollout.replica import RolloutReplica

from fully_async_driver.scenario import HYBRID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["POLICY", "Replica", "Rollouter", "Trainer"]

POLICY = "lend"


@register_policy(POLICY)
class _Policy(StaticFullyAsyncPolicy):
    """Lend the devices at each sync, and take them back before training."""

    def should_activate_after_step(self, global_steps: int, is_hybrid_active: bool, ctx: Any) -> bool:
        return True


class Replica(RolloutReplica):
    """verl's replica, without what launches its servers: they are there."""

    def __init__(self, name: str, servers: list[Any]) -> None:
        self.servers, self.workers = servers, []
        self._server_handle, self._server_address = servers[0], name

    async def launch_servers(self) -> None:
        """Do nothing."""


class _Done:
    async def remote(self, **kwargs: object) -> None:
        pass


class _Manager(FullyAsyncLLMServerManager):
    """verl's manager of replicas, which notes that it is told of profiling."""

    def __init__(self, standalone: list[Replica], hybrid: Replica) -> None:
        self.rollout_replicas = standalone
        self.server_addresses = [each._server_address for each in standalone]
        self.server_handles = [each._server_handle for each in standalone]
        self.hybrid_replicas, self.alive_replicas, self.alive_addresses = {"hybrid_0": hybrid}, {}, {}
        self.global_load_balancer = SimpleNamespace(add_servers=_Done(), remove_servers=_Done())

    async def start_profile(self, **kwargs: object) -> None:
        await ray.get_actor(HYBRID).note.remote("start by verl")
        await super().start_profile(**kwargs)

    async def stop_profile(self) -> None:
        await ray.get_actor(HYBRID).note.remote("stop by verl")
        await super().stop_profile()


class _Rollouter(FullyAsyncRollouter.__ray_metadata__.modified_class):  # type: ignore[misc]  # verl has no types
    """verl's rollouter, without what generates.

    While the devices are lent, and it is asked whether there is enough to take them back, something else trains on the
    card that is lent: in the versions that it is told.
    """

    def __init__(self, standalone: list[Replica], hybrid: Replica, disturbed: tuple[int, ...]) -> None:
        self.llm_server_manager = _Manager(standalone, hybrid)
        self._disturbed, self._version = disturbed, 0

    async def get_total_produced_samples(self) -> int:
        return 0

    async def get_completed_steps(self) -> int:
        return 1

    async def reset_staleness(self) -> dict[str, float]:
        return {}

    async def begin(self, version: int) -> None:
        """Take note of the version that is generated."""
        self._version = version

    async def wait_for_enough_samples(self, count: int) -> int:
        if self._version in self._disturbed:
            await ray.get_actor(HYBRID).note.remote("disturb")
            self.get_hybrid_worker_group().compute_log_prob()
        return count

    async def do_validate(self) -> dict[str, float]:
        await ray.get_actor(HYBRID).note.remote("validation")
        return {}

    def _update_max_concurrent_samples(self) -> None:
        pass


class _Trainer(FullyAsyncTrainer.__ray_metadata__.modified_class):  # type: ignore[misc]  # likewise
    """verl's trainer; its samples are there when it asks for them, and its stages call the worker group alone."""

    async def prepare(self, rollouter: Any, first: int, last: int, changes: dict[int, Any]) -> None:
        """Get what ``fully_async_main`` gives it.

        Args:
            rollouter: the handle.
            first: the version that it begins with, as one that is resumed.
            last: the version with which it ends.
            changes: by step, the replica that is added while its window is open, or the name of the one that goes.
        """
        if getattr(self, "actor_wg", None) is None:
            from fully_async_driver.ray_worker import Group

            self.actor_wg = self.actor_rollout_wg = Group()
            await rollouter.set_hybrid_worker_group.remote(self.actor_wg)
        self.current_param_version, self._last, self._changes = first, last, changes
        self.message_queue_client, self.metrics_aggregator = object(), MagicMock()
        await self.set_rollouter(rollouter)
        self.set_total_train_steps(last - first)

    async def train_without_actors(self, rollouter: Any, version: int) -> None:
        """Train up to a version more, with the plan but for what it says of actors."""
        from profwin.patch.installation import install, uninstall
        from profwin.patch.reading import read_plan

        uninstall()
        plan = read_plan("verl-fully-async")
        loops = tuple(replace(loop, actors=None, hybrid_actors=None) for loop in plan.loops)
        install(replace(plan, loops=loops), strict=True)
        await self.prepare(rollouter, version - 1, version, {})
        await self._fit_update_weights()
        await self._fit_validate(True)
        await self.fit()

    async def _get_samples_from_queue(self) -> tuple[int | None, Any]:
        if self.current_param_version >= self._last:
            return None, None
        change, manager = self._changes.get(self.current_param_version + 1), self.checkpoint_manager
        if isinstance(change, str):
            manager.remove_replicas([each for each in manager.replicas if each.server_address == change])
        elif change is not None:
            manager.add_replicas([change])
        return 0, SimpleNamespace(meta_info={"trajectory_param_versions": []})

    async def fit_step(self, batch_dict: Any = None) -> None:
        await self.rollouter.begin.remote(self.current_param_version + 1)
        await super().fit_step(batch_dict)

    def _fit_compute_log_prob(self, batch: Any) -> Any:
        self.actor_rollout_wg.compute_log_prob()
        return batch

    def _fit_update_actor(self, batch: Any) -> Any:
        self.actor_rollout_wg.update_actor()
        return batch

    def _fit_compute_reward(self, batch: Any) -> Any:
        return batch

    _fit_compute_ref_log_prob = _fit_compute_critic = _fit_compute_advantage = _fit_compute_reward
    _fit_update_critic = _fit_dump_data = _fit_collect_metrics = _fit_compute_reward

    def _fit_postprocess_step(self) -> None:
        pass


Rollouter: Any = ray.remote(num_cpus=0)(_Rollouter)
Trainer: Any = ray.remote(num_cpus=0)(_Trainer)
