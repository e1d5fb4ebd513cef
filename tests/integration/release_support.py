"""Engines and holders for tests in which one process of a run asks another one to let go of a device."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from core_support import Child

import profwin

if TYPE_CHECKING:
    import os

PROMPT = 20.0
"""Seconds; far above what a request takes, far below the wait budget where none is given."""


class Engine:
    """An engine that says what it can do, and notes what was done with it and in which thread.

    Args:
        devices: names of the devices it records on.
        revocable: whether its stop may be called at any time.
        seconds: how long its stop takes.
        faults: how many of its stops fail.
        process_ids: the processes that record.
        patience: seconds for which a stop waits until ``let_go`` is set; None: it does not.
    """

    def __init__(
        self,
        devices: str = "pretend:card",
        *,
        revocable: bool = True,
        seconds: float = 0.0,
        faults: int = 0,
        process_ids: tuple[int, ...] = (),
        patience: float | None = None,
    ) -> None:
        self.devices, self.revocable, self.process_ids = devices, revocable, process_ids
        self.seconds, self.faults, self.patience = seconds, faults, patience
        self.acts: list[str] = []
        self.threads: list[str] = []
        self.stopping, self.let_go = threading.Event(), threading.Event()

    def start_profile(self) -> None:
        """Note it."""
        self.acts.append("start")

    def stop_profile(self) -> None:
        """Take as long as told, and fail if told."""
        self.acts.append("stop")
        self.threads.append(threading.current_thread().name)
        self.stopping.set()
        if self.patience is not None:
            self.let_go.wait(self.patience)
        time.sleep(self.seconds)
        if self.faults:
            self.faults -= 1
            raise RuntimeError("no answer")


HOLDER = """
from release_support import Engine
engine = {engine}
signal.signal(signal.SIGUSR1, lambda *_: engine.let_go.set())
for step in {steps}:
    with {block}:
        say("inside")
        hear()
        say(window.recorded)
    say("left")
    hear()
say(json.dumps([engine.acts, engine.threads] if engine else []))
profwin.shutdown()
"""


class Holder(Child):
    """Another process of this run, inside a window; what it says: "inside", whether it is recorded, "left", and acts.

    It has said "inside" of its first step already. For each of its steps it is spoken to once inside and once after.
    SIGUSR1 lets go a stop of its engine's that has patience.

    Args:
        engine: how its engine is made.
        steps: of its windows.
        window: how a window is made.
        more: settings that differ from this process's.
    """

    def __init__(
        self,
        engine: str = "Engine()",
        *,
        steps: tuple[int, ...] = (1,),
        window: str = "rollout_window(step, engine=engine)",
        **more: str,
    ) -> None:
        script = HOLDER.format(engine=engine, steps=steps, block=f"{window} as window")
        super().__init__(script, **{**profwin.environment(), **more})
        try:
            assert self.hear() == "inside"
        except BaseException:
            self.__exit__()
            raise

    def leave(self) -> bool:
        """Let it leave its window; return whether that was recorded until then."""
        self.say()
        recorded = self.hear() == "True"
        assert self.hear() == "left"
        self.say()
        return recorded

    def acts(self) -> list[Any]:
        """Wait for its end, after its last window; return what was done with its engine, and in which threads."""
        line = self.hear()
        status, _, errors = self.finish()
        assert status == 0, errors
        return list(json.loads(line))


def configure(output: os.PathLike[str], **more: Any) -> None:
    """Configure this process, which begins the run that the others belong to."""
    settings = {"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "mine"}
    profwin.configure(**{**settings, **more})
