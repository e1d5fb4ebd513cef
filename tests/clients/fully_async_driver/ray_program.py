"""A program that makes verl's real trainer in a real Ray actor and has it sync three versions; it prints what happened.

No weights go anywhere: the trainer is told that there are no standalone devices, which only skips their transfer.
"""

from __future__ import annotations

import importlib.resources
import json

import ray
from hydra import compose, initialize_config_dir
from verl.experimental.fully_async_policy.fully_async_trainer import FullyAsyncTrainer

from fully_async_driver.ray_actors import Rollouter, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONFIGURATION = (
    "trainer.logger=[]",
    "trainer.test_freq=1",
    "actor_rollout_ref.hybrid_engine=False",
    "actor_rollout_ref.rollout.checkpoint_engine.backend=naive",
    "global_profiler.steps=[1,2]",
    "rollout.nnodes=0",
    "async_training.use_dynamic_resource_scheduling=True",
    "async_training.dynamic_schedule_policy=static_fully_async",
)


def _set(trainer: Any, **attributes: object) -> None:
    vars(trainer).update(attributes)


def main() -> None:
    """Do what ``fully_async_main`` does, and what the trainer's ``fit`` does at each sync."""
    folder = importlib.resources.files("verl") / "experimental" / "fully_async_policy" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("fully_async_ppo_trainer", overrides=list(_CONFIGURATION))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    server: Any = Server.remote()
    rollouter = Rollouter.remote(server)
    trainer = FullyAsyncTrainer.options(num_cpus=0).remote(config, None, {}, None, device_name="cpu")
    ray.get(trainer.__ray_call__.remote(_set, actor_wg=None, actor_rollout_wg=None))
    ray.get(trainer.set_rollouter.remote(rollouter))
    ray.get(trainer._fit_update_weights.remote())
    ray.get(trainer._fit_validate.remote(True))
    for version in (1, 2, 3):
        ray.get(server.note.remote(f"generation {version}"))
        ray.get(trainer.__ray_call__.remote(_set, current_param_version=version))
        ray.get(trainer._fit_update_weights.remote())
        ray.get(server.note.remote(f"sync {version}"))
        ray.get(trainer._fit_validate.remote())
    told = ray.get(server.told.remote())
    ray.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
