"""The rollouter of the fully async loop: an engine that generates without end, and records itself by profwin.

It keeps finished batches until the trainer asks for one, and takes new weights between two decoding steps: answers that
are half done then go on with them. Batch *n* is for step *n*, whose training begins with version *n* - 1; it is begun
only when the weights are at most so far behind that as the loop allows. That bounds the queue too.

It does not decode faster than the trainer trains, as the two are balanced in a real loop: so most syncs find a batch
half done, on a fast machine and on a busy one.
"""

from __future__ import annotations

import random
import time
from collections import deque
from multiprocessing.connection import wait

import profwin
from profwin.demo.child import REPORT, await_end, connect, connect_peer
from profwin.demo.engine import Engine
from profwin.demo.loop import GROUP, PROMPTS
from profwin.demo.options import OLDEST_SAMPLES
from profwin.demo.task import held_out_prompts, prompts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from typing import Any

__all__ = ["Generation", "Rollouter", "main"]

DECODING_STEPS = 20
"""How many decoding steps a batch takes at first, about."""


class Generation:
    """Batches for the steps, generated one after the other as far ahead as the loop allows.

    Args:
        seed: of prompts and sampling.
        count: how many prompts a batch has.

    Attributes:
        engine: what generates.
        finished: batches that nobody has taken yet, oldest first.
    """

    def __init__(self, seed: int, count: int = PROMPTS) -> None:
        self.engine = Engine(seed)
        self.finished: deque[list[dict[str, Any]]] = deque()
        self._generator = random.Random(seed)
        self._count = count
        self._version = -1
        self._begun = 0
        self._generating = False
        self._counted, self._pace, self._due, self._busy = 0, 0.0, 0.0, 0.0

    def pause(self) -> float | None:
        """Return in how many seconds to decode next; None: not before there are newer weights."""
        if not self._generating and self._version >= max(0, self._begun - OLDEST_SAMPLES["fully_async"]):
            self.engine.begin(prompts(self._count, self._generator), GROUP, self._count)
            self._generating = True
            self._begun += 1
        return max(0.0, self._due - time.monotonic()) if self._generating else None

    def decode(self) -> None:
        """Extend the answers of the batch on its way by one token."""
        began = time.monotonic()
        self._due = began + self._pace
        result = self.engine.decode()
        self._busy += max(self._pace, time.monotonic() - began)
        if result is not None:
            self.finished.append(result["groups"])
            self._generating = False

    def take(self, version: int, weights: bytes, seconds: float) -> dict[str, Any]:
        """Go on with new weights.

        Args:
            version: of the weights.
            weights: of the policy.
            seconds: how long training takes, as far as known.

        Returns:
            What was done with the weights before: ``decoding_steps``, and the seconds of ``rollout``.
        """
        part = {"decoding_steps": self.engine.decoded - self._counted, "rollout": self._busy}
        self.engine.load_weights(weights, version)
        self._version, self._counted, self._busy = version, self.engine.decoded, 0.0
        self._pace = seconds / DECODING_STEPS
        return part


class Rollouter:
    """Generate batches and serve the trainer.

    Only ever sends to a trainer that waits for just that, so that never both sides wait for the other to read.

    Args:
        driver: the pipe to the driver; when it closes, the process ends.
        trainer: the pipe to the trainer.
        seed: of prompts and sampling.
        validations: after which steps the new weights are validated.
    """

    def __init__(self, driver: Connection, trainer: Connection, seed: int, validations: list[int]) -> None:
        self._driver, self._trainer = driver, trainer
        self._generation = Generation(seed)
        self._validations = validations
        self._asked = False

    def run(self) -> None:
        """Generate and serve until a pipe closes.

        Raises:
            EOFError, ConnectionError: a pipe is closed.
        """
        while True:
            pause = self._generation.pause()
            if wait([self._driver, self._trainer], pause):
                self._serve()
            elif pause is not None:
                self._generation.decode()
            if self._asked and self._generation.finished:
                self._trainer.send(self._generation.finished.popleft())
                self._asked = False

    def _serve(self) -> None:
        for pipe in (self._driver, self._trainer):
            if pipe.poll():
                request, *arguments = pipe.recv()
                if request == "weights":
                    self._take(*arguments)
                else:
                    self._asked = True

    def _take(self, version: int, weights: bytes, seconds: float) -> None:
        validated = None
        with profwin.weight_sync(version):
            part = self._generation.take(version, weights, seconds)
            self._trainer.send(version)
            if version in self._validations:
                validated = self._generation.engine.evaluate(held_out_prompts())
        if version:
            self._driver.send((REPORT, "ok", {"step": version, "validated": validated, **part}))


def main() -> None:
    """Serve until the driver's pipe closes."""
    (settings, driver), trainer = connect(), connect_peer()
    try:
        Rollouter(driver, trainer, **settings).run()
    except (EOFError, ConnectionError):
        await_end(driver)


if __name__ == "__main__":
    main()
