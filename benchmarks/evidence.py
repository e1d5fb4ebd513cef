"""`profwin check`, `profwin timeline` and `profwin report`: time and memory on big traces and on runs of many ranks."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import big_ascend, big_run, big_trace
from benchmarks.child import Child, run_child, run_code
from benchmarks.measure import Plan, estimate, paired, ratios, scratch
from benchmarks.report import Figure, Skipped, ratio
from benchmarks.trace_readers import CHECK, FOUND, GUNZIP, HTA, READER, Sample, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["run_check", "run_files", "run_runs", "run_timeline"]

COPIES = 12
"""Repetitions of the base trace: 105 MB before compression, 486,000 events."""
ASCEND_COPIES = 60
"""The same of an Ascend timeline: 108 MB, 499,000 events."""
ROUNDS = 3
MANY, MANY_ROUNDS = 64, 4
DRAWN = 3
RANKS, STEPS = 512, 10
BOUND = 5.0

_READ_MANY = """
import sys
from profwin.evidence.check import Options, check
check(sys.argv[1], Options(workers=int(sys.argv[2])))
"""


def run_check(plan: Plan) -> Iterator[Figure | Skipped]:
    """Read one big trace with everything that can, in turn; then one that is ten times as large."""
    name = "check"
    copies = plan.count(COPIES, 1)
    with scratch() as places:
        trace = big_trace.base()
        path = places.output / "one" / "rank0.pt.trace.json.gz"
        path.parent.mkdir()
        events, size = big_trace.write_trace(path, trace, copies)
        readers, absent = load(str(path))
        for peer, reason in absent.items():
            yield Skipped(name, f"{peer} beside profwin check", reason)
        samples = _in_turn(readers, plan.count(ROUNDS, 1), plan.seed)
        larger = places.output / "ten" / path.name
        larger.parent.mkdir()
        big_trace.write_trace(larger, trace, 10 * copies)
        ten = run_child([sys.executable, "-m", "profwin", "check", str(larger.parent)], FOUND)
    what = f"{size / 1e6:.0f} MB, {events:,} events, {trace.source} repeated"
    for reader in samples:
        if reader not in (CHECK, READER, GUNZIP):
            target = 10.0 if reader.startswith(HTA) else None
            yield from _compared(name, samples, reader, CHECK, target, plan, rule="least")
    yield from _compared(name, samples, CHECK, GUNZIP, BOUND, plan)
    yield from _compared(name, samples, READER, GUNZIP, None, plan)
    for reader, of_reader in samples.items():
        best = min(of_reader, key=lambda sample: sample.seconds)
        detail = (
            f"processor {min(each.processor for each in of_reader):.2f} s; {what if reader == CHECK else 'its call'}"
        )
        yield Figure(name, f"{reader}, best", best.seconds, "s", count=len(of_reader), detail=detail)
    for reader, of_reader in samples.items():
        if reader not in (READER, GUNZIP):
            yield _peak(name, reader, [each.child for each in of_reader], 100.0 if reader == CHECK else None)
    peak = min(each.child.together for each in samples[CHECK])
    detail = f"{ten.together:.1f} MiB; {ten.seconds:.1f} s, processor {ten.processor:.1f} s"
    yield Figure(name, "peak, ten times as large / once", ten.together / peak, "x", target=1.2, count=1, detail=detail)


def run_files(plan: Plan) -> Iterator[Figure | Skipped]:
    """Check many traces with one process that reads, and with two."""
    name = "files"
    with scratch() as places:
        first = places.output / "rank0.pt.trace.json.gz"
        _, size = big_trace.write_trace(first, big_trace.base(), 1)
        many = plan.count(MANY, 4)
        for rank in range(1, many):
            shutil.copyfile(first, places.output / f"rank{rank}.pt.trace.json.gz")
        children: dict[str, list[Child]] = {"1": [], "2": []}

        def check(workers: str) -> float:
            child = run_code(_READ_MANY, str(places.output), workers)
            children[workers].append(child)
            return child.seconds

        seconds = paired({key: partial(check, key) for key in children}, plan.count(MANY_ROUNDS, 2), plan.seed)
    over = estimate(ratios(seconds["1"], seconds["2"]), plan.seed)
    detail = f"{many} x {size / 1e6:.0f} MB; best: one {min(seconds['1']):.2f} s, two {min(seconds['2']):.2f} s"
    yield ratio(name, "one process / two processes", over, 1.6, rule="least", detail=detail)
    busiest = {key: [child.longest for child in each[1:]] for key, each in children.items()}
    over = estimate(ratios(busiest["1"], busiest["2"]), plan.seed)
    detail = f"best: one {min(busiest['1']):.2f} s, two {min(busiest['2']):.2f} s"
    words = "the same, processor time of the first process and the busiest other"
    yield ratio(name, words, over, 1.6, rule="least", detail=detail)
    yield _peak(name, "two processes and the one that judges", children["2"], None)


def run_timeline(plan: Plan) -> Iterator[Figure | Skipped]:
    """Draw a timeline of one big trace, and of one four times as large; of Kineto, and of Ascend."""
    trace, timeline = big_trace.base(), big_ascend.base()

    def kineto(folder: Path, copies: int) -> None:
        folder.mkdir()
        big_trace.write_trace(folder / "rank0.pt.trace.json.gz", trace, copies)

    def ascend(folder: Path, copies: int) -> None:
        big_ascend.write_timeline(folder / big_ascend.FILE, timeline, copies)

    yield from _drawn("", kineto, plan.count(COPIES, 1), plan)
    yield from _drawn("Ascend: ", ascend, plan.count(ASCEND_COPIES, 1), plan)


def _drawn(of: str, write: Callable[[Path, int], None], copies: int, plan: Plan) -> Iterator[Figure]:
    name, peaks = "timeline", []
    for factor in (1, 4):
        with scratch() as places:
            write(places.output / "in", factor * copies)
            drawn = [
                _draw(places.output / "in", places.output) for _ in range(plan.count(DRAWN, 1) if factor == 1 else 1)
            ]
        child, written = min(drawn, key=lambda each: each[0].seconds)
        peaks.append(min(each.together for each, _ in drawn))
        detail = f"{written:,} in {child.seconds:.1f} s, processor {child.processor:.1f} s"
        words = f"{of}slices a second, reading and compressing included"
        words += ", best" if factor == 1 else f", {factor} times as many"
        yield Figure(
            name, words, written / child.seconds, "/s", target=100_000, rule="least", count=len(drawn), detail=detail
        )
        by_processor = written / child.processor
        yield Figure(name, f"{of}the same by processor time", by_processor, "/s", count=len(drawn))
    yield Figure(name, f"{of}peak memory", peaks[0], "MiB", count=plan.count(DRAWN, 1))
    detail = f"{peaks[1]:.1f} MiB"
    words = f"{of}peak, four times as many / once"
    yield Figure(name, words, peaks[1] / peaks[0], "x", target=1.2, count=1, detail=detail)


def run_runs(plan: Plan) -> Iterator[Figure | Skipped]:
    """Check the journals of many ranks, and report on them."""
    name = "run"
    ranks = plan.count(RANKS, 8)
    with scratch() as places:
        directory, page = places.output / "run", places.output / "report.html"
        records = big_run.write_run(directory, ranks, STEPS, plan.seed)
        what = f"{ranks} ranks, {STEPS} steps, {records:,} records"
        checked = [
            run_child([sys.executable, "-m", "profwin", "check", str(directory)]) for _ in range(plan.count(3, 1))
        ]
        report = [sys.executable, "-m", "profwin", "report", str(directory), "--force", "-o", str(page)]
        reported = [run_child(report) for _ in range(plan.count(3, 1))]
        size = page.stat().st_size
    for command, children, target in (("check", checked, 20.0), ("report", reported, None)):
        best = min(children, key=lambda child: child.seconds)
        detail = f"{what}; processor {best.processor:.1f} s, peak {best.together:.0f} MiB"
        yield Figure(name, f"{command}, best", best.seconds, "s", target=target, count=len(children), detail=detail)
    yield Figure(name, "the report's page", size / 1e6, "MB", target=3.0, count=1)


def _in_turn(readers: dict[str, Callable[[], Sample]], rounds: int, seed: int) -> dict[str, list[Sample]]:
    """Let each reader read once a round; the first round is not counted."""
    samples: dict[str, list[Sample]] = {reader: [] for reader in readers}

    def read(reader: str) -> float:
        samples[reader].append(readers[reader]())
        return samples[reader][-1].seconds

    paired({reader: partial(read, reader) for reader in readers}, rounds, seed)
    return {reader: of_reader[1:] for reader, of_reader in samples.items()}


def _compared(
    name: str, samples: dict[str, list[Sample]], over: str, under: str, target: float | None, plan: Plan,
    *, rule: str = "most",
) -> Iterator[Figure]:  # fmt: skip
    """Compare two readers by wall time and, which neighbours disturb less, by processor time."""
    for field in ("seconds", "processor"):
        values = [[getattr(each, field) for each in samples[reader]] for reader in (over, under)]
        words = f"{over} / {under}" + ("" if field == "seconds" else ", processor time")
        detail = f"best / best {min(values[0]) / min(values[1]):.2f}"
        yield ratio(name, words, estimate(ratios(*values), plan.seed), target, rule=rule, detail=detail)


def _peak(name: str, who: str, children: list[Child], target: float | None) -> Figure:
    highest = max(children, key=lambda child: child.together)
    detail = f"its processes together; the largest {highest.largest:.1f} MiB"
    return Figure(
        name, f"{who}: peak memory", highest.together, "MiB", target=target, count=len(children), detail=detail
    )


def _draw(folder: Path, place: Path) -> tuple[Child, int]:
    output = place / "run.pftrace.gz"
    command = [sys.executable, "-m", "profwin", "timeline", str(folder), "-o", str(output), "--json", "--force"]
    child = run_child(command)
    return child, json.loads(child.output)["written"]
