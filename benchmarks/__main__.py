"""Measure profwin: ``python -m benchmarks [--quick] [--json FILE] [--only NAME ...]``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import TYPE_CHECKING

from benchmarks import (
    calls,
    clients,
    demo_steps,
    engines,
    evidence,
    handover,
    launching,
    locks,
    neighbours,
    nvtx_ranges,
    patching,
    ray_scale,
    requests,
    stages,
    startup,
    traces,
    waiting,
)
from benchmarks.measure import Plan
from benchmarks.report import Figure, Skipped, document, machine, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BENCHMARKS: dict[str, Callable[[Plan], Iterator[Figure | Skipped]]] = {
    "calls": calls.run,
    "patch": patching.run,
    "locks": locks.run,
    "handover": handover.run,
    "requests": requests.run,
    "waiting": waiting.run,
    "stage": stages.run,
    "neighbours": neighbours.run,
    "nvtx": nvtx_ranges.run,
    "engines": engines.run,
    "ray": ray_scale.run,
    "torch": traces.run,
    "demo": demo_steps.run,
    "trl": clients.run,
    "startup": startup.run_startup,
    "launch": launching.run,
    "memory": startup.run_memory,
    "check": evidence.run_check,
    "files": evidence.run_files,
    "timeline": evidence.run_timeline,
    "run": evidence.run_runs,
}
QUICK = 0.15


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks; the exit status is 1 if one of them could not run, whatever the figures are.

    Ctrl-C ends them, and the figures of what had been measured are shown.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition(":")[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:.0%}% of the counts: for a look, not for a table")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all counts")
    parser.add_argument("--seed", type=int, default=1, help="of orders, pauses and resamples")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--only", nargs="+", choices=sorted(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS))
    given = parser.parse_args(arguments)
    plan = Plan(QUICK if given.quick else given.scale, given.seed)
    host = machine()
    print(", ".join(f"{name}: {value}" for name, value in host.items()))
    figures: list[Figure] = []
    skipped: list[Skipped] = []
    failed = False
    for name in given.only or BENCHMARKS:
        began = time.monotonic()
        try:
            for line in BENCHMARKS[name](plan):
                if isinstance(line, Figure):
                    figures.append(line)
                else:
                    skipped.append(line)
        except Exception as error:
            failed = True
            skipped.append(Skipped(name, "all or the rest of it", f"failed: {type(error).__name__}: {error}"))
        except KeyboardInterrupt:
            failed = True
            skipped.append(Skipped(name, "the rest of it, and what comes after it", "interrupted"))
            break
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(figures))
    for line in skipped:
        print(f"not measured [{line.benchmark}] {line.what}: {line.reason}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            file.write(document(plan, host, figures, skipped) + "\n")
    return int(failed)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit's signal, too, leaves the figures
    sys.exit(main())
