"""The uncontended device lock: a pair of acquire and release, of one device and several, and other locks."""

from __future__ import annotations

import os
import statistics
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Plan, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.report import Figure, Skipped, difference, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["run"]

NAME = "locks"
PAIRS = 500
ROUNDS = 15
PROCESSES = 3
DEVICES = (1, 2, 4, 8)
PER_DEVICE = 12.0
PEERS = ("filelock", "portalocker", "flock alone")


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure the pair with record and wake-up, and the same pair of other locks in the same rounds."""
    microseconds: dict[str, list[float]] = {}
    absent: dict[str, str] = {}
    for process in range(plan.count(PROCESSES, 1)):
        answer = in_fresh_process(
            one_process,
            pairs=plan.count(PAIRS, 5),
            rounds=plan.count(ROUNDS, 3),
            seed=plan.seed + process,
        )
        absent = answer["absent"]
        for name, values in answer["microseconds"].items():
            microseconds.setdefault(name, []).extend(values)
    for count in DEVICES:
        middle = estimate(microseconds[str(count)], plan.seed)
        words = f"pair, {count} device{'s' * (count > 1)}"
        yield difference(NAME, words, middle, "us", PER_DEVICE * count, detail="median of round means")
    for name in PEERS:
        if name in absent:
            yield Skipped(NAME, name, absent[name])
            continue
        over = estimate(ratios(microseconds[name], microseconds["1"]), plan.seed)
        detail = f"{statistics.median(microseconds[name]):.1f} us"
        yield ratio(NAME, f"{name} / profwin, one device", over, detail=detail)


def one_process(pairs: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure microseconds a pair in this process."""
    from profwin.registry.lock import Registry

    with scratch() as places:
        directory = places.locks
        registry = Registry(str(directory / "profwin"))
        pair_of: dict[str, Callable[[], None]] = {}
        for count in DEVICES:
            keys = [f"pretend:{number}" for number in range(count)]
            pair_of[str(count)] = _profwin(registry, keys)
        absent: dict[str, str] = {}
        for name, maker in (("filelock", _filelock), ("portalocker", _portalocker), ("flock alone", _flock)):
            try:
                pair_of[name] = maker(directory)
            except ImportError as error:  # each peer may be absent
                absent[name] = str(error)
        microseconds = paired({name: _timer(pair, pairs) for name, pair in pair_of.items()}, rounds, seed)
    return {"microseconds": microseconds, "absent": absent}


def _timer(pair: Callable[[], None], pairs: int) -> Callable[[], float]:
    def timed() -> float:
        start = perf_counter_ns()
        for _ in range(pairs):
            pair()
        return (perf_counter_ns() - start) / pairs / 1000

    return timed


def _profwin(registry: Any, keys: list[str]) -> Callable[[], None]:
    def pair() -> None:
        registry.acquire(
            keys, kind="training", run="benchmark", name="stage", step=1, seconds=0.0, on_slow=None
        ).release()

    return pair


def _filelock(directory: Path) -> Callable[[], None]:
    import filelock

    lock = filelock.FileLock(str(directory / "filelock"))

    def pair() -> None:
        lock.acquire()
        lock.release()

    return pair


def _portalocker(directory: Path) -> Callable[[], None]:
    import portalocker

    flags = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
    lock = portalocker.Lock(str(directory / "portalocker"), flags=flags)

    def pair() -> None:
        lock.acquire()
        lock.release()

    return pair


def _flock(directory: Path) -> Callable[[], None]:
    import fcntl

    path = str(directory / "flock")

    def pair() -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)

    return pair
