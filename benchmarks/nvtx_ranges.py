"""The range of the nvtx backend around a stage, against the bare context manager of the package nvtx."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT, Plan, estimate, in_fresh_process, paired, ratios, scratch
from benchmarks.report import Figure, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["run"]

NAME = "nvtx"
CALLS = 2000
ROUNDS = 31
PROCESSES = 3
STAGES = 200
TARGET = 1.5
TOOL = ROOT / "tests" / "native" / "nvtx_injection.c"


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Compare ranges, without a tool and with one that writes nothing, and recorded stages with backend ``record``."""
    try:
        import nvtx  # type: ignore[import-untyped]  # noqa: F401  # it has no annotations; whether it is there
    except ImportError as error:
        yield Skipped(NAME, "ranges", str(error))
        return
    yield from _compare(plan, "no tool", "", TARGET)
    with scratch() as places:
        library = _tool(str(places.output))
        if library:
            yield from _compare(plan, "a tool listens", library, None)
        else:
            yield Skipped(NAME, "ranges that a tool listens to", "no C compiler, or the checkout has no tests")
    yield from _stages(plan)


def _compare(plan: Plan, words: str, library: str, target: float | None) -> Iterator[Figure]:
    nanoseconds: dict[str, list[float]] = {}
    for process in range(plan.count(PROCESSES, 1)):
        answer = in_fresh_process(
            ranges, pinned=True, library=library, calls=plan.count(CALLS, 50), rounds=plan.count(ROUNDS, 3),
            seed=plan.seed + process,
        )  # fmt: skip
        for name, values in answer.items():
            nanoseconds.setdefault(name, []).extend(values)
    middle = {name: statistics.median(values) for name, values in nanoseconds.items()}
    for name, what, bound in (("stage", "range around a stage", target), ("range", "the range alone", None)):
        over = estimate(ratios(nanoseconds[name], nanoseconds["bare"]), plan.seed)
        detail = f"{middle[name]:.0f} ns; bare {middle['bare']:.0f} ns"
        yield ratio(NAME, f"{what}, {words}: profwin / nvtx.annotate", over, bound, detail=detail)


def ranges(library: str, calls: int, rounds: int, seed: int) -> dict[str, list[float]]:
    """Measure nanoseconds of a bare range, of ours alone, and of all that is done to mark a recorded stage with it."""
    if library:
        os.environ["NVTX_INJECTION64_PATH"] = library
    import nvtx

    from profwin.backends.nvtx import NvtxRecording, listener
    from profwin.interval import Interval
    from profwin.ranges import Ranges

    domain = listener()
    if (domain is not None) != bool(library):
        raise RuntimeError("the tool was not loaded, or another one was")
    recording = NvtxRecording(domain)
    marked = Ranges([recording], print)
    stage = Interval("stage", "update", 1, (), "", role="actor", scoped=True)

    def bare() -> None:
        with nvtx.annotate("update"):
            pass

    def alone() -> None:
        recording.lasting_range("update", "training", "actor", loose=False).end()

    def whole() -> None:
        marked.begin(stage, "training")
        marked.end(stage.identifier)
        if stage.lasting_range is not None:
            stage.lasting_range.end()
            stage.lasting_range = None

    variants = {"bare": _timer(bare, calls), "range": _timer(alone, calls), "stage": _timer(whole, calls)}
    return paired(variants, rounds, seed)


def _timer(work: Callable[[], None], calls: int) -> Callable[[], float]:
    def timed() -> float:
        start = thread_time_ns()
        for _ in range(calls):
            work()
        return (thread_time_ns() - start) / calls

    return timed


def _tool(directory: str) -> str:
    """Build a tool that NVTX loads, and that writes nothing unless it is told where; "" where it cannot be built."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not TOOL.exists():
        return ""
    library = os.path.join(directory, "tool.so")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, str(TOOL)], check=True, timeout=60)
    return library


def _stages(plan: Plan) -> Iterator[Figure]:
    microseconds: dict[str, list[float]] = {"record": [], "nvtx": []}
    for _process in range(plan.count(PROCESSES, 1)):
        for backend, values in microseconds.items():
            values += in_fresh_process(stages, backend=backend, number=plan.count(STAGES * 10, 20))
    for backend, values in microseconds.items():
        middle = statistics.median(values)
        yield Figure(NAME, f"recorded stage, backend {backend}, no device", middle, "us", count=len(values))


def stages(backend: str, number: int) -> list[float]:
    """Measure microseconds of recorded stages, the first ones left out; no device is locked, as nvtx locks none."""
    import profwin

    @profwin.training_stage
    def update() -> None:
        pass

    times: list[float] = []
    with scratch() as places:
        profwin.configure(**places.settings(steps="every:1", backend=backend, devices=None))
        with profwin.training_step(1):
            for _ in range(number):
                start = perf_counter_ns()
                update()
                times.append((perf_counter_ns() - start) / 1000)
        profwin.shutdown()
    return times[number // 10 :]
