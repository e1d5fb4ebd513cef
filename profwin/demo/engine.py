"""The engine process of the demo: an inference engine with its own copy of the weights and its own profiler.

It knows nothing of profwin: its profiler is a plain ``torch.profiler`` behind two requests, as inference
engines have it. One thread does all the work, since a torch profiler sees the thread that started it. The fully async
loop's rollouter has the same engine inside it, without that profiler.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import shutil
import time

import torch

from profwin.demo.child import answer, connect
from profwin.demo.policy import Policy, unpack
from profwin.demo.scheduler import DECODING, Scheduler
from profwin.demo.task import END

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from typing import Any

    from profwin.demo.scheduler import Sequence

__all__ = ["Engine", "main"]

SLOTS = 512
SLEEP = 0.1
"""Seconds that going to sleep takes at least. Real engines take longer; without a device lock, a
trainer would start to record within this time, and the verification would see it."""


class Engine:
    """Generate answers, hold weights, record a profile on request.

    Args:
        seed: of the sampling.

    Attributes:
        running: whether there may be something to decode.
        decoded: how many decoding steps there were.
    """

    def __init__(self, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.scheduler = Scheduler(SLOTS)
        self.running = False
        self.decoded = 0
        self._policy = Policy().eval()
        self._version = 0
        self._wanted = 0
        self._before = 0
        self._profiler: torch.profiler.profile | None = None
        self._target = ""
        _warm_up_profiler()

    def load_weights(self, weights: bytes, version: int = 0) -> None:
        """Take over the trainer's weights, and their version."""
        self._version = version
        unpack(self._policy, weights)

    def begin(self, prompts: list[int], group: int, wanted: int) -> None:
        """Queue ``group`` answers to each prompt and start to decode; what is unfinished goes on too."""
        self.scheduler.submit(prompts, group)
        self._wanted, self._before, self.running = wanted, self.decoded, True

    def decode(self) -> dict[str, Any] | None:
        """Extend the running sequences by one token.

        Returns:
            What was wanted, once it is there; decoding of the rest goes on. None before and after.
        """
        if batch := self.scheduler.batch():
            # In a trace the name says which weights it was, apart from what profwin says.
            with torch.profiler.record_function(f"{DECODING} {self._version}"):
                self._extend(batch, greedy=False)
            self.decoded += 1
        else:
            self.running = False
        if not self._wanted or self.scheduler.finished_groups() < self._wanted:
            return None
        groups, self._wanted = self.scheduler.take(self._wanted), 0
        return {"groups": groups, "decoding_steps": self.decoded - self._before}

    def abort(self) -> dict[str, int]:
        """Stop decoding, keep what is unfinished; return how much that is, and the decoding steps so far."""
        self.running = False
        groups, tokens = self.scheduler.carried()
        return {"groups": groups, "tokens": tokens, "decoding_steps": self.decoded - self._before}

    def evaluate(self, prompts: list[int]) -> list[dict[str, Any]]:
        """Return the likeliest answer to each prompt, apart from whatever else is on its way."""
        scheduler = Scheduler(SLOTS)
        scheduler.submit(prompts, 1)
        while batch := scheduler.batch():
            self._extend(batch, greedy=True)
        return scheduler.take(len(prompts))

    def sleep(self) -> None:
        """Give the device's memory back; takes a moment."""
        started = time.monotonic()
        gc.collect()
        time.sleep(max(0.0, SLEEP - (time.monotonic() - started)))

    def start_profile(self, directory: str, profile_prefix: str, metadata: dict[str, Any]) -> None:
        """Start recording; the trace is going to be ``<directory>/<profile_prefix>.pt.trace.json.gz``."""
        if self._profiler is not None:
            raise RuntimeError("the profiler is running already")
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        profiler.start()
        # Accepted only between start and stop; before, torch drops it with a warning.
        profiler.add_metadata_json("profwin", json.dumps(metadata))
        self._profiler, self._target = profiler, os.path.join(directory, profile_prefix)

    def stop_profile(self) -> str:
        """Stop recording, write the trace and return its path."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            raise RuntimeError("the profiler is not running")
        profiler.stop()
        os.makedirs(os.path.dirname(self._target), exist_ok=True)
        return _export(profiler, self._target)

    def _extend(self, batch: list[Sequence], *, greedy: bool) -> None:
        longest = max(len(sequence.tokens) for sequence in batch)
        padded = [sequence.tokens + [END] * (longest - len(sequence.tokens)) for sequence in batch]
        last = torch.tensor([len(sequence.tokens) - 1 for sequence in batch])
        with torch.inference_mode():
            logits = self._policy(torch.tensor(padded))[torch.arange(len(batch)), last]
            drawn = logits.argmax(-1) if greedy else torch.multinomial(logits.softmax(-1), 1)[:, 0]
        for sequence, token in zip(batch, drawn.tolist(), strict=True):
            sequence.tokens.append(token)
            sequence.versions.add(self._version)


def _warm_up_profiler() -> None:
    # The first start in a process takes about as long as a whole window here, and would be counted as part of
    # it.
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        pass


def _export(profiler: torch.profiler.profile, target: str) -> str:
    # torch's own compressed export is four times as slow as its plain one with one compression after it
    # (measured).
    plain, packed, final = f"{target}.writing.json", f"{target}.writing.gz", f"{target}.pt.trace.json.gz"
    profiler.export_chrome_trace(plain)
    with open(plain, "rb") as source, gzip.open(packed, "wb", compresslevel=6) as sink:
        shutil.copyfileobj(source, sink)
    os.unlink(plain)
    os.rename(packed, final)
    return final


def _serve(engine: Engine, pipe: Connection) -> None:
    waiting = 0
    while True:
        if engine.running and not pipe.poll(0):
            if (result := engine.decode()) is not None:
                pipe.send((waiting, "ok", result))
            continue
        number, request, arguments = pipe.recv()
        if request == "generate":
            waiting = number
            engine.begin(**arguments)
        else:
            answer(pipe, engine, number, request, arguments)


def main() -> None:
    """Serve the driver until its pipe closes, then end at once, whatever is being recorded."""
    settings, pipe = connect()
    try:
        _serve(Engine(**settings), pipe)
    except (EOFError, OSError):
        # An active profiler makes the interpreter crash in its ordinary exit.
        os._exit(0)


if __name__ == "__main__":
    main()
