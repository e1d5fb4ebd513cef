"""verl's real trainers on fakes: their own ``fit`` runs, with what is not under test replaced."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

from omegaconf import OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1 import trainer_base
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import HybridEngineMode, PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from verl_driver.devicelog import PROFILED
from verl_driver.scenario import StageFaultError
from verl_driver.workers import actor_group, critic_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from verl_driver.devicelog import DeviceLog
    from verl_driver.scenario import Scenario

__all__ = ["HYBRID", "STANDALONE", "make", "run"]

HYBRID, STANDALONE = "hybrid", "standalone"
"""The devices: the one that trains, and generates too in sync and colocate_async; the one that only generates."""

_CLASSES = {
    "sync": PPOTrainerSync,
    "colocate_async": PPOTrainerColocateAsync,
    "separate_async": PPOTrainerSeparateAsync,
}
_STEPS = 3
_MINI_BATCH = 2


class ServerManager:
    """The engines of one device: what verl's ``LLMServerManager`` offers of them, as far as trainers use it."""

    def __init__(self, log: DeviceLog, device: str) -> None:
        self._log, self._device = log, device
        self.server_addresses = [device]
        self.server_handles = [object()]
        self.global_load_balancer = MagicMock()

    def start_profile(self, **kwargs: object) -> None:
        if kwargs:
            raise TypeError(f"AsyncLLM.start_profile() got an unexpected keyword argument {next(iter(kwargs))!r}")
        self._log.note("start", "rollout", self._device, self._device)

    def stop_profile(self) -> None:
        self._log.note("stop", "rollout", self._device, self._device)


class Buffer:
    """The replay buffer: a sample is in hand once the devices that generate have done so."""

    poll_interval = 2.0

    def __init__(self, log: DeviceLog, devices: list[str]) -> None:
        self._log, self._devices = log, devices
        self._numbers = count()
        self.hybrid_generates = lambda: False

    def _generate(self, detail: str = "") -> None:
        for device in self._devices + ([HYBRID] if self.hybrid_generates() else []):
            self._log.note("generate", "rollout", device, detail)

    def sample(self, *, global_steps: int, partition_id: str, batch_size: int) -> tuple[KVBatchMeta, dict[str, object]]:
        self._generate()
        keys = [str(next(self._numbers)) for _ in range(batch_size)]
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=[{} for _ in keys], extra_info={}), {}

    def wait_for_sampleable(self, *args: object) -> tuple[int, dict[str, object]]:
        self._generate()
        return 1, {}

    def get_sampleable_count(self, *args: object) -> int:
        return 0

    def validate(self) -> None:
        self._generate("validation")


def _config(scenario: Scenario) -> Any:
    return OmegaConf.create(
        {
            "global_profiler": {
                "steps": list(PROFILED),
                "profile_continuous_steps": scenario.continuous,
                "tool": "torch",
            },
            "data": {"train_batch_size": _MINI_BATCH * scenario.rounds},
            "actor_rollout_ref": {"rollout": {"temperature": 1.0}},
            "trainer": {
                "project_name": "p",
                "experiment_name": "e",
                "logger": [],
                "val_before_train": scenario.validate,
                "total_epochs": 1,
                "save_freq": 0,
                "test_freq": 1 if scenario.validate else 0,
                "critic_warmup": 0,
                "v1": {"colocate_async": {"num_warmup_batches": 0}, "separate_async": {"num_warmup_batches": 0}},
            },
            "skip": {"rollout_tq": {"enable": False}},
        }
    )


def make(scenario: Scenario, log: DeviceLog) -> Any:
    """Return a trainer, made without its ``__init__``, that is ready for ``fit``."""
    cls = _CLASSES[scenario.mode]

    class Trainer(cls):
        """verl's trainer; that the log knows its step is all that is added."""

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "global_steps":
                log.step = value

    trainer = Trainer.__new__(Trainer)
    trainer.config, trainer.trainer_mode = _config(scenario), scenario.mode
    trainer.global_steps, trainer.total_training_steps, trainer.steps_per_epoch = 0, _STEPS, _STEPS
    trainer.parameter_sync_step, trainer.local_trigger_step = scenario.rounds, 0
    trainer.use_reference_policy, trainer.use_critic, trainer.ref_in_actor = True, scenario.critic, False
    trainer.checkpoint_manager, trainer.standalone_checkpoint_manager = MagicMock(), MagicMock()
    trainer.standalone_checkpoint_manager.update_weights.return_value = {}
    trainer.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
    trainer.llm_server_manager = ServerManager(log, HYBRID)
    trainer.replay_buffer = buffer = Buffer(log, [HYBRID])
    if scenario.mode == "separate_async":
        trainer.standalone_server_manager = ServerManager(log, STANDALONE)
        trainer.replay_buffer = buffer = Buffer(log, [STANDALONE])
        buffer.hybrid_generates = lambda: trainer.current_mode is HybridEngineMode.ROLLOUT
        trainer.current_mode = HybridEngineMode.ROLLOUT
        trainer.hybrid_rollout_config = _switching(scenario)
        trainer._switch_threshold_ratio, trainer._scaling_factor = 1.0, 2.0
        trainer._idle_steps = trainer._calm_steps = 0
        trainer._wait_seconds = trainer._wait_samples = 0
        trainer._to_rollout_costs, trainer._to_trainer_costs = [], []
    trainer.actor_rollout_wg = trainer.ref_policy_wg = actor_group(scenario, log, HYBRID)
    if scenario.critic:
        trainer.critic_wg = critic_group(scenario, log, HYBRID)
    _replace_the_rest(trainer, buffer)
    return trainer


def _switching(scenario: Scenario) -> SimpleNamespace:
    return SimpleNamespace(
        enable_switch=scenario.lend, adaptive_switch_threshold=False, switch_threshold_ratio=1.0,
        switch_threshold_release_steps=1,
    )  # fmt: skip


def _replace_the_rest(trainer: Any, buffer: Buffer) -> None:
    """Replace what moves data: stages still call the worker groups, in the order of the real ``_step_once``."""

    def through(group: str, stage: str) -> Any:
        def call(batch: KVBatchMeta, metrics: dict[str, object]) -> KVBatchMeta:
            getattr(getattr(trainer, group), stage)(batch)
            return batch

        return call

    trainer._compute_old_log_prob = through("actor_rollout_wg", "compute_log_prob")
    trainer._compute_ref_log_prob = through("ref_policy_wg", "compute_ref_log_prob")
    trainer._compute_values = through("critic_wg", "infer_batch")
    trainer._update_critic = through("critic_wg", "train_mini_batch")
    trainer._update_actor = through("actor_rollout_wg", "update_actor")
    trainer._balance_batch = trainer._compute_advantage = lambda batch, metrics: batch

    def validate() -> dict[str, float]:
        buffer.validate()
        return {"val": 1.0}

    trainer._validate = validate
    for name in ("_add_batch_to_generate", "_reissue_inflight_prompts", "_compute_metrics", "_shutdown_dump_executor"):
        setattr(trainer, name, MagicMock())


def run(trainer: Any) -> bool:
    """Run a trainer's real ``fit``; return whether a stage's fault ended it."""
    with ExitStack() as stack:
        for name in (
            "SkipManager", "Tracking", "ValidationGenerationsLogger", "DapoFilteredRewardTableLogger", "tqdm", "tq",
        ):  # fmt: skip
            stack.enter_context(patch.object(trainer_base, name, MagicMock()))
        stack.enter_context(patch("verl.trainer.ppo.v1.trainer_separate_async.ray", MagicMock()))
        stack.enter_context(patch.object(trainer_base, "pprint", MagicMock()))
        try:
            trainer.fit(MagicMock())
        except StageFaultError:
            return True
        return False
