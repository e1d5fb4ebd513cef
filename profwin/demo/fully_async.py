"""The fully async loop: a rollouter and a trainer that run freely; the driver starts, watches and ends them."""

from __future__ import annotations

from multiprocessing import Pipe
from multiprocessing.connection import wait
from statistics import mean

from profwin.demo.child import REPORT
from profwin.demo.loop import VALIDATE_EVERY, Outcome, StepResult
from profwin.demo.task import rewards
from profwin.demo.verify import StepWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.demo.options import Options
    from profwin.demo.processes import Processes

__all__ = ["run"]

EXPECTED = {"reward", "decoding_steps"}
"""One field of each of the two reports that make a step's result."""


def run(options: Options, processes: Processes, progress: Callable[[StepResult], None]) -> Outcome:
    """Run the loop.

    Args:
        options: what to run.
        processes: starts the children, with profwin configured.
        progress: called after each step.

    Raises:
        ChildError: one of the two has ended, or failed.
    """
    steps = options.steps
    one, other = Pipe()
    rollout_device, training_device = options.devices
    rollouter = processes.start_profiled(
        "rollouter",
        "rollouter",
        role="rollouter",
        device=rollout_device,
        peer=one,
        seed=options.seed,
        validations=[step for step in range(1, steps + 1) if step % VALIDATE_EVERY == 0 or step == steps],
    )
    trainer = processes.start_profiled(
        "trainer",
        "async_trainer",
        role="actor",
        device=training_device,
        peer=other,
        seed=options.seed,
        steps=steps,
    )
    outcome = Outcome([])
    parts: list[dict[str, Any]] = [{} for _ in range(steps)]
    while len(outcome.results) < steps:
        ready = wait([rollouter.pipe, trainer.pipe])
        for child in (rollouter, trainer):
            if child.pipe in ready:
                report = child.receive(REPORT)
                parts[report["step"] - 1].update(report)
        while len(outcome.results) < steps and (part := parts[len(outcome.results)]).keys() >= EXPECTED:
            outcome.results.append(_result(options, part))
            progress(outcome.results[-1])
    for child in (rollouter, trainer):
        # Before the run's end, so that the manifest has their last words too.
        child.close()
    return outcome


def _result(options: Options, part: dict[str, Any]) -> StepResult:
    validated = part["validated"]
    return StepResult(
        step=part["step"],
        selected=options.selected(part["step"]),
        reward=part["reward"],
        rollout=part["rollout"],
        training=part["training"],
        work=StepWork({"rollout": part["decoding_steps"]}, part["updates"], part["generated_with"]),
        validation=None if validated is None else mean(rewards(validated)),
    )
