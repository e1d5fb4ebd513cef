"""How long a process waits that asks another one to let a device go, whose engine stops at once."""

from __future__ import annotations

import random
import sys
import time
from time import monotonic_ns
from typing import TYPE_CHECKING

from benchmarks.measure import Plan, in_fresh_process, scratch
from benchmarks.partner import Partner, say, told
from benchmarks.report import Figure, Skipped, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["run"]

NAME = "requests"
ROUNDS = 400
PAUSE = (0.001, 0.006)


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure a stage that wants the device of another process's window: to the engine's stop, and to its entry."""
    answer = in_fresh_process(asking, rounds=plan.count(ROUNDS, 5), seed=plan.seed)
    words = "request to release, engine's stop immediate"
    yield from spread(NAME, f"{words}: to the stop", answer["stop"], "ms", {50: None, 99: None})
    yield from spread(NAME, f"{words}: to the other's entry", answer["entry"], "ms", {50: 0.5, 99: None})


def asking(rounds: int, seed: int) -> dict[str, list[float]]:
    """Enter a stage on a device that another process holds, which never lets go of it by itself.

    Returns:
        Milliseconds from the stage's call, which does everything that is to be done before asking, to the engine's stop
        in the other process, and to the first line of the stage's body.

    Raises:
        RuntimeError: a stage was entered without the engine's stop.
    """
    import profwin

    pause = random.Random(seed)
    found: dict[str, list[float]] = {"stop": [], "entry": []}
    with scratch() as places:
        profwin.configure(**places.settings(steps="every:1", backend="record", role="trainer", strict=True))
        with Partner("benchmarks.requests", rounds) as holder:
            for step in range(1, rounds + 1):
                holder.read()
                time.sleep(pause.uniform(*PAUSE))
                with profwin.training_step(step):
                    asked = monotonic_ns()
                    with profwin.training_stage("stage"):
                        entered = monotonic_ns()
                holder.tell()
                stopped = holder.read()
                if not asked < stopped < entered:
                    raise RuntimeError("the stage was entered, but not because the engine had stopped")
                found["stop"].append((stopped - asked) / 1e6)
                found["entry"].append((entered - asked) / 1e6)
        profwin.shutdown()
    return found


class _Engine:
    revocable = True

    def __init__(self) -> None:
        self.stopped = 0

    def start_profile(self) -> None:
        self.stopped = 0

    def stop_profile(self) -> None:
        self.stopped = self.stopped or monotonic_ns()


def hold(rounds: int) -> None:
    """Be the holder: keep a window open until the other process has had the device and says so."""
    import profwin

    engine = _Engine()
    for step in range(1, rounds + 1):
        with profwin.rollout_window(step, engine=engine):
            say(0)
            if not told():
                return
            say(engine.stopped)


if __name__ == "__main__":
    hold(int(sys.argv[1]))
