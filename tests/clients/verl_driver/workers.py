"""The training side: verl's real workers in this process, on an engine that only logs that it works."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils
from verl.utils.profiler.config import ProfilerConfig
from verl.utils.profiler.profile import DistProfiler, DistProfilerExtension
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

from verl_driver.scenario import StageFaultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from verl_driver.devicelog import DeviceLog
    from verl_driver.scenario import Scenario

__all__ = ["WorkerGroup", "actor_group", "batch_data", "critic_group"]


class LoggingTool:
    """A profiling tool for `DistProfiler`, which starts and stops as verl's ``torch`` tool does."""

    def __init__(self, log: DeviceLog, device: str, name: str, *, discrete: bool) -> None:
        self._log, self._device, self._name, self._discrete = log, device, name, discrete

    def start(self, **kwargs: object) -> None:
        if not self._discrete:
            self._log.note("start", "training", self._device, self._name)

    def stop(self) -> None:
        if not self._discrete:
            self._log.note("stop", "training", self._device, self._name)

    def step(self) -> None:
        pass

    def annotate(self, **kwargs: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if not self._discrete:
                    return function(*args, **kwargs)
                self._log.note("start", "training", self._device, self._name)
                try:
                    return function(*args, **kwargs)
                finally:
                    self._log.note("stop", "training", self._device, self._name)

            return wrapper

        return decorator


class LoggingEngine:
    """The model below a `TrainingWorker`: it logs that the device works."""

    def __init__(self, log: DeviceLog, device: str, *, fails: bool) -> None:
        self._log, self._device, self._fails = log, device, fails

    def train_mode(self, **kwargs: object) -> Any:
        return MagicMock()

    eval_mode = train_mode

    def train_batch(self, data: object, loss_function: object) -> dict[str, object]:
        self._log.note("work", "training", self._device, "update")
        if self._fails:
            self._fails = False
            raise StageFaultError("the first update fails")
        return {}

    def infer_batch(self, data: object, loss_function: object) -> dict[str, object]:
        self._log.note("work", "training", self._device, "forward")
        return {}

    def lr_scheduler_step(self) -> float:
        return 0.0

    def is_mp_src_rank_with_outputs(self) -> bool:
        return False

    def get_data_parallel_size(self) -> int:
        return 1

    def get_data_parallel_rank(self) -> int:
        return 0


def _profiler(tool: LoggingTool, *, discrete: bool, enable: bool = True) -> DistProfiler:
    settings = SimpleNamespace(discrete=discrete)
    config = ProfilerConfig(tool="none", enable=enable, all_ranks=True, ranks=[], save_path="", tool_config=settings)
    profiler = DistProfiler(rank=0, config=config, tool_config=settings)
    profiler._impl = tool
    return profiler


def _training_worker(scenario: Scenario, log: DeviceLog, device: str, kind: str, *, fails: bool) -> TrainingWorker:
    worker = TrainingWorker.__new__(TrainingWorker)
    worker.config = SimpleNamespace(model_type=kind)
    worker.model_config = {}
    worker.engine_config = MagicMock(forward_only=False)
    worker.engine = LoggingEngine(log, device, fails=fails)
    worker.loss_fn = MagicMock()
    tool = LoggingTool(log, device, kind, discrete=scenario.discrete)
    DistProfilerExtension.__init__(worker, _profiler(tool, discrete=scenario.discrete))
    return worker


class WorkerGroup:
    """What the trainer has in place of a Ray worker group: it calls the worker that it is given."""

    def __init__(self, worker: object) -> None:
        self.worker = worker

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.worker, name)
        if name in ("start_profile", "stop_profile"):
            return method
        return lambda batch: method(batch_data())


def batch_data() -> TensorDict:
    """Return a batch that all stages take."""
    data = TensorDict({"values": torch.zeros(2, 1)}, batch_size=[2])
    tensordict_utils.assign_non_tensor(data, mini_batch_size=2)
    return data


def actor_group(scenario: Scenario, log: DeviceLog, device: str) -> WorkerGroup:
    """Return the group of a worker that is actor and reference model."""
    worker = ActorRolloutRefWorker.__new__(ActorRolloutRefWorker)
    worker.role = "actor_rollout_ref"
    worker.enable_routing_replay = False
    worker.actor = _training_worker(scenario, log, device, "language_model", fails=scenario.fault)
    worker.ref = _training_worker(scenario, log, device, "language_model", fails=False)
    tool = LoggingTool(log, device, "actor", discrete=scenario.discrete)
    DistProfilerExtension.__init__(worker, _profiler(tool, discrete=scenario.discrete))
    return WorkerGroup(worker)


def critic_group(scenario: Scenario, log: DeviceLog, device: str) -> WorkerGroup:
    """Return the group of a critic, on the actor's device."""
    return WorkerGroup(_training_worker(scenario, log, device, "value_model", fails=False))
