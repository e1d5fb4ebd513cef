"""verl's real worker group of one real worker, on models that only note that they work: on the card of a server."""

from __future__ import annotations

import os
from types import SimpleNamespace

import ray
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl_driver.workers import batch_data

from fully_async_driver.scenario import HYBRID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Group"]

CARD = "cuda:5"


class ModelFreeWorker(ActorRolloutRefWorker):
    """verl's worker, which sends its weights nowhere."""

    def __init__(self, role: str) -> None:
        from verl.single_controller.base import Worker as Base
        from verl.utils.profiler.profile import DistProfiler, DistProfilerExtension

        Base.__init__(self)
        os.environ["PROFWIN_DEVICES"] = CARD  # it has no context that would tell
        self.role, self.enable_routing_replay = role, False
        self.actor = self.ref = SimpleNamespace(
            infer_batch=self._work, train_mini_batch=self._work,
            engine=SimpleNamespace(get_per_tensor_param=lambda: (None, None)),
        )  # fmt: skip
        self.checkpoint_engine = SimpleNamespace(send_weights=self._send)
        DistProfilerExtension.__init__(self, DistProfiler(rank=self.rank))
        for mesh in ("actor", "ref"):
            self._register_dispatch_collect_info(mesh_name=mesh, dp_rank=0, is_collect=True)

    @staticmethod
    def _work(data: Any) -> Any:
        ray.get(ray.get_actor(HYBRID).note.remote("work"))
        return data

    @staticmethod
    async def _send(parameters: object, global_steps: int) -> dict[str, object]:
        return {}


class Group:
    """The worker group as a trainer and a rollouter call it; each stage gets a batch of its own."""

    def __init__(self) -> None:
        from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
        from verl.single_controller.ray.base import create_colocated_worker_cls

        pool = RayResourcePool([1], use_gpu=False, max_colocate_count=1)
        classes = {"actor_rollout": RayClassWithInitArgs(cls=ray.remote(ModelFreeWorker), role="actor_rollout")}
        group = RayWorkerGroup(resource_pool=pool, ray_cls_with_init=create_colocated_worker_cls(class_dict=classes))
        self._group = group.spawn(prefix_set=classes.keys())["actor_rollout"]

    def update_weights(self, global_steps: int, mode: str) -> Any:
        """Have the worker send its weights, as to servers elsewhere: the other way needs a model."""
        return self._group.update_weights(global_steps=global_steps, mode="nccl")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._group, name)
        return method if name in ("start_profile", "stop_profile") else lambda: method(batch_data())
