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

__all__ = ["Rollouter", "main"]

DECODING_STEPS = 20
"""How many decoding steps a batch takes at first, about."""


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
        self._engine = Engine(seed)
        self._generator = random.Random(seed)
        self._validations = validations
        self._finished: deque[list[dict[str, Any]]] = deque()
        self._version = -1
        self._begun = 0
        self._generating = self._asked = False
        self._counted, self._pace, self._due, self._busy = 0, 0.0, 0.0, 0.0

    def run(self) -> None:
        """Generate and serve until a pipe closes.

        Raises:
            EOFError, ConnectionError: a pipe is closed.
        """
        while True:
            if not self._generating and self._version >= max(0, self._begun - OLDEST_SAMPLES["fully_async"]):
                self._engine.begin(prompts(PROMPTS, self._generator), GROUP, PROMPTS)
                self._generating = True
                self._begun += 1
            pause = max(0.0, self._due - time.monotonic()) if self._generating else None
            if wait([self._driver, self._trainer], pause):
                self._serve()
            elif self._generating:
                self._decode()
            if self._asked and self._finished:
                self._trainer.send(self._finished.popleft())
                self._asked = False

    def _serve(self) -> None:
        for pipe in (self._driver, self._trainer):
            if pipe.poll():
                request, *arguments = pipe.recv()
                if request == "weights":
                    self._take(*arguments)
                else:
                    self._asked = True

    def _decode(self) -> None:
        began = time.monotonic()
        self._due = began + self._pace
        result = self._engine.decode()
        self._busy += max(self._pace, time.monotonic() - began)
        if result is not None:
            self._finished.append(result["groups"])
            self._generating = False

    def _take(self, version: int, weights: bytes, seconds: float) -> None:
        decoded, validated = self._engine.decoded - self._counted, None
        with profwin.weight_sync(version):
            self._engine.load_weights(weights, version)
            self._trainer.send(version)
            if version in self._validations:
                validated = self._engine.evaluate(held_out_prompts())
        if version:
            part = {"step": version, "decoding_steps": decoded, "rollout": self._busy, "validated": validated}
            self._driver.send((REPORT, "ok", part))
        self._version, self._counted, self._busy = version, self._engine.decoded, 0.0
        self._pace = seconds / DECODING_STEPS


def main() -> None:
    """Serve until the driver's pipe closes."""
    (settings, driver), trainer = connect(), connect_peer()
    try:
        Rollouter(driver, trainer, **settings).run()
    except (EOFError, ConnectionError):
        await_end(driver)


if __name__ == "__main__":
    main()
