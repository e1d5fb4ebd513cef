"""The driver: one process that leads the engine and the trainer through the steps.

A batch is handed to the trainer as soon as the samples are there, while the window is still open and the
engine is on its way to sleep. The trainer's first stage then waits at the device lock until the engine's
profiler has stopped: the handover.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial

import profwin
from profwin.demo.child import Child
from profwin.demo.rollout import RolloutEngine
from profwin.demo.task import held_out_prompts, prompts, reward
from profwin.demo.verify import StepWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.demo.options import Options
    from profwin.window import Window

__all__ = ["Driver", "StepResult", "run"]

PROMPTS = 32
GROUP = 32
SPARE_PROMPTS = 8
"""How many more prompts than needed the colocate loop keeps on their way."""
VALIDATE_EVERY = 4


@dataclass
class StepResult:
    """What a step brought.

    Attributes:
        rollout: seconds from its begin until its window was left.
        training: seconds from then until the trainer was done.
        reward: mean over the samples, 0.0 to 1.0.
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
class Driver:
    """The processes of a run, and what the loop knows between steps."""

    options: Options
    engine: RolloutEngine
    trainer: Child
    generator: random.Random
    loop: profwin.Loop | None = None
    in_flight: int = 0
    updates: int = 0
    notes: list[str] = field(default_factory=list)

    def sync_step(self, step: int) -> StepResult:
        """Generate all samples, then train on them."""
        started = time.monotonic()
        with self.window(step):
            generated = self.generate(PROMPTS)
            training = self.submit(step, generated)
            self.engine.sleep()
        return self.finish(step, started, time.monotonic(), generated, self.trained(training))

    def colocate_step(self, step: int, loop: profwin.Loop) -> StepResult:
        """Generate until there are samples enough, keep the rest for the next step, and train."""
        started = time.monotonic()
        loop.step_begins(step)
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
        return profwin.rollout_window(step, engine=self.engine, weight_version=self.updates)

    def generate(self, count: int) -> dict[str, Any]:
        """Give the engine ``count`` more prompts and return one step's samples, with their rewards."""
        generated = self.engine.generate(prompts(count, self.generator), group=GROUP, wanted=PROMPTS)
        generated["rewards"] = [
            reward(group["prompt"], answer) for group in generated["groups"] for answer in group["answers"]
        ]
        return generated

    def submit(self, step: int, generated: dict[str, Any]) -> int:
        """Send the samples to the trainer, which begins at once; return what to ask for its reply with."""
        return self.trainer.send("train", step=step, groups=generated["groups"], rewards=generated["rewards"])

    def trained(self, training: int) -> dict[str, Any]:
        """Wait for the trainer's reply."""
        reply: dict[str, Any] = self.trainer.receive(training)
        return {**reply, "received": time.monotonic()}

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
        self.engine.load_weights(trained["weights"])
        self.updates += 1
        rewards = generated["rewards"]
        return StepResult(
            step=step,
            selected=self.options.selected(step),
            reward=sum(rewards) / len(rewards),
            rollout=left - started,
            training=trained["received"] - left,
            work=StepWork(generated["decoding_steps"], trained["updates"]),
        )

    def validate(self) -> float:
        """Return the mean reward of the likeliest answers to the held-out prompts; none of it is recorded."""
        if self.loop is not None:
            self.loop.validation_begins()
            groups = self.engine.evaluate(held_out_prompts())
            self.loop.validation_ends()
        else:
            with profwin.paused():
                groups = self.engine.evaluate(held_out_prompts())
        return sum(reward(group["prompt"], group["answers"][0]) for group in groups) / len(groups)


def run(options: Options, progress: Callable[[StepResult], None]) -> tuple[list[StepResult], list[str]]:
    """Run a loop with profwin configured, and end every process that it started, whatever happens.

    Args:
        options: what to run.
        progress: called after each step.

    Returns:
        The steps' results, and notes on what was done wrong on purpose.
    """
    with tempfile.TemporaryDirectory(prefix="profwin-demo-") as locks:
        os.chmod(locks, 0o1777)
        return _run(options, progress, locks)


def _run(options: Options, progress: Callable[[StepResult], None], locks: str) -> tuple[list[StepResult], list[str]]:
    device = f"pretend:demo-{options.run}"
    profwin.configure(
        steps=options.profile,
        backend="torch",
        output=options.output,
        run=options.run,
        role="driver",
        rank=0,
        devices=[device],
        # A pretend device of one run has no place in the host's registry, whose files stay for ever.
        lock_dir=os.environ.get("PROFWIN_LOCK_DIR") or locks,
        wait_budget=options.wait_budget,
    )
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
    # Without a level, Kineto writes two lines for every profile to the terminal.
    bare |= {"OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99"}
    own = {**bare, **profwin.environment(), "PROFWIN_ROLE": "actor", "PROFWIN_RANK": "0"}
    training = {"seed": options.seed, "second_profiler": options.second_profiler_directory()}
    children: list[Child] = []

    def start_engine() -> Child:
        children.append(Child("engine", "profwin.demo.engine", {"seed": options.seed}, bare))
        return children[-1]

    try:
        engine = RolloutEngine(start_engine, [device])
        children.append(Child("trainer", "profwin.demo.trainer", training, own))
        driver = Driver(options, engine, children[-1], random.Random(options.seed))
        engine.load_weights(driver.trainer.call("weights"))
        return _steps(driver, progress), driver.notes
    finally:
        # First what is open, since that needs the engine.
        profwin.shutdown()
        for child in children:
            child.close()


def _steps(driver: Driver, progress: Callable[[StepResult], None]) -> list[StepResult]:
    options = driver.options
    if options.loop == "colocate":
        with profwin.Loop("colocate", engine=driver.engine) as driver.loop:
            return _each(driver, partial(driver.colocate_step, loop=driver.loop), progress)
    if options.misuse is None:
        return _each(driver, driver.sync_step, progress)
    from profwin.demo.misuse import MISUSES

    return _each(driver, partial(MISUSES[options.misuse].step, driver), progress)


def _each(
    driver: Driver, run_step: Callable[[int], StepResult], progress: Callable[[StepResult], None]
) -> list[StepResult]:
    results = []
    for step in range(1, driver.options.steps + 1):
        result = run_step(step)
        if step % VALIDATE_EVERY == 0 or step == driver.options.steps:
            result.validation = driver.validate()
        results.append(result)
        progress(result)
    return results
