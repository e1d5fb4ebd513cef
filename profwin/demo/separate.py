"""The separate loop: rollout on a device of its own, a step ahead of training, whose device helps in part of the steps.

While the trainer trains on the samples of step *n*, the standalone engine generates most of those of step *n* + 1. In
every third step the trainer's device is lent to generation first: a hybrid engine on it generates the rest of the
step's samples. They go to the trainer while that engine is still on its way to sleep, so the trainer's first stage
waits at the device lock.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from statistics import mean

import profwin
from profwin.demo.loop import GROUP, PROMPTS, Driver, Outcome, StepResult, start_trainer, work_of
from profwin.demo.rollout import RolloutEngine
from profwin.demo.task import prompts, rewards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.demo.options import Options
    from profwin.demo.processes import Processes

__all__ = ["SeparateDriver", "lead", "run"]

HYBRID_PROMPTS = 8
"""How many of a step's prompts the hybrid engine takes over where it helps."""


@dataclass
class SeparateDriver(Driver):
    """A driver with a second engine, on the trainer's device, and samples that were generated a step ahead.

    Attributes:
        hybrid_recorder: what profwin is given as ``hybrid_engine=``; None: the second engine itself.
    """

    hybrid: RolloutEngine = field(kw_only=True)
    hybrid_recorder: object | None = None
    ahead: list[dict[str, Any]] = field(default_factory=list)

    def fill(self) -> None:
        """Generate for the first step; like the pipeline's filling in a real loop it belongs to no step."""
        self.ahead = self.engine.generated(self._begin(1))["groups"]

    def step(self, step: int, loop: profwin.Loop) -> StepResult:
        """Train on the samples that are there while those of the next step are generated."""
        started = time.monotonic()
        loop.step_begins(step, weight_version=self.updates)
        generation = self._begin(step + 1)
        windows: dict[str, int | None] = {}
        groups = self.ahead
        if _lent(step):
            loop.devices_to_generation()
            help_given = self.hybrid.generate(
                prompts(HYBRID_PROMPTS, self.generator), group=GROUP, wanted=HYBRID_PROMPTS
            )
            windows["rollout_hybrid"] = help_given["decoding_steps"]
            groups = groups + help_given["groups"]
        given = rewards(groups)
        training = self.submit(step, {"groups": groups, "rewards": given})
        if _lent(step):
            self.hybrid.sleep()
            loop.devices_to_training()
        generated = self.engine.generated(generation)
        rolled_out = time.monotonic()
        trained = self.trained(training)
        loop.step_ends()
        self.ahead, windows["rollout"] = generated["groups"], generated["decoding_steps"]
        self.sync_weights(trained["weights"], self.engine, self.hybrid)
        return StepResult(
            step=step,
            selected=self.options.selected(step),
            reward=mean(given),
            rollout=rolled_out - started,
            training=trained["seconds"],
            work=work_of(windows, trained),
        )

    def _begin(self, step: int) -> int:
        count = PROMPTS - HYBRID_PROMPTS if _lent(step) else PROMPTS
        return self.engine.begin(prompts(count, self.generator), group=GROUP, wanted=count)


def run(options: Options, processes: Processes, progress: Callable[[StepResult], None]) -> Outcome:
    """Run the loop.

    Args:
        options: what to run.
        processes: starts the children, with profwin configured.
        progress: called after each step.
    """
    rollout_device, training_device = options.devices
    engine = RolloutEngine(lambda: processes.start("engine", "engine", seed=options.seed), [rollout_device])
    hybrid = RolloutEngine(lambda: processes.start("hybrid engine", "engine", seed=options.seed + 1), [training_device])
    trainer = start_trainer(options, processes)
    return lead(SeparateDriver(options, engine, trainer, random.Random(options.seed), hybrid=hybrid), progress)


def lead(driver: SeparateDriver, progress: Callable[[StepResult], None]) -> Outcome:
    """Run the loop with processes that are there.

    Args:
        driver: knows them.
        progress: called after each step.
    """
    for each in (driver.engine, driver.hybrid):
        each.load_weights(driver.trainer.call("weights"), 0)
    driver.fill()
    engine, hybrid = driver.recorder or driver.engine, driver.hybrid_recorder or driver.hybrid
    with profwin.Loop("separate", engine=engine, hybrid_engine=hybrid) as driver.loop:
        return driver.run(partial(driver.step, loop=driver.loop), progress)


def _lent(step: int) -> bool:
    return step % 3 == 2
