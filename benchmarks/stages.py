"""One recorded stage, whole: the lock, the journal, the record backend."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from benchmarks.measure import Plan, in_fresh_process, scratch
from benchmarks.report import Figure, Skipped, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["run"]

NAME = "stage"
STEPS = 15
STAGES = 200
PROCESSES = 3


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure single recorded stages as decorated calls, on one device and on none (the journal alone)."""
    for devices, words in ((["pretend:0"], "one device"), ([], "no device, the journal alone")):
        microseconds: list[float] = []
        for _process in range(plan.count(PROCESSES, 1)):
            microseconds += in_fresh_process(
                one_process, devices=devices, steps=plan.count(STEPS, 2), stages=plan.count(STAGES, 10)
            )
        targets: dict[int, float | None] = {50: 40.0, 99: 100.0} if devices else {50: None, 99: None}
        yield from spread(NAME, f"recorded stage, {words}", microseconds, "us", targets)
    microseconds = in_fresh_process(unselected_steps, steps=plan.count(STEPS * STAGES, 10))
    words = "unselected step: window, training_step and four stages"
    yield from spread(NAME, words, microseconds, "us", {50: None, 99: None})


def one_process(devices: list[str], steps: int, stages: int) -> list[float]:
    """Measure microseconds of every recorded stage; the first step warms up and is thrown away."""
    import profwin

    @profwin.training_stage
    def stage() -> None:
        pass

    times: list[float] = []
    with scratch() as places:
        profwin.configure(**places.settings(steps="every:1", backend="record", devices=devices or None))
        for step in range(steps + 1):
            with profwin.training_step(step):
                for _ in range(stages):
                    start = perf_counter_ns()
                    stage()
                    times.append((perf_counter_ns() - start) / 1000)
        profwin.shutdown()
        _require_records(str(places.output), (steps + 1) * stages)
    return times[stages:]


def unselected_steps(steps: int) -> list[float]:
    """Measure microseconds of everything that profwin does in a step that is not recorded."""
    import profwin

    @profwin.training_stage
    def stage() -> None:
        pass

    times: list[float] = []
    with scratch() as places:
        profwin.configure(**places.settings(steps="1000000", backend="record"))
        for step in range(steps):
            start = perf_counter_ns()
            with profwin.rollout_window(step):
                pass
            with profwin.training_step(step):
                for _ in range(4):
                    stage()
            times.append((perf_counter_ns() - start) / 1000)
        profwin.shutdown()
    return times[steps // 10 :]


def _require_records(output: str, wanted: int) -> None:
    """Make sure that what was timed was recorded and not skipped."""
    from benchmarks.journals import read_run

    run = read_run(output)
    opened = sum(1 for interval in run.intervals)
    if opened != wanted or run.skips:
        raise RuntimeError(f"{wanted} stages ran, {opened} were recorded; skips: {dict(run.skips)}")
