"""The four commonest mistakes, made on purpose in the sync loop, and what profwin promises about each."""

from __future__ import annotations

import time
from dataclasses import dataclass

from profwin.demo.loop import PROMPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.demo.loop import Driver, StepResult

__all__ = ["MISUSES", "Misuse"]


@dataclass(frozen=True)
class Misuse:
    """One mistake.

    Attributes:
        mistake: what is done wrong, in a sentence.
        promise: what profwin does then, in a sentence.
        step: runs one step with the mistake in it.
    """

    mistake: str
    promise: str
    step: Callable[[Driver, int], StepResult]


def _stage_in_window(driver: Driver, step: int) -> StepResult:
    started = time.monotonic()
    with driver.window(step):
        generated = driver.generate(PROMPTS)
        left = time.monotonic()
        trained = driver.trained(driver.submit(step, generated))
        driver.engine.sleep()
    return driver.finish(step, started, left, generated, trained)


def _no_stop(driver: Driver, step: int) -> StepResult:
    started = time.monotonic()
    driver.window(step).open()
    generated = driver.generate(PROMPTS)
    driver.engine.sleep()
    left = time.monotonic()
    trained = driver.trained(driver.submit(step, generated))
    return driver.finish(step, started, left, generated, trained)


def _second_profiler(driver: Driver, step: int) -> StepResult:
    # The trainer was told to make the mistake.
    return driver.sync_step(step)


def _kill_engine(driver: Driver, step: int) -> StepResult:
    if step != driver.options.profiled[0]:
        return driver.sync_step(step)
    started = time.monotonic()
    with driver.window(step):
        generated = driver.generate(PROMPTS)
        training = driver.submit(step, generated)
        driver.engine.kill()
        driver.notes.append(f"step {step}: the engine was killed while it recorded, and started again later")
    left = time.monotonic()
    trained = driver.trained(training)
    driver.engine.restart()
    return driver.finish(step, started, left, generated, trained)


MISUSES = {
    "stage-in-window": Misuse(
        "the driver waits for the trainer inside the window, so stages begin while the rollout is recorded",
        "the stages wait for the device until the budget is spent, then run unrecorded, naming its holder",
        _stage_in_window,
    ),
    "no-stop": Misuse(
        "the window is opened and never closed",
        "the stages run unrecorded, naming the device's holder; the next step, or the exit, closes it",
        _no_stop,
    ),
    "second-profiler": Misuse(
        "the training code runs a torch profiler of its own around the stage 'ref_log_prob'",
        "the other profiler is seen and left alone; that stage runs unrecorded, and the journal says why",
        _second_profiler,
    ),
    "kill-engine": Misuse(
        "the engine is killed while it records a window",
        "the device is unknown until the engine is proven gone; then training has it, and the loop goes on",
        _kill_engine,
    ),
}
