"""What a decorated call costs: profwin off, the step not selected, recording; on three kinds of callable."""

from __future__ import annotations

import itertools
import statistics
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Plan, Scratch, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.peers import BARE, HAND, load
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Timed = Callable[[Any, int, Callable[[], int]], int]

__all__ = ["run"]

NAME = "calls"
OWN = "@training_stage"
KINDS = ("function", "method", "coroutine")
TARGETS = {"off": 1.1, "unselected": 1.4, "unselected, step from the board": 1.4}
CALLS = {"off": 20000, "unselected": 20000, "unselected, step from the board": 20000, "recording": 200}
ROUNDS = 31
PROCESSES = 3


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Compare the decorated call in each state with the hand-written closure and every peer.

    Each state is measured in fresh processes of its own, because a process that was once configured is not
    the same as one that never was; the closure is measured again in each, in the same rounds.
    """
    reported: set[str] = set()
    for state, calls in CALLS.items():
        for kind in KINDS:
            nanoseconds: dict[str, list[float]] = {}
            switchable: list[str] = []
            for process in range(plan.count(PROCESSES, 1)):
                answer = in_fresh_process(
                    one_process,
                    pinned=True,
                    state=state,
                    kind=kind,
                    calls=plan.count(calls, 10),
                    rounds=plan.count(ROUNDS, 3),
                    seed=plan.seed + process,
                )
                switchable = answer["switchable"]
                for name, values in answer["nanoseconds"].items():
                    nanoseconds.setdefault(name, []).extend(values)
                for name, reason in answer["absent"].items():
                    if name not in reported:
                        reported.add(name)
                        yield Skipped(NAME, name, reason)
            yield from _figures(state, kind, nanoseconds, switchable, plan.seed)


def _figures(
    state: str, kind: str, nanoseconds: dict[str, list[float]], switchable: list[str], seed: int
) -> Iterator[Figure]:
    own, hand = nanoseconds[OWN], nanoseconds[HAND]
    medians = {name: statistics.median(values) for name, values in nanoseconds.items()}
    if state == "recording":
        count = len(own)
        yield Figure(NAME, f"recording, {kind}", medians[OWN] / 1000, "us", count=count, detail="a call, whole")
        return
    detail = f"{medians[OWN]:.0f} ns; closure {medians[HAND]:.0f}, bare {medians[BARE]:.0f} ns"
    over = estimate(ratios(own, hand), seed)
    yield ratio(NAME, f"{state}, {kind}: profwin / closure", over, TARGETS[state], detail=detail)
    if state != "off":
        return
    for name, values in nanoseconds.items():
        if name in (OWN, HAND, BARE):
            continue
        over = estimate(ratios(values, own), seed)
        note = "" if name in switchable else ", cannot be switched on later"
        target = 1.0 if name in switchable else None
        detail = f"{medians[name]:.0f} ns{note}"
        yield ratio(NAME, f"off, {kind}: {name} / profwin", over, target, rule="least", detail=detail)


def one_process(state: str, kind: str, calls: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure one state and one kind of callable in this process; nanoseconds a call, less the loop."""
    from profwin import training_stage

    peers, absent = load(installed=state == "off")
    decorators: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {OWN: (training_stage, {})}
    for peer in peers:
        if kind in peer.kinds:
            decorators[peer.name] = (peer.decorate, peer.owner() if peer.owner else {})
    with scratch() as places, _state(state, places):
        loop = _LOOPS[kind]
        # A call that records writes files and may wait; the others only compute, and their time must not hold that of
        # other programs on the same CPU.
        clock = perf_counter_ns if state == "recording" else thread_time_ns
        variants = {
            name: _timer(loop, _target(kind, decorate, attributes), calls, clock)
            for name, (decorate, attributes) in decorators.items()
        }
        variants["loop"] = _timer(_LOOPS["loop"], None, calls, clock)
        measured = paired(variants, rounds, seed)
    empty = measured.pop("loop")
    nanoseconds = {
        name: [max(value - nothing, 0.01) for value, nothing in zip(values, empty, strict=True)]
        for name, values in measured.items()
    }
    return {
        "nanoseconds": nanoseconds,
        "absent": absent,
        "switchable": [peer.name for peer in peers if peer.switchable],
    }


def _state(state: str, places: Scratch) -> Any:
    """Put this process into a state for the length of a ``with`` block."""
    import contextlib

    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        if state == "off":
            yield
            return
        import profwin

        chosen = "every:1" if state == "recording" else "1000000"
        profwin.configure(**places.settings(steps=chosen, backend="record"))
        inside = contextlib.nullcontext() if "board" in state else profwin.training_step(1)
        with inside:
            yield
        profwin.shutdown()

    return entered()


def _target(kind: str, decorate: Callable[..., Any], attributes: dict[str, Any]) -> Any:
    """Decorate a fresh callable of a kind with the smallest body; a method comes as its object."""
    if kind == "coroutine":

        async def waits(value: int) -> int:
            return value

        return decorate(waits)

    def works(value: int) -> int:
        return value

    if kind == "function":
        return decorate(works)

    class Worker:
        """Owner of the method."""

        @decorate
        def method(self, value: int) -> int:
            """Do next to nothing."""
            return value

    worker = Worker()
    worker.__dict__.update(attributes)
    return worker


def _timer(loop: Timed, target: Any, calls: int, clock: Callable[[], int]) -> Callable[[], float]:
    return lambda: loop(target, calls, clock) / calls


def _empty(target: None, calls: int, clock: Callable[[], int]) -> int:
    turns = itertools.repeat(None, calls)
    start = clock()
    for _ in turns:
        pass
    return clock() - start


def _functions(target: Any, calls: int, clock: Callable[[], int]) -> int:
    turns = itertools.repeat(None, calls)
    start = clock()
    for _ in turns:
        target(1)
    return clock() - start


def _methods(target: Any, calls: int, clock: Callable[[], int]) -> int:
    turns = itertools.repeat(None, calls)
    start = clock()
    for _ in turns:
        target.method(1)
    return clock() - start


def _coroutines(target: Any, calls: int, clock: Callable[[], int]) -> int:
    turns = itertools.repeat(None, calls)
    start = clock()
    for _ in turns:
        try:
            target(1).send(None)
        except StopIteration:  # so a coroutine returns
            pass
    return clock() - start


_LOOPS: dict[str, Timed] = {
    "loop": _empty,
    "function": _functions,
    "method": _methods,
    "coroutine": _coroutines,
}
