"""What a patched call costs: profwin off, and on while its step is not selected; beside a closure, wrapt and verl."""

from __future__ import annotations

import math
import statistics
import sys
from time import thread_time_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks.calls import _LOOPS, _target, _timer
from benchmarks.measure import Plan, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.peers import load
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["run"]

NAME = "patch"
CLOSURE = "bare closure"
WRAPT = "bare wrapt wrapper"
ROLES = {
    "stage": "",
    "window": 'step = "value"\n',
    "events": 'before = [{ event = "step_begins", number = "value" }]\n',
    "events of a result": 'after = [{ event = "step_begins", number = "return" }]\n',
    "silence": "",
}
KINDS = ("function", "method", "coroutine")
MOST = 1.2
CALLS = 20000
ROUNDS = 31
PROCESSES = 3


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Compare patched calls of each role and kind with a closure that does nothing, wrapt's wrapper and verl's."""
    reported: set[str] = set()
    for kind in (*KINDS, "C function"):
        values: dict[str, list[float]] = {}
        for process in range(plan.count(PROCESSES, 1)):
            counts = {"calls": plan.count(CALLS, 10), "rounds": plan.count(ROUNDS, 3), "seed": plan.seed + process}
            answer = in_fresh_process(one_process, pinned=True, kind=kind, on=False, **counts)
            for name, measured in answer["nanoseconds"].items():
                values.setdefault(name, []).extend(measured)
            for name, reason in answer["absent"].items():
                if name not in reported and "verl" in name:
                    reported.add(name)
                    yield Skipped(NAME, name, reason)
        yield from _off(kind, values, plan.seed)
    for kind in KINDS:
        counts = {"calls": plan.count(CALLS // 4, 10), "rounds": plan.count(ROUNDS, 3), "seed": plan.seed}
        answer = in_fresh_process(one_process, pinned=True, kind=kind, on=True, **counts)
        closure = statistics.median(answer["nanoseconds"][CLOSURE])
        for role in ROLES:
            median = statistics.median(answer["nanoseconds"][role])
            what = f"on, step not selected, {kind}: {role}"
            yield Figure(NAME, what, median, "ns", detail=f"closure {closure:.0f} ns")


def _off(kind: str, values: dict[str, list[float]], seed: int) -> Iterator[Figure]:
    medians = {name: statistics.median(each) for name, each in values.items()}
    under = WRAPT if kind == "C function" else CLOSURE
    for role in (role for role in ROLES if role in values):
        over = estimate(ratios(values[role], values[under]), seed)
        detail = f"{medians[role]:.0f} ns; {medians[under]:.0f} ns"
        yield ratio(NAME, f"off, {kind}: {role} / {under}", over, MOST, detail=detail)
        for peer in (name for name in values if name.startswith("verl")):
            over = estimate(ratios(values[peer], values[role]), seed)
            detail = f"{medians[peer]:.0f} ns"
            yield ratio(NAME, f"off, {kind}: {peer} / {role}", over, 1.0, rule="least", detail=detail)


def one_process(kind: str, on: bool, calls: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure one kind of callable in this process; nanoseconds a call, less the loop."""
    import profwin

    peers, absent = load(installed=not on)
    native = kind == "C function"
    measured_kind = "function" if native else kind
    targets: dict[str, Any] = {}
    for role in ("stage", "window") if native else ROLES:
        targets[role] = _patched(kind, role)
    if native:
        targets[WRAPT] = _bare_wrapt(math.floor)
    else:
        targets[CLOSURE] = _target(kind, _closure, {})
    for peer in peers:
        if peer.name.startswith("verl") and kind in peer.kinds:
            targets[peer.name] = _target(kind, peer.decorate, peer.owner() if peer.owner else {})
    variants = {name: _timer(_LOOPS[measured_kind], target, calls, thread_time_ns) for name, target in targets.items()}
    variants["loop"] = _timer(_LOOPS["loop"], None, calls, thread_time_ns)
    with scratch() as places:
        if on:
            profwin.configure(**places.settings(steps="1000000", backend="record"))
        measured = paired(variants, rounds, seed)
        profwin.shutdown()
    empty = measured.pop("loop")
    nanoseconds = {
        name: [max(value - nothing, 0.01) for value, nothing in zip(each, empty, strict=True)]
        for name, each in measured.items()
    }
    return {"nanoseconds": nanoseconds, "absent": absent}


def _patched(kind: str, role: str) -> Any:
    """Return a callable of a kind, patched in a module of its own; a method comes as its object."""
    from profwin.patch import install
    from profwin.patch.reading import read_text

    module: Any = ModuleType(f"bench_{role.replace(' ', '_')}")
    sys.modules[module.__name__] = module
    if kind == "C function":
        module.works, name = math.floor, "works"
    else:
        target = _target(kind, lambda function: function, {})
        if kind == "method":
            module.Worker, name = type(target), "Worker.method"
        else:
            module.works, name = target, "works"
    body = ROLES[role].replace('"value"', '"x"') if kind == "C function" else ROLES[role]
    loop = '[[loop]]\nmode = "sync"\ndevices = ["pretend:0"]\n' if "events" in role else ""
    patch = f'[[patch]]\ntarget = "{module.__name__}:{name}"\nrole = "{role.partition(" ")[0]}"\n{body}'
    install(read_text(f'format = 1\nname = "{module.__name__}"\n{loop}{patch}'), strict=True)
    return target if kind == "method" else module.works


def _closure(function: Callable[..., Any]) -> Callable[..., Any]:
    import functools
    import inspect

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def closure_async(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return closure_async

    @functools.wraps(function)
    def closure(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return closure


def _bare_wrapt(function: Callable[..., Any]) -> Callable[..., Any]:
    import wrapt

    def passes(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return wrapped(*args, **kwargs)

    wrapper: Callable[..., Any] = wrapt.FunctionWrapper(function, passes)
    return wrapper
