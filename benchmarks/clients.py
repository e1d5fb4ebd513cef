"""Unprofiled steps of TRL's GRPOTrainer: with the plan in place and without it, in one training on one CPU."""

from __future__ import annotations

import importlib
import os
import random
import statistics
import subprocess
import sys
from time import perf_counter_ns, process_time_ns
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ROOT, Plan, estimate, in_fresh_process, ratios, scratch
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    Functions: TypeAlias = Sequence[tuple[Any, str, Any]]

__all__ = ["CLIENTS_PYTHON", "run"]

CLIENTS_PYTHON = "CLIENTS_PYTHON"
"""Environment variable with the interpreter of an environment in which TRL and profwin are installed."""
NAME = "trl"
WHAT = "unprofiled step with / without the plan"
BLOCKS = 100
TOKENS = 32
WARM_UP = 2
WIDTH = 0.02


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Compare unselected steps of a training with steps of the same training without the plan."""
    python = os.environ.get(CLIENTS_PYTHON)
    if not python:
        yield Skipped(NAME, WHAT, f"{CLIENTS_PYTHON} is not set")
        return
    found = subprocess.run([python, "-c", "import trl, profwin"], capture_output=True, check=False, cwd=ROOT)
    if found.returncode:
        yield Skipped(NAME, WHAT, f"TRL or profwin is not installed where {CLIENTS_PYTHON} says")
        return
    answer = in_fresh_process(one_process, python=python, blocks=plan.count(BLOCKS, 2), seed=plan.seed)
    for clock in ("wall", "cpu"):
        times = answer[clock]
        over = estimate(ratios(times["with"], times["without"]), plan.seed)
        added = statistics.median(map(float.__sub__, times["with"], times["without"])) / 2
        step = statistics.median(times["without"]) / 2
        detail = f"a step {step:.1f} ms, added {added:.2f} ms; TRL {answer['version']}"
        yield ratio(
            NAME, f"{WHAT}, {clock} time", over, WIDTH if clock == "wall" else None, rule="within", detail=detail
        )


def one_process(blocks: int, seed: int) -> dict[str, Any]:
    """Measure milliseconds of steps with and without the plan.

    In blocks of four, as those of the demo: one way, the other twice, the first again. All steps begin with the same
    random state and learn nothing, so that they do the same work. Between them the plan's wrappers and what they wrap
    are put in each other's places.
    """
    import torch
    import trl

    import profwin
    from profwin.patch import uninstall

    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "tests" / "clients"))

    with scratch() as places:
        places.output.mkdir(exist_ok=True)
        os.chdir(places.output)
        profwin.configure(**places.settings(steps="1000000", backend="torch"))
        timing = _Timing(blocks, seed, *_functions())
        settings = {"max_steps": len(timing.ways), "learning_rate": 0.0, "logging_strategy": "no"}
        settings["max_completion_length"] = TOKENS  # steps of a tenth of a second: a real one takes many
        _trainer(timing, settings).train()
        timing.turn()
        uninstall()
        profwin.shutdown()
        os.chdir(ROOT)
    return {**timing.times(), "version": trl.__version__}


def _functions() -> tuple[Functions, Functions]:
    """Install the plan, and return what its wrappers are and what was there before."""
    from profwin.patch import install, read_plan

    places: list[tuple[Any, str]] = []
    for patch in read_plan("trl").patches:
        module, _, qualname = patch.target.partition(":")
        path, _, name = qualname.rpartition(".")
        places.append((getattr(importlib.import_module(module), path), name))
    before = [(holder, name, vars(holder)[name]) for holder, name in places]
    install("trl", strict=True)
    return [(holder, name, vars(holder)[name]) for holder, name in places], before


class _Timing:
    """Says before each step which way it goes, and takes its time.

    Attributes:
        ways: of all steps.
    """

    def __init__(self, blocks: int, seed: int, wrappers: Functions = (), originals: Functions = ()) -> None:
        chance = random.Random(seed)
        self.ways: list[str] = []
        for _block in range(blocks + WARM_UP):
            first, second = chance.sample(["with", "without"], 2)
            self.ways += [first, second, second, first]
        self._functions = {"with": wrappers, "without": originals}
        self._taken: list[tuple[int, int]] = []
        self._began: tuple[int, int] | None = None

    def turn(self) -> None:
        """Let a step end, and the next one begin its way; after the last one the wrappers are back."""
        import torch

        now = perf_counter_ns(), process_time_ns()
        if self._began is not None:
            self._taken.append((now[0] - self._began[0], now[1] - self._began[1]))
        over = len(self._taken) == len(self.ways)
        for holder, name, function in self._functions["with" if over else self.ways[len(self._taken)]]:
            setattr(holder, name, function)
        torch.manual_seed(0)
        self._began = perf_counter_ns(), process_time_ns()

    def times(self) -> dict[str, dict[str, list[float]]]:
        """Return the milliseconds of the two steps of each way of each block, by clock and way."""
        found: dict[str, dict[str, list[float]]] = {}
        for index, clock in enumerate(("wall", "cpu")):
            found[clock] = {"with": [], "without": []}
            for start in range(4 * WARM_UP, len(self.ways), 4):
                for way in ("with", "without"):
                    steps = [at for at in range(start, start + 4) if self.ways[at] == way]
                    found[clock][way].append(sum(self._taken[at][index] for at in steps) / 1e6)
        return found


def _trainer(timing: _Timing, settings: dict[str, Any]) -> Any:
    """Make the trainer of the tests, whose steps are timed from before their first callback to the next one's."""
    from trl import GRPOTrainer
    from trl_train import trainer

    class Timed(GRPOTrainer):  # type: ignore[misc]  # TRL has no types here
        def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
            timing.turn()
            return super().get_batch_samples(*args, **kwargs)

    return trainer(settings, _same, Timed)


def _same(completions: list[str], **_others: Any) -> list[float]:
    return [float(len(text)) for text in completions]
