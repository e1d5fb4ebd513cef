"""verl's controller and a worker in Ray actors, as ``verl.trainer.main_ppo`` has them.

The controller is a Ray actor that gets verl's configuration, makes the real sync trainer, and a worker group of verl's
real `RayWorkerGroup` with colocated classes; the worker is a real `ActorRolloutRefWorker` down to its models. Nothing
here knows profwin: it is run by ``profwin run --plan verl``. Arguments of
``python -m verl_driver.ray_run`` are overrides of the configuration; with ``servers`` first the engines are Ray actors,
too, and what they were told is printed.
"""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

import ray
from verl.workers.engine_workers import ActorRolloutRefWorker

from verl_driver.devicelog import DeviceLog
from verl_driver.scenario import Scenario
from verl_driver.trainer import ServerManager, make, run
from verl_driver.workers import batch_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class ModelFreeWorker(ActorRolloutRefWorker):
    """verl's worker, on models that only give back what they get."""

    def __init__(self, role: str) -> None:
        from verl.single_controller.base import Worker as Base
        from verl.utils.profiler.profile import DistProfiler, DistProfilerExtension

        Base.__init__(self)
        if "VERL_DRIVER_DEVICES" in os.environ:  # it has no context that would tell
            os.environ["PROFWIN_DEVICES"] = os.environ["VERL_DRIVER_DEVICES"]
        self.role, self.enable_routing_replay = role, False
        model = SimpleNamespace(infer_batch=lambda data: data, train_mini_batch=lambda data: data)
        self.actor = self.ref = model
        DistProfilerExtension.__init__(self, DistProfiler(rank=self.rank))
        for mesh in ("actor", "ref"):
            self._register_dispatch_collect_info(mesh_name=mesh, dp_rank=0, is_collect=True)


def worker_group() -> Any:
    """Return verl's worker group, of one process."""
    from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
    from verl.single_controller.ray.base import create_colocated_worker_cls

    pool = RayResourcePool([1], use_gpu=False, max_colocate_count=1)
    classes = {"actor_rollout_ref": RayClassWithInitArgs(cls=ray.remote(ModelFreeWorker), role="actor_rollout_ref")}
    group = RayWorkerGroup(resource_pool=pool, ray_cls_with_init=create_colocated_worker_cls(class_dict=classes))
    return group.spawn(prefix_set=classes.keys())["actor_rollout_ref"]


class _Stages:
    """The worker group, as the driver's trainer calls it: with a batch of its own."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._group, name)
        return method if name in ("start_profile", "stop_profile") else lambda batch: method(batch_data())


class TaskRunner:
    """The controller; verl ships its own by value, too."""

    def run(self, overrides: Sequence[str], *, served: bool) -> list[str]:
        """Train three steps; return what happened on the engines' side."""
        from verl.trainer.ppo.v1 import trainer_base
        from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

        from verl_driver.settings import configuration

        config = configuration(list(overrides))
        with (
            patch.object(trainer_base, "build_checkpoint_callback", MagicMock()),
            patch.object(trainer_base, "RolloutMoELoadBalanceMetricsAccumulator", MagicMock()),
        ):
            PPOTrainerSync(config)  # before the workers are made, as verl does
        log = DeviceLog()
        trainer = make(Scenario("sync"), log)
        trainer.llm_server_manager = ServerManager(log, f"hybrid-{os.getpid()}")
        if served:
            from verl_driver.servers import manager

            trainer.llm_server_manager = manager([["2"], ["3", "4,5"]])
        trainer.actor_rollout_wg = trainer.ref_policy_wg = _Stages(worker_group())
        run(trainer)
        if served:
            servers = [server for each in trainer.llm_server_manager.rollout_replicas for server in each.servers]
            return [json.dumps(ray.get([server.told.remote() for server in servers]))]
        return [str(entry) for entry in log.entries]


def main(overrides: Sequence[str]) -> None:
    """Start Ray, and the controller in it."""
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    runner = ray.remote(TaskRunner).options(num_cpus=0).remote()
    served = list(overrides[:1]) == ["servers"]
    print("\n".join(ray.get(runner.run.remote(list(overrides[served:]), served=served))))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
