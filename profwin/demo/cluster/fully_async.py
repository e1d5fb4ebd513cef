"""The fully async loop on Ray: rollouters that generate without end, and trainers that a driver leads.

A version is a step: the window over the rollouters ends where the weights of its step are about to change, and the next
one begins when all have the new ones. Until its start is confirmed nobody decodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

import profwin
from profwin.demo.async_trainer import FIRST_SECONDS
from profwin.demo.loop import VALIDATE_EVERY, Outcome, StepResult, work_of
from profwin.demo.task import held_out_prompts, rewards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.demo.cluster.group import RollouterGroup, TrainerGroup
    from profwin.demo.options import Options

__all__ = ["FullyAsyncDriver"]


@dataclass
class FullyAsyncDriver:
    """The actors of a run."""

    options: Options
    rollouters: RollouterGroup
    trainers: TrainerGroup

    def run(self, progress: Callable[[StepResult], None]) -> Outcome:
        """Run all steps.

        Args:
            progress: called after each step.
        """
        recorder = self.rollouters.recorder()
        self._sync(recorder, 0, self.trainers.call("weights"), FIRST_SECONDS)
        outcome = Outcome([])
        for step in range(1, self.options.steps + 1):
            groups = self.rollouters.samples()
            given = rewards(groups)
            trained = self.trainers.receive(self.trainers.send("train", step=step, groups=groups, rewards=given))
            part = self._sync(recorder, step, trained["weights"], trained["seconds"])
            result = StepResult(
                step=step,
                selected=self.options.selected(step),
                reward=mean(given),
                rollout=part["rollout"],
                training=trained["seconds"],
                work=work_of({"rollout": part["decoding_steps"]}, trained),
                validation=part["validation"],
            )
            outcome.results.append(result)
            progress(result)
        return outcome

    def _sync(self, recorder: list[Any], version: int, weights: bytes, seconds: float) -> dict[str, Any]:
        part: dict[str, Any] = {"validation": None}
        self.rollouters.pause()
        with profwin.weight_sync(version, engine=recorder):
            part |= self.rollouters.load_weights(weights, version, seconds)
            if version and (version % VALIDATE_EVERY == 0 or version == self.options.steps):
                part["validation"] = mean(rewards(self.rollouters.evaluate(held_out_prompts())))
        self.rollouters.resume()
        return part
