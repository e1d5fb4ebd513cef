"""What a type checker must refuse: each line here is an error of the named kind, and an error if it is none.

mypy runs with warn_unused_ignores, so an ignore that hides nothing fails the check. Checked, never run.
"""

from __future__ import annotations

from api import Worker, bare, called, generate, waits

import profwin
from profwin import Loop, every, rollout_window, span, training_stage, training_step


def parameters(worker: Worker) -> None:
    """Parameters of decorated callables are checked."""
    bare("no")  # type: ignore[arg-type]  # a is an int
    bare(1, "x")  # type: ignore[call-arg]  # b is keyword-only
    bare(1, c=2)  # type: ignore[call-arg]  # there is no c
    called()  # type: ignore[call-arg]  # a is missing
    generate(["a"])  # type: ignore[call-arg]  # step is missing
    worker.method("no")  # type: ignore[arg-type]  # a is an int
    Worker.static_inside("no")  # type: ignore[arg-type]  # a is an int
    Worker.class_outside("no")  # type: ignore[arg-type]  # a is an int


async def results() -> None:
    """Results of decorated callables are checked."""
    text: str = bare(1)  # type: ignore[assignment]  # it returns a float
    number: int = await waits(1)  # type: ignore[assignment]  # it awaits to a str
    _ = text, number


def own_parameters() -> None:
    """The parameters of profwin's own functions are checked."""
    training_stage(5)  # type: ignore[call-overload]  # neither a name nor a callable
    training_stage("x", rank=1)  # type: ignore[call-overload]  # there is no rank
    training_stage(devices=[0])  # type: ignore[list-item]  # device names are strings
    rollout_window("1")  # type: ignore[arg-type]  # a step is a number
    training_step(None)  # type: ignore[arg-type]  # a step is a number
    span()  # type: ignore[call-arg]  # a span has a name
    every("10")  # type: ignore[arg-type]  # an interval is a number
    Loop()  # type: ignore[call-arg]  # a loop has a mode
    profwin.configure(step="2")  # type: ignore[call-arg]  # the setting is called steps
    profwin.configure(wait_budget="30")  # type: ignore[arg-type]  # seconds are a number
    profwin.no_such_name()  # type: ignore[attr-defined]  # names are checked although they are loaded late
