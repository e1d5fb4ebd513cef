"""What windows over many Ray actors cost, against the same calls to them, and a projection to thousands of devices."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import Plan, estimate, in_parts, ratios
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["Costs", "costs", "project", "run"]

NAME = "ray"
ROUNDS = {1: 40, 4: 24, 16: 16, 64: 8}
RAYLETS = 8
QUICK = 4  # actors, and half as many raylets
TARGET = 1.3
PROJECTED = (1000, 4000)


class Costs(NamedTuple):
    """What a fan-out costs.

    Attributes:
        alone: milliseconds of a fan-out to one actor.
        each: milliseconds of processor time in the driver's process for each further actor.
    """

    alone: float
    each: float


def project(costs: Costs, devices: int) -> float:
    """Return the milliseconds of a fan-out to so many actors, each of which has a processor of its own.

    They work side by side, so that counts once. The driver's messages count one after the other, though some of Ray's
    threads work side by side; the network between machines does not count.
    """
    return costs.alone + costs.each * (devices - 1)


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure the curve over numbers of actors, for calls that do nothing and for torch's profiler."""
    if find_spec("ray") is None:
        yield Skipped(NAME, "windows over actors", "ray is not installed")
        return
    from benchmarks.ray_actors import fan_out

    quick = plan.scale < 1.0
    rounds = {str(size): plan.count(count, 5) for size, count in ROUNDS.items() if size <= QUICK or not quick}
    raylets = max(QUICK // 2, 1) if quick else RAYLETS
    measured: dict[str, dict[str, dict[str, list[float]]]] = {}
    failure: RuntimeError | None = None
    try:
        for part in in_parts(fan_out, raylets=raylets, rounds=rounds, seed=plan.seed):
            print(f"{NAME}: {part['said']}", file=sys.stderr, flush=True)
            if "found" in part:
                measured.setdefault(part["profiler"], {})[part["size"]] = part["found"]
            yield from _figures(part, plan.seed)
    except RuntimeError as error:
        failure = error
    for profiler, sizes in measured.items():
        if len(sizes) > 1:
            yield from _projections(profiler, *(costs(sizes, name) for name in ("window", "bare")))
    if failure is not None:
        raise failure


def _figures(part: dict[str, Any], seed: int) -> Iterator[Figure | Skipped]:
    """Give the figures of one part; there are parts that have none."""
    from benchmarks.ray_actors import GENERATION

    if "found" in part:
        found, profiler = part["found"], part["profiler"]
        over = estimate(ratios(found["window"], found["bare"]), seed)
        detail = f"{median(found['window']):.4g} ms, bare {median(found['bare']):.4g} ms"
        words = f"{profiler}, {_actors(part['size'])}: window / bare fan-out"
        yield ratio(NAME, words, over, TARGET if profiler == GENERATION else None, detail=detail)
    elif "unselected" in part:
        kept, anew = (value / 1e3 for value in part["unselected"])
        words = f"window over {_actors(part['size'])}, step not selected: no call of Ray's"
        yield Figure(NAME, words, kept, "us", detail=f"{anew:.3g} us where the step calls `profwin.ray.actors`, too")
    elif "skipped" in part:
        yield Skipped(NAME, "torch.profiler in actors", part["skipped"])


def _projections(profiler: str, window: Costs, bare: Costs) -> Iterator[Figure]:
    for devices in PROJECTED:
        over, under = project(window, devices), project(bare, devices)
        each = (
            f"{window.alone:.3g} and {bare.alone:.3g} ms for one, {window.each:.3g} and {bare.each:.3g} for each more"
        )
        words = f"PROJECTION, {profiler}, {devices} actors: window / bare fan-out"
        yield Figure(NAME, words, over / under, "x", detail=f"{over:.4g} ms, bare {under:.4g} ms; {each}")


def _actors(size: str) -> str:
    return "1 actor" if size == "1" else f"{size} actors"


def costs(sizes: dict[str, dict[str, list[float]]], name: str) -> Costs:
    """Return what was measured of a fan-out's costs.

    Args:
        sizes: for each number of actors the milliseconds, and those of the driver's processors.
        name: ``"bare"`` or ``"window"``.
    """
    few, many = min(sizes, key=int), max(sizes, key=int)
    spent = {size: median(sizes[size][f"{name} processor"]) for size in (few, many)}
    return Costs(median(sizes[few][name]), (spent[many] - spent[few]) / (int(many) - int(few)))
