"""Unprofiled steps of the demo: the same step with profwin and without, in one process and on the same objects."""

from __future__ import annotations

import contextlib
import itertools
import random
import statistics
from time import perf_counter_ns, process_time_ns
from types import FunctionType
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Plan, estimate, in_fresh_process, ratios, scratch
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["run"]

NAME = "demo"
BLOCKS = 75
IDENTICAL = 3
WARM_UP = 2
WIDTH = 0.02


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Compare unselected steps with steps of the same code without profwin."""
    try:
        import torch  # noqa: F401  # whether it is there
    except ImportError as error:
        yield Skipped(NAME, "unprofiled steps", str(error))
        return
    answer = in_fresh_process(one_process, blocks=plan.count(BLOCKS, 2), seed=plan.seed)
    for clock in ("wall", "cpu"):
        times = answer[clock]
        over = estimate(ratios(times["with"], times["without"]), plan.seed)
        detail = f"a step {statistics.median(times['without']) / 2:.1f} ms; weights bit-identical"
        words = f"unprofiled step with / without profwin, {clock} time"
        yield ratio(NAME, words, over, WIDTH if clock == "wall" else None, rule="same", detail=detail)


class Loop:
    """The demo's engine and trainer in this process, with profwin or without, as is said before each step.

    Both ways use the same objects, so that nothing but profwin differs: not even where a tensor lies in memory.

    Args:
        seed: of the first weights.
    """

    def __init__(self, seed: int) -> None:
        from profwin import rollout_window
        from profwin.demo.engine import Engine
        from profwin.demo.trainer import Trainer

        self.trainer = Trainer(seed)
        self.engine = Engine(seed)
        self.weights = self.trainer.weights()
        self.engine.load_weights(self.weights)
        self._ways: dict[str, tuple[type, Any]] = {
            "with": (Trainer, rollout_window),
            "without": (undecorated(Trainer), lambda _step: contextlib.nullcontext()),
        }

    def step(self, way: str, number: int, questions: list[int]) -> bytes:
        """Generate, reward, train and load weights into the engine: the first ones, so that all steps cost the same.

        Returns:
            The trained weights.
        """
        from profwin.demo.loop import GROUP
        from profwin.demo.task import reward

        self.trainer.__class__, window = self._ways[way]
        with window(number):
            self.engine.begin(questions, GROUP, len(questions))
            while (result := self.engine.decode()) is None:
                pass
        groups = result["groups"]
        rewards = [reward(group["prompt"], answer) for group in groups for answer in group["answers"]]
        trained: bytes = self.trainer.train(number, groups, rewards)["weights"]
        self.engine.load_weights(self.weights)
        return trained


def undecorated(trainer: Any) -> Any:
    """Make a trainer whose stages are the undecorated functions, and which declares no step."""
    stages = {name: each for name, each in vars(trainer).items() if hasattr(each, "__wrapped__")}
    if not stages or "training_step" not in trainer.train.__globals__:
        raise RuntimeError("the demo's trainer has no decorated stage or no training_step to leave out")
    plain: dict[str, Any] = {name: each.__wrapped__ for name, each in stages.items()}
    train = trainer.train
    names = {**train.__globals__, "training_step": lambda *_, **__: contextlib.nullcontext()}
    plain["train"] = FunctionType(train.__code__, names, "train", train.__defaults__, train.__closure__)
    return type("UndecoratedTrainer", (trainer,), plain)


def one_process(blocks: int, seed: int) -> dict[str, dict[str, list[float]]]:
    """Measure milliseconds of steps with and without profwin.

    In blocks of four: one way, the other twice, the first again, so that neither the place in the block nor a
    slow drift counts for one of them; which way is first is drawn. A value is the sum of a block's two steps.
    """
    import torch

    import profwin
    from profwin.demo.loop import PROMPTS
    from profwin.demo.task import prompts

    questions = prompts(PROMPTS, random.Random(seed))
    times: dict[str, dict[str, list[float]]] = {clock: {"with": [], "without": []} for clock in ("wall", "cpu")}
    with scratch() as places:
        profwin.configure(**places.settings(steps="1000000", backend="torch"))
        if _trained("with", seed, questions) != _trained("without", seed, questions):
            raise RuntimeError("the weights with profwin and without are not the same")
        loop = Loop(seed)
        chance = random.Random(seed)
        numbers = itertools.count(1)
        for block in range(-WARM_UP, blocks):
            first, second = chance.sample(["with", "without"], 2)
            wall, cpu = {"with": 0, "without": 0}, {"with": 0, "without": 0}
            for way in (first, second, second, first):
                torch.manual_seed(seed)
                started, used = perf_counter_ns(), process_time_ns()
                loop.step(way, next(numbers), questions)
                cpu[way] += process_time_ns() - used
                wall[way] += perf_counter_ns() - started
            if block >= 0:
                for way in (first, second):
                    times["wall"][way].append(wall[way] / 1e6)
                    times["cpu"][way].append(cpu[way] / 1e6)
        profwin.shutdown()
    return times


def _trained(way: str, seed: int, questions: list[int]) -> bytes:
    """Train a few steps from new and give the weights."""
    import torch

    loop, weights = Loop(seed), b""
    for number in range(1, IDENTICAL + 1):
        torch.manual_seed(number)
        weights = loop.step(way, number, questions)
    return weights
