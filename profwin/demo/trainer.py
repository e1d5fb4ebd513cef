"""The training process of the demo: four stages of GRPO, each a decorated method.

The only trace of profwin in it are the decorators and the ``with`` that says which step is trained. It is
configured by the environment that the driver gave it.
"""

from __future__ import annotations

import copy
import os
import time

import torch

from profwin import training_stage, training_step
from profwin.demo.child import answer, connect
from profwin.demo.policy import Policy, clipped_loss, group_advantages, packed, token_log_probs, unpack
from profwin.demo.task import END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Trainer", "main"]

LEARNING_RATE = 0.006
EPOCHS = 6
MINIBATCH = 128
CLIP = 0.2
KL_WEIGHT = 0.01
LARGEST_GRADIENT = 1.0

Batch = dict[str, torch.Tensor]


class Trainer:
    """Hold the policy, the reference and the optimizer.

    Attributes:
        version: of the weights: how many steps were trained.

    Args:
        seed: of the first weights and of the order of minibatches.
        second_profiler: where the trace of a profiler of this process's own, around the reference's stage, is
            written; None for no such profiler. It is a misuse, to be shown.
    """

    def __init__(self, seed: int, second_profiler: str | None = None) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.policy = Policy()
        self.reference = copy.deepcopy(self.policy)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=LEARNING_RATE)
        self.version = 0
        self._second_profiler = second_profiler
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            # The first start in a process takes long, and would be counted as part of the first stage.
            pass

    def weights(self) -> bytes:
        """Return the policy's weights."""
        return packed(self.policy)

    def load_weights(self, weights: bytes) -> None:
        """Go on with other weights of the same version: those on which several trainers have agreed."""
        unpack(self.policy, weights)

    def train(self, step: int, groups: list[dict[str, Any]], rewards: list[float]) -> dict[str, Any]:
        """Train on one step's samples.

        Args:
            step: the loop's step.
            groups: the engine's results.
            rewards: of every answer, in the groups' order.

        Returns:
            The new ``weights``, the last minibatch's ``loss``, how many optimizer ``updates`` were made, with which
            weight versions the samples were ``generated_with``, ``seconds``, and how many ``trainers`` they are of: 1.
        """
        started = time.monotonic()
        batch = _tensors(groups, rewards)
        versions = sorted({version for group in groups for version in group["versions"]})
        with training_step(step, weight_version=self.version, generated_with=versions):
            batch["old"] = self.old_log_prob(batch)
            batch["reference"] = self._with_second_profiler(step, self.ref_log_prob, batch)
            batch["advantages"] = self.advantages(batch, len(groups[0]["answers"]))
            loss, updates = self.actor_update(batch)
        self.version += 1
        return {
            "weights": self.weights(),
            "loss": loss,
            "updates": updates,
            "generated_with": versions,
            "seconds": time.monotonic() - started,
            "trainers": 1,
        }

    @training_stage
    def old_log_prob(self, batch: Batch) -> torch.Tensor:
        """Return the log-probabilities of the samples under the weights that this step begins with."""
        with torch.no_grad():
            return token_log_probs(self.policy, batch["tokens"])

    @training_stage
    def ref_log_prob(self, batch: Batch) -> torch.Tensor:
        """Return the log-probabilities of the samples under the first weights."""
        with torch.no_grad():
            return token_log_probs(self.reference, batch["tokens"])

    @training_stage
    def advantages(self, batch: Batch, group: int) -> torch.Tensor:
        """Return each sample's advantage over its group."""
        return group_advantages(batch["rewards"], group)

    @training_stage
    def actor_update(self, batch: Batch) -> tuple[float, int]:
        """Update the policy; return the last loss and the number of updates."""
        loss, updates = torch.tensor(0.0), 0
        for _ in range(EPOCHS):
            for chosen in torch.split(torch.randperm(len(batch["tokens"])), MINIBATCH):
                loss = clipped_loss(
                    token_log_probs(self.policy, batch["tokens"][chosen]),
                    batch["old"][chosen],
                    batch["reference"][chosen],
                    batch["advantages"][chosen],
                    batch["mask"][chosen],
                    clip=CLIP,
                    kl_weight=KL_WEIGHT,
                )
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call] # torch leaves it untyped
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), LARGEST_GRADIENT)
                self.optimizer.step()
                updates += 1
        return float(loss.detach()), updates

    def _with_second_profiler(self, step: int, stage: Callable[[Batch], torch.Tensor], batch: Batch) -> torch.Tensor:
        if self._second_profiler is None:
            return stage(batch)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as own:
            result = stage(batch)
        os.makedirs(self._second_profiler, exist_ok=True)
        own.export_chrome_trace(os.path.join(self._second_profiler, f"step_{step:06}.json"))
        return result


def _tensors(groups: list[dict[str, Any]], rewards: list[float]) -> Batch:
    samples = [(group["prompt"], answer) for group in groups for answer in group["answers"]]
    longest = max(len(answer) for _prompt, answer in samples)
    tokens = [[prompt, *answer, *[END] * (longest - len(answer))] for prompt, answer in samples]
    mask = [[1.0] * len(answer) + [0.0] * (longest - len(answer)) for _prompt, answer in samples]
    return {"tokens": torch.tensor(tokens), "mask": torch.tensor(mask), "rewards": torch.tensor(rewards)}


def main() -> None:
    """Serve the driver until its pipe closes."""
    settings, pipe = connect()
    try:
        trainer = Trainer(**settings)
        while True:
            answer(pipe, trainer, *pipe.recv())
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    main()
