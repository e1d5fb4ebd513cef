"""How everything here is measured: paired rounds in shuffled order, medians, intervals, fresh processes.

A figure that compares is a ratio within one run: every variant is measured once a round, the order is
shuffled anew in each round, and the ratio is taken within the round before the median is taken over the
rounds. Two equal runs on a shared machine differ by several per cent; two neighbours in one round do not.
"""

from __future__ import annotations

import compileall
import gc
import importlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "Estimate",
    "Plan",
    "Scratch",
    "compile_package",
    "estimate",
    "in_fresh_process",
    "in_parts",
    "paired",
    "percentile",
    "ratios",
    "scratch",
]

ROOT = Path(__file__).resolve().parent.parent
RESAMPLES = 2000
HUNG = 600.0  # seconds after which a process that measures is given up
ENDING = 60.0  # seconds that one which is told to end gets for that
_PART = "part: "


class Plan(NamedTuple):
    """How much is measured.

    Attributes:
        scale: multiplies every count; 1.0 is the published table.
        seed: of the orders, pauses and resamples; the same seed measures in the same order.
    """

    scale: float = 1.0
    seed: int = 1

    def count(self, full: int, least: int = 3) -> int:
        """Scale a count, never below ``least``."""
        return max(least, round(full * self.scale))


class Estimate(NamedTuple):
    """A median with its 95 % bootstrap interval.

    Attributes:
        value: the median of the values.
        low, high: ends of the interval.
        count: how many values it rests on.
    """

    value: float
    low: float
    high: float
    count: int


def estimate(values: Sequence[float], seed: int = 1) -> Estimate:
    """Give the median of values with the percentile-bootstrap 95 % interval of that median."""
    picker = random.Random(seed)
    medians = sorted(statistics.median(picker.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return Estimate(statistics.median(values), percentile(medians, 2.5), percentile(medians, 97.5), len(values))


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value below which ``share`` per cent of the values lie (nearest rank; no interpolation)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * len(ordered)) // 100) - 1))]


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Divide value by value: both lists come from the same rounds."""
    return [a / b for a, b in zip(over, under, strict=True) if b > 0]


def paired(variants: dict[str, Callable[[], float]], rounds: int, seed: int) -> dict[str, list[float]]:
    """Measure every variant once a round, in an order shuffled anew each round.

    Args:
        variants: name to a function that does the work once and returns what it measured.
        rounds: how often; one further round goes first and is thrown away.
        seed: of the orders.

    Returns:
        For each variant the measured values, by round: index i of all lists belongs to one round. Garbage is
        collected between rounds and not during them.
    """
    shuffler = random.Random(seed)
    measured: dict[str, list[float]] = {name: [] for name in variants}
    order = list(variants)
    for round_number in range(rounds + 1):
        shuffler.shuffle(order)
        gc.collect()
        gc.disable()
        try:
            for name in order:
                value = variants[name]()
                if round_number:
                    measured[name].append(value)
        finally:
            gc.enable()
    return measured


def compile_package() -> None:
    """Compile profwin as an installation does; a checkout that changed may else be compiled anew at each start."""
    compileall.compile_dir(ROOT / "profwin", quiet=1)


def in_fresh_process(
    function: Callable[..., Any], *, pinned: bool = False, python: str = sys.executable, **arguments: Any
) -> Any:
    """Run a module-level function of this package in a new interpreter and return its JSON-able result.

    Args:
        function: what to run; it is found by name in the new process.
        pinned: bind the process to one CPU, for figures of nanoseconds.
        python: the interpreter.
        arguments: JSON-able keyword arguments.

    Raises:
        RuntimeError: the process failed; the message ends with its last error lines.
        subprocess.TimeoutExpired: it hung.
    """
    command = [python, "-m", "benchmarks.measure", function.__module__, function.__name__]
    call = json.dumps({"pinned": pinned, "arguments": arguments})
    process = subprocess.run(
        command,
        input=call,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=False,
        timeout=HUNG,
    )
    if process.returncode != 0:
        raise RuntimeError(f"{function.__name__} ended with {process.returncode}: {process.stderr.strip()[-600:]}")
    return json.loads(process.stdout.splitlines()[-1])


def in_parts(function: Callable[..., Iterator[Any]], **arguments: Any) -> Iterator[Any]:
    """Run a module-level generator function of this package in a new interpreter; yield what it yields as it comes.

    Where the caller goes away, as at Ctrl-C, the process is interrupted, and gets some time to tidy up.

    Args:
        function: what to run; it is found by name in the new process, and yields what JSON can hold.
        arguments: JSON-able keyword arguments.

    Raises:
        RuntimeError: the process failed, or took too long; the message ends with its last error lines.
    """
    command = [sys.executable, "-m", "benchmarks.measure", function.__module__, function.__name__]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT,
            env=environment(), start_new_session=True,
        )  # fmt: skip
        timer = threading.Timer(HUNG, process.send_signal, (signal.SIGINT,))
        timer.start()
        try:
            json.dump({"pinned": False, "arguments": arguments}, process.stdin)
            process.stdin.close()
            for line in process.stdout:
                if line.startswith(_PART):
                    yield json.loads(line[len(_PART) :])
            process.wait(ENDING)
        finally:
            timer.cancel()
            timer.join()
            _end(process)
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().strip()[-600:]
            raise RuntimeError(f"{function.__name__} ended with {process.returncode}: {said}")


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    process.stdout.close()


def environment(**extra: str) -> dict[str, str]:
    """Give this process's environment without any profwin setting, with the checkout importable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PROFWIN_")}
    return {**kept, "PYTHONPATH": str(ROOT), "KINETO_LOG_LEVEL": "5", **extra}


class Scratch(NamedTuple):
    """Where one measurement keeps its files.

    Attributes:
        output: for journals and traces, on the disk of the temporary directory.
        locks: for device locks, where profwin keeps them by itself: in shared memory, if there is any.
    """

    output: Path
    locks: Path

    def settings(self, **others: Any) -> dict[str, Any]:
        """Give the settings that point profwin here, with one pretend device unless told otherwise."""
        places = {"output": str(self.output), "lock_dir": str(self.locks), "devices": ["pretend:0"]}
        return {**places, **others}


@contextmanager
def scratch(*, keep: bool = False) -> Iterator[Scratch]:
    """Make new directories; they are removed at the end unless ``keep``."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = [Path(tempfile.mkdtemp(prefix="profwin-bench-", dir=place)) for place in (None, memory)]
    try:
        yield Scratch(*made)
    finally:
        for directory in made:
            if not keep:
                shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    """Be the new interpreter of `in_fresh_process` or `in_parts`."""
    call = json.load(sys.stdin)
    if call["pinned"]:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    result = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(**call["arguments"])
    if isinstance(result, Generator):
        for part in result:
            sys.stdout.write(f"\n{_PART}{json.dumps(part)}\n")
            sys.stdout.flush()
        return
    sys.stdout.write("\n" + json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
