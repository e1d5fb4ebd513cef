"""What a stage costs on a device of its own while windows are open on other devices."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING

from benchmarks.measure import Plan, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.partner import Partner, say, told
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["run"]

NAME = "neighbours"
WINDOWS = 8
CALLS = 60
ROUNDS = 60
PROCESSES = 3
TOLERANCE = 0.1
OTHERS = {
    "processes": f"{WINDOWS} windows of other processes open",
    "engines": f"{WINDOWS} engines of this process recording",
}
PARTS = {"entry": "a recorded stage's entry", "call": "a recorded stage, whole"}


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure a stage beside windows on other devices, against the same stage just after they were closed."""
    measured: dict[str, list[float]] = {}
    for process in range(plan.count(PROCESSES, 1)):
        answer = in_fresh_process(
            one_process, calls=plan.count(CALLS, 3), rounds=plan.count(ROUNDS, 3), seed=plan.seed + process
        )
        for name, values in answer.items():
            measured.setdefault(name, []).extend(values)
    for part, words in PARTS.items():
        for others, beside in OTHERS.items():
            found, alone = measured[f"{part} {others} open"], measured[f"{part} {others} closed"]
            detail = f"{median(found):.1f} us; with none {median(alone):.1f} us"
            middle = estimate(ratios(found, alone), plan.seed)
            # Engines of this process are looked through, which is bounded; nothing is to be seen of other processes.
            target, rule = (TOLERANCE, "not more") if others == "processes" else (1 + TOLERANCE, "most")
            yield ratio(NAME, f"{words}: {beside} / none", middle, target, rule=rule, detail=detail)


def one_process(calls: int, rounds: int, seed: int) -> dict[str, list[float]]:
    """Measure in this process.

    Returns:
        For each part and each kind of neighbours, while they are open and after they were closed, the median of a
        round's calls, in microseconds, by round. Both come after the same work, which leaves the same caches behind.
    """
    import profwin

    with scratch() as places, ExitStack() as stack:
        profwin.configure(**places.settings(steps="every:1", backend="record", role="trainer", strict=True))
        devices = [f"pretend:other{number}" for number in range(WINDOWS)]
        partners = [stack.enter_context(Partner("benchmarks.neighbours", device)) for device in devices]
        beside = {"processes": lambda: _processes(partners), "engines": lambda: _engines(devices)}
        with profwin.training_step(1):
            variants: dict[str, Callable[[], float]] = {}
            for part in PARTS:
                for others, neighbours in beside.items():
                    variants[f"{part} {others} open"] = partial(_while_open, neighbours, part, calls)
                    variants[f"{part} {others} closed"] = partial(_when_closed, neighbours, part, calls)
            found = paired(variants, rounds, seed)
        profwin.shutdown()
    return found


def _while_open(neighbours: Callable[[], AbstractContextManager[None]], part: str, calls: int) -> float:
    with neighbours():
        return _measure(part, calls)


def _when_closed(neighbours: Callable[[], AbstractContextManager[None]], part: str, calls: int) -> float:
    with neighbours():
        pass
    return _measure(part, calls)


def _measure(part: str, calls: int) -> float:
    import profwin

    found = []
    for _ in range(calls):
        began = perf_counter_ns()
        with profwin.training_stage("stage"):
            ended = perf_counter_ns()
        if part == "call":
            ended = perf_counter_ns()
        found.append((ended - began) / 1e3)
    return median(found)


@contextmanager
def _processes(partners: list[Partner]) -> Iterator[None]:
    """Have a window open in each of the other processes."""
    _turn(partners)
    yield
    _turn(partners)


def _turn(partners: list[Partner]) -> None:
    for partner in partners:
        partner.tell()
    for partner in partners:
        partner.read()


class _Engine:
    revocable = True

    def __init__(self, device: str) -> None:
        self.devices = [device]

    def start_profile(self) -> None:
        pass

    def stop_profile(self) -> None:
        pass


@contextmanager
def _engines(devices: list[str]) -> Iterator[None]:
    """Have an engine recording on each of the other devices, for this process."""
    import profwin

    windows = [profwin.rollout_window(1, engine=_Engine(device), name=device[8:]) for device in devices]
    for window in windows:
        window.open()
    yield
    if not all(window.recorded for window in windows):
        raise RuntimeError("a window was closed by a stage on another device")
    for window in windows:
        window.close()


def neighbour(device: str) -> None:
    """Be a neighbour: open a window on a device of one's own when told to, and close it."""
    import profwin

    while told():
        with profwin.rollout_window(1, devices=device):
            say(0)
            if not told():
                return
        say(0)


if __name__ == "__main__":
    neighbour(sys.argv[1])
