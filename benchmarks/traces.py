"""A window with the torch backend against the plain profiler, with the same kind of file."""

from __future__ import annotations

import statistics
from time import perf_counter_ns
from typing import TYPE_CHECKING

from benchmarks.measure import Plan, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["run"]

NAME = "torch"
OPERATIONS = 3000
ROUNDS = 15
PROCESSES = 3
TARGETS = {"json": 1.05, "json.gz": 0.4}


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Compare a whole window, its file written, with ``torch.profiler`` and its export to the same format."""
    try:
        import torch  # noqa: F401  # whether it is there
    except ImportError as error:
        yield Skipped(NAME, "windows with torch", str(error))
        return
    for trace_format, target in TARGETS.items():
        milliseconds: dict[str, list[float]] = {}
        for process in range(plan.count(PROCESSES, 1)):
            answer = in_fresh_process(
                one_process,
                trace_format=trace_format,
                operations=plan.count(OPERATIONS, 50),
                rounds=plan.count(ROUNDS, 3),
                seed=plan.seed + process,
            )
            for name, values in answer.items():
                milliseconds.setdefault(name, []).extend(values)
        over = estimate(ratios(milliseconds["window"], milliseconds["raw"]), plan.seed)
        middle = {name: statistics.median(values) for name, values in milliseconds.items()}
        detail = f"{middle['window']:.1f} ms; raw {middle['raw']:.1f}, body alone {middle['body']:.1f} ms"
        yield ratio(NAME, f"window / torch.profiler, .{trace_format}", over, target, detail=detail)


def one_process(trace_format: str, operations: int, rounds: int, seed: int) -> dict[str, list[float]]:
    """Measure milliseconds of the body alone, inside a plain profiler, and inside a window, files written."""
    import torch

    import profwin

    torch.set_num_threads(1)
    values, weights = torch.ones(1, 8), torch.ones(8, 8)

    def body() -> None:
        # Each makes about five events: the operator and those that it calls.
        for _ in range(operations):
            torch.nn.functional.linear(values, weights)

    with scratch() as places:
        directory = places.output
        profwin.configure(**places.settings(steps="every:1", backend="torch", trace_format=trace_format))
        variants = {
            "body": _timer(body, directory, None),
            "raw": _timer(_raw(body, directory, trace_format), directory, f"raw.{trace_format}"),
            "window": _timer(_window(body), directory, f"**/*.pt.trace.{trace_format}"),
        }
        milliseconds = paired(variants, rounds, seed)
        profwin.shutdown()
    return milliseconds


def _raw(body: Callable[[], None], directory: Path, trace_format: str) -> Callable[[], None]:
    from torch.profiler import ProfilerActivity, profile

    path = str(directory / f"raw.{trace_format}")

    def profiled() -> None:
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            body()
        profiler.export_chrome_trace(path)

    return profiled


def _window(body: Callable[[], None]) -> Callable[[], None]:
    import itertools

    import profwin

    steps = itertools.count(1)

    def windowed() -> None:
        with profwin.rollout_window(next(steps)):
            body()

    return windowed


def _timer(work: Callable[[], None], directory: Path, written: str | None) -> Callable[[], float]:
    """Time one piece of work; the file that it must have left is removed outside the timing."""

    def timed() -> float:
        start = perf_counter_ns()
        work()
        taken = (perf_counter_ns() - start) / 1e6
        if written is not None:
            files = list(directory.glob(written))
            if len(files) != 1 or files[0].stat().st_size == 0:
                raise RuntimeError(f"one trace was expected, {len(files)} are there")
            files[0].unlink()
        return taken

    return timed
