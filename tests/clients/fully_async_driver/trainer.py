"""The training side: verl's real fully async trainer, whose stages run in verl's real worker."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

from omegaconf import OmegaConf
from verl.experimental.fully_async_policy import fully_async_trainer
from verl.experimental.fully_async_policy.dynamic_schedule import DynamicResourceController, DynamicSchedulePolicyBase
from verl.experimental.fully_async_policy.dynamic_schedule.base import DynamicScheduleContext
from verl_driver.scenario import StageFaultError
from verl_driver.workers import actor_group

from fully_async_driver import remote
from fully_async_driver.rollout import STANDALONE, Manager, Server, replica, rollouter
from fully_async_driver.scenario import HYBRID, EngineFaultError
from profwin.configuration import current
from profwin.engines import replicas

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from verl_driver.devicelog import DeviceLog

    from fully_async_driver.remote import Actors
    from fully_async_driver.scenario import Scenario

__all__ = ["make", "run", "worker_group"]


_LONG = 60.0


async def _settled() -> None:
    """Wait until profwin has done what follows a late answer."""
    session, deadline = current(), time.monotonic() + _LONG
    while time.monotonic() < deadline:
        late = any(not task.done() for task in list(replicas._unanswered.values()))
        if not late and not (session and any(each.state == "closing" for each in session.owner.collections)):
            return
        await asyncio.sleep(0.005)


class Policy(DynamicSchedulePolicyBase):
    """Lend the devices at each sync, and take them back before training."""

    def should_deactivate(self, global_steps: int, is_hybrid_active: bool, ctx: DynamicScheduleContext) -> bool:
        return is_hybrid_active

    def deactivate_wait_samples(self, ctx: DynamicScheduleContext) -> int:
        return 0

    def should_activate_after_step(
        self, global_steps: int, is_hybrid_active: bool, ctx: DynamicScheduleContext
    ) -> bool:
        return True


def _config(scenario: Scenario) -> Any:
    return OmegaConf.create(
        {
            "global_profiler": {"steps": list(scenario.steps), "profile_continuous_steps": False, "tool": "torch"},
            "actor_rollout_ref": {"rollout": {"temperature": 1.0}},
            "trainer": {
                "test_freq": {"": -1, "rollouter": 2, "trainer": 1}[scenario.validates], "save_freq": -1,
                "esi_redundant_time": 0, "default_local_dir": "/nonexistent",
            },
            "async_training": {"use_trainer_do_validate": scenario.validates == "trainer"},
        }
    )  # fmt: skip


def make(scenario: Scenario, log: DeviceLog, actors: Actors) -> Any:
    """Return a trainer, made without its ``__init__``, that is ready for its first weight sync."""
    cls = remote.shipped(fully_async_trainer.FullyAsyncTrainer)
    group = worker_group(scenario, log)
    server = Server(log, STANDALONE, start=scenario.start, stop=scenario.stop)
    standalone = [replica(actors, server, STANDALONE)] if scenario.standalone else []
    needed = scenario.lends or scenario.validates == "trainer"
    hybrid = [replica(actors, Server(log, HYBRID), HYBRID)] if needed else []
    generator = rollouter(scenario, log, standalone, hybrid)
    left = scenario.versions * scenario.rounds + int(scenario.half)

    class Trainer(cls):  # type: ignore[misc, valid-type]  # known only when it runs
        """verl's trainer; the log knows its step, and its samples are there when the rollouter has generated."""

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "current_param_version":
                log.step = value + 1

        async def _get_samples_from_queue(self) -> tuple[int | None, Any]:
            nonlocal left
            generator.generate()
            if log.step == 2 and "slow" in (scenario.start, scenario.stop) and not server.released.is_set():
                server.released.set()
                await asyncio.to_thread(server.answered.wait, _LONG)
                await _settled()
            left -= 1
            if left < 0:
                return None, None
            return 0, SimpleNamespace(meta_info={"trajectory_param_versions": []})

    trainer = Trainer.__new__(Trainer)
    trainer.config, trainer.rollouter = _config(scenario), remote.Handle(actors, generator, "rollouter")
    trainer.global_steps, trainer.current_param_version, trainer.local_trigger_step = 0, 0, 1
    trainer.epoch = trainer.stale_trajectory_processed = trainer.last_ckpt_version = trainer.max_steps_duration = 0
    trainer.trigger_parameter_sync_step, trainer.staleness_threshold = scenario.rounds, 1
    trainer.use_reference_policy = trainer.use_critic = False
    trainer.timing_raw, trainer.metrics, trainer._step_wait_times, trainer._step_wait_samples = {}, {}, [], []
    trainer.actor_rollout_wg = trainer.actor_wg = group
    trainer.checkpoint_manager = Manager(log, standalone, group.worker, STANDALONE)
    trainer.hybrid_checkpoint_manager = Manager(log, hybrid, group.worker, HYBRID) if needed else None
    trainer.dynamic_schedule_enabled, trainer._dynamic_schedule_enable_rebalance = scenario.lends, True
    trainer.only_hybrid = scenario.lends and not scenario.standalone
    trainer.dynamic_schedule_ctx = DynamicScheduleContext(1, scenario.rounds, 0, 0, 0, only_hybrid=trainer.only_hybrid)
    trainer.dynamic_resource_controller = None
    if scenario.lends:
        trainer.dynamic_resource_controller = DynamicResourceController(
            trainer.rollouter, trainer.hybrid_checkpoint_manager, len(standalone), len(hybrid), Policy()
        )
    for name in ("message_queue_client", "progress_bar", "logger", "metrics_aggregator"):
        setattr(trainer, name, MagicMock())
    _replace_the_rest(trainer)
    return trainer


def worker_group(scenario: Scenario, log: DeviceLog) -> Any:
    """Return the group of a worker that trains, and sends its weights nowhere."""

    async def send_weights(parameters: object, global_steps: int) -> dict[str, object]:
        return {}

    group = actor_group(scenario, log, HYBRID)
    group.worker.actor.engine.get_per_tensor_param = lambda: (None, None)
    group.worker.checkpoint_engine = SimpleNamespace(send_weights=send_weights)
    return group


def _replace_the_rest(trainer: Any) -> None:
    """Replace what moves data: stages still call the worker group, in the order of the real ``fit_step``."""

    def through(stage: str) -> Any:
        def call(batch: Any) -> Any:
            getattr(trainer.actor_rollout_wg, stage)(batch)
            return batch

        return call

    trainer._fit_compute_log_prob = through("compute_log_prob")
    trainer._fit_update_actor = through("update_actor")
    for name in ("reward", "ref_log_prob", "critic", "advantage"):
        setattr(trainer, f"_fit_compute_{name}", lambda batch: batch)
    trainer._fit_update_critic = lambda batch: batch
    trainer._fit_dump_data = trainer._fit_collect_metrics = trainer._fit_postprocess_step = MagicMock()


def run(trainer: Any, *, validates: bool, seconds: float) -> str:
    """Do what ``fully_async_main`` does with a trainer; return what ended it: "", "fault", "engine" or "hung"."""

    async def body() -> None:
        await trainer._fit_update_weights()
        if validates:
            await trainer._fit_validate(True)
        await trainer.fit()

    with patch("ray.get", remote.get):
        try:
            asyncio.run(asyncio.wait_for(body(), seconds))
        except StageFaultError:
            return "fault"
        except EngineFaultError:
            return "engine"
        except (asyncio.TimeoutError, TimeoutError):
            return "hung"
        return ""
