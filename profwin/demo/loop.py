"""The driver: one process that leads the engine and the trainer through the steps.

A batch is handed to the trainer as soon as the samples are there, while the window is still open and the
engine is on its way to sleep. The trainer's first stage then waits at the device lock until the engine's
profiler has stopped: the handover.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from statistics import mean

import profwin
from profwin.demo.rollout import RolloutEngine
from profwin.demo.task import held_out_prompts, prompts, rewards
from profwin.demo.verify import StepWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.demo.child import Child
    from profwin.demo.options import Options
    from profwin.demo.processes import Processes
    from profwin.window import Window

__all__ = ["Driver", "Outcome", "StepResult", "lead", "run", "start_trainer", "work_of"]

PROMPTS = 32
GROUP = 32
SPARE_PROMPTS = 8
"""How many more prompts than needed the colocate loop keeps on their way."""
VALIDATE_EVERY = 4


@dataclass
class StepResult:
    """What a step brought.

    Attributes:
        rollout: seconds from its begin until its window was left; in a pipelined loop, until its samples were there.
        training: seconds from then until the trainer was done; in a pipelined loop, those of the trainer.
        reward: mean over the samples, 0.0 to 1.0.
        work: what its processes counted.
        validation: mean reward of the likeliest answers to the held-out prompts, where it was measured.
        carried: unfinished groups that are kept for the next step (colocate).
    """

    step: int
    selected: bool
    reward: float
    rollout: float
    training: float
    work: StepWork
    validation: float | None = None
    carried: int = 0


@dataclass
class Outcome:
    """What a run brought: its steps, and notes on what was done wrong on purpose."""

    results: list[StepResult]
    notes: list[str] = field(default_factory=list)


@dataclass
class Driver:
    """The processes of a run, and what the loop knows between steps.

    Attributes:
        recorder: what profwin is given as ``engine=``; None: the engine itself.
        prompts, group: how many prompts a step has, and how many answers each of them gets.
    """

    options: Options
    engine: RolloutEngine
    trainer: Child
    generator: random.Random
    loop: profwin.Loop | None = None
    in_flight: int = 0
    updates: int = 0
    notes: list[str] = field(default_factory=list)
    prompts: int = PROMPTS
    group: int = GROUP
    recorder: object | None = None

    def sync_step(self, step: int) -> StepResult:
        """Generate all samples, then train on them."""
        started = time.monotonic()
        with self.window(step):
            generated = self.generate(self.prompts)
            training = self.submit(step, generated)
            self.engine.sleep()
        return self.finish(step, started, time.monotonic(), generated, self.trained(training))

    def colocate_step(self, step: int, loop: profwin.Loop) -> StepResult:
        """Generate until there are samples enough, keep the rest for the next step, and train."""
        started = time.monotonic()
        loop.step_begins(step, weight_version=self.updates)
        generated = self.generate(PROMPTS + SPARE_PROMPTS - self.in_flight)
        loop.samples_in_hand()
        training = self.submit(step, generated)
        carried = self.engine.abort()
        self.in_flight, generated["decoding_steps"] = carried["groups"], carried["decoding_steps"]
        self.engine.sleep()
        loop.devices_to_training()
        result = self.finish(step, started, time.monotonic(), generated, self.trained(training))
        loop.step_ends()
        result.carried = self.in_flight
        return result

    def window(self, step: int) -> Window:
        """Return the rollout window of a step, not opened yet."""
        return profwin.rollout_window(step, engine=self.recorder or self.engine, weight_version=self.updates)

    def generate(self, count: int) -> dict[str, Any]:
        """Give the engine ``count`` more prompts and return one step's samples, with their rewards."""
        generated = self.engine.generate(prompts(count, self.generator), group=self.group, wanted=self.prompts)
        generated["rewards"] = rewards(generated["groups"])
        return generated

    def submit(self, step: int, generated: dict[str, Any]) -> int:
        """Send the samples to the trainer, which begins at once; return what to ask for its reply with."""
        return self.trainer.send("train", step=step, groups=generated["groups"], rewards=generated["rewards"])

    def trained(self, training: int) -> dict[str, Any]:
        """Wait for the trainer's reply."""
        reply: dict[str, Any] = self.trainer.receive(training)
        return {**reply, "received": time.monotonic()}

    def run(self, run_step: Callable[[int], StepResult], progress: Callable[[StepResult], None]) -> Outcome:
        """Run all steps, with validations between them."""
        outcome = Outcome([], self.notes)
        for step in range(1, self.options.steps + 1):
            result = run_step(step)
            if step % VALIDATE_EVERY == 0 or step == self.options.steps:
                result.validation = self.validate()
            outcome.results.append(result)
            progress(result)
        return outcome

    def finish(
        self, step: int, started: float, left: float, generated: dict[str, Any], trained: dict[str, Any]
    ) -> StepResult:
        """Hand the new weights to the engine and say what the step brought.

        Args:
            step: its number.
            started: when it began, on the monotonic clock.
            left: when its window was left.
            generated: what :meth:`generate` returned.
            trained: what :meth:`trained` returned.
        """
        self.sync_weights(trained["weights"], self.engine)
        return StepResult(
            step=step,
            selected=self.options.selected(step),
            reward=mean(generated["rewards"]),
            rollout=left - started,
            training=trained["received"] - left,
            work=work_of({"rollout": generated["decoding_steps"]}, trained),
        )

    def sync_weights(self, weights: bytes, *engines: RolloutEngine) -> None:
        """Hand the new weights of an update to engines."""
        self.updates += 1
        if self.loop is not None:
            self.loop.weights_about_to_sync(self.updates)
        for engine in engines:
            engine.load_weights(weights, self.updates)
        if self.loop is not None:
            self.loop.weights_synced(self.updates)

    def validate(self) -> float:
        """Return the mean reward of the likeliest answers to the held-out prompts; none of it is recorded."""
        if self.loop is not None:
            self.loop.validation_begins()
            groups = self.engine.evaluate(held_out_prompts())
            self.loop.validation_ends()
        else:
            with profwin.paused():
                groups = self.engine.evaluate(held_out_prompts())
        return mean(rewards(groups))


def work_of(windows: dict[str, int | None], trained: dict[str, Any]) -> StepWork:
    """Return what a step did: the decoding steps of its windows, and a trainer's reply."""
    return StepWork(windows, trained["updates"], trained["generated_with"], trained["trainers"])


def run(options: Options, processes: Processes, progress: Callable[[StepResult], None]) -> Outcome:
    """Run the sync or the colocate loop.

    Args:
        options: what to run.
        processes: starts the children, with profwin configured.
        progress: called after each step.
    """
    (device,) = options.devices
    engine = RolloutEngine(lambda: processes.start("engine", "engine", seed=options.seed), [device])
    return lead(Driver(options, engine, start_trainer(options, processes), random.Random(options.seed)), progress)


def lead(driver: Driver, progress: Callable[[StepResult], None]) -> Outcome:
    """Run the sync or the colocate loop with processes that are there.

    Args:
        driver: knows them.
        progress: called after each step.
    """
    options = driver.options
    driver.engine.load_weights(driver.trainer.call("weights"), 0)
    if options.loop == "colocate":
        with profwin.Loop("colocate", engine=driver.recorder or driver.engine) as driver.loop:
            return driver.run(partial(driver.colocate_step, loop=driver.loop), progress)
    if options.misuse is None:
        return driver.run(driver.sync_step, progress)
    from profwin.demo.misuse import MISUSES

    return driver.run(partial(MISUSES[options.misuse].step, driver), progress)


def start_trainer(options: Options, processes: Processes) -> Child:
    """Start the training process that a driver leads."""
    return processes.start_profiled(
        "trainer",
        "trainer",
        role="actor",
        device=options.devices[-1],
        seed=options.seed,
        second_profiler=options.second_profiler_directory(),
    )
