"""A program that trains with verl's trainer, rollouter and worker in actors of a real Ray, and prints what happened.

Nothing of it knows profwin but for the last part: the trainer trains a version more, with a plan that has no actors.
"""

from __future__ import annotations

import importlib.resources
import json
import os

import ray
from hydra import compose, initialize_config_dir
from verl_driver.server import server

from fully_async_driver.ray_actors import POLICY, Replica, Rollouter, Trainer
from fully_async_driver.scenario import HYBRID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CARDS = {"two": ["2"], "four": ["3", "4"], "six": ["6"]}
"""The standalone replicas: for each, the list of cards of its servers, one for each node."""
STEPS, CONTROL = (1, 2, 3), 11

_CONFIGURATION = (
    "trainer.logger=[]",
    "trainer.test_freq=1",
    "algorithm.adv_estimator=grpo",
    "actor_rollout_ref.hybrid_engine=False",
    "actor_rollout_ref.rollout.checkpoint_engine.backend=naive",
    f"global_profiler.steps={json.dumps([*STEPS, CONTROL])}",
    "async_training.use_dynamic_resource_scheduling=True",
    f"async_training.dynamic_schedule_policy={POLICY}",
    "async_training.trigger_parameter_sync_step=1",
    "rollout.nnodes=1",
)


def main() -> None:
    """Do what ``fully_async_main`` does."""
    folder = importlib.resources.files("verl") / "experimental" / "fully_async_policy" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("fully_async_ppo_trainer", overrides=list(_CONFIGURATION))
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=bool(os.environ.get("VERL_DRIVER_LOG")))
    servers = {name: [server(each) for each in lists] for name, lists in CARDS.items()}
    servers[HYBRID] = [server("5", HYBRID)]
    replicas = {name: Replica(name, each) for name, each in servers.items()}
    rollouter = Rollouter.remote([replicas["two"], replicas["four"]], replicas[HYBRID], (STEPS[-1], CONTROL))
    trainer = Trainer.remote(config, None, {}, None, device_name="cpu")
    ray.get(trainer.prepare.remote(rollouter, 0, STEPS[-1], {1: replicas["six"], 2: "two"}))
    ray.get(trainer._fit_update_weights.remote())
    ray.get(trainer._fit_validate.remote(True))
    ray.get(trainer.fit.remote())
    told = [_told(servers)]
    ray.get(trainer.train_without_actors.remote(rollouter, CONTROL))
    print(json.dumps([*told, _told(servers)]))
    ray.shutdown()


def _told(servers: dict[str, list[Any]]) -> dict[str, list[str]]:
    return {name: ray.get([each.told.remote() for each in listed]) for name, listed in servers.items()}


if __name__ == "__main__":
    main()
