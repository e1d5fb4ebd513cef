"""The trainer of the fully async loop: takes batches from the rollouter and sends it the weights of every step."""

from __future__ import annotations

from statistics import mean

import profwin
from profwin.demo.child import REPORT, await_end, connect, connect_peer
from profwin.demo.task import rewards
from profwin.demo.trainer import Trainer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["main"]

FIRST_SECONDS = 0.5
"""How long training on a batch is supposed to take before that is known; the rollouter goes by it."""


def _run(driver: Connection, rollouter: Connection, trainer: Trainer, steps: int) -> None:
    _sync(rollouter, 0, trainer.weights(), FIRST_SECONDS)
    for step in range(1, steps + 1):
        rollouter.send(("samples",))
        groups = rollouter.recv()
        given = rewards(groups)
        trained = trainer.train(step, groups, given)
        _sync(rollouter, step, trained["weights"], trained["seconds"])
        part = {
            "step": step,
            "reward": mean(given),
            "training": trained["seconds"],
            "updates": trained["updates"],
            "generated_with": trained["generated_with"],
        }
        driver.send((REPORT, "ok", part))


def _sync(rollouter: Connection, version: int, weights: bytes, seconds: float) -> None:
    with profwin.weight_sync(version, window=False):
        rollouter.send(("weights", version, weights, seconds))
        rollouter.recv()


def main() -> None:
    """Train all steps, then wait for the end of the run."""
    (settings, driver), rollouter = connect(), connect_peer()
    try:
        _run(driver, rollouter, Trainer(settings["seed"]), settings["steps"])
    except (EOFError, ConnectionError):
        pass  # the other one is gone, or the driver
    await_end(driver)


if __name__ == "__main__":
    main()
