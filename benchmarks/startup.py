"""What profwin adds to the start of a process, and to its memory."""

from __future__ import annotations

import os
import statistics
import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT, Plan, Scratch, environment, estimate, paired, scratch
from benchmarks.report import Figure, Skipped, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["run_memory", "run_startup"]

STARTUP = "startup"
MEMORY = "memory"
STARTS = 25
MEMORY_STARTS = 15
STAGES = 100

IMPORT = "import profwin"
NAMES = "from profwin import rollout_window, training_stage"
CONFIGURED = """
import profwin
profwin.configure(steps="1", backend="record", output={output!r}, lock_dir={locks!r}, devices=["pretend:0"])
@profwin.training_stage
def stage():
    pass
with profwin.training_step(1):
    for _ in range({stages}):
        stage()
"""
CUT = "import os\nos._exit(0)\n"
PEAK = """
import sys
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(line.split()[1], ",".join(sys.modules))
"""


def run_startup(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure whole processes, from their start to their exit, and subtract a bare one of the same round."""
    with scratch() as places:
        first_stage = _configured(places, 1)
        codes = {"bare": "pass", "import": IMPORT, "names": NAMES, "exit": first_stage}
        codes |= {"bare, cut": CUT, "stage": first_stage + CUT}
        variants = {name: _start(code) for name, code in codes.items()}
        milliseconds = paired(variants, plan.count(STARTS, 3), plan.seed)
    for name, under, words, target in (
        ("import", "bare", "import profwin, over bare Python", 15.0),
        ("names", "bare", "the window's and the stage's modules, over bare Python", None),
        ("stage", "bare, cut", "import, configure and first stage, over bare Python", 60.0),
        ("exit", "bare", "the same, to an exit in order with the manifest written", None),
    ):
        bare = milliseconds[under]
        detail = f"bare {statistics.median(bare):.1f} ms"
        added = [value - base for value, base in zip(milliseconds[name], bare, strict=True)]
        yield difference(STARTUP, words, estimate(added, plan.seed), "ms", target, detail=detail)


def run_memory(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure the peak of a process with 100 recorded stages, and subtract that of one without profwin.

    The base imports the same modules of the standard library: a training process has them all.
    """
    with scratch() as places:
        code = _configured(places, STAGES) + PEAK
        modules = _output(code).split()[1].split(",")
        standard = [name for name in modules if name.partition(".")[0] in sys.stdlib_module_names]
        base = "\n".join(f"try: import {name}\nexcept ImportError: pass" for name in standard if name != "__main__")
        codes = {"bare": PEAK, "base": base + "\n" + PEAK, "configured": code}
        if "torch" not in modules and _has_torch():
            codes |= {"torch": "import torch\n" + PEAK, "torch, configured": "import torch\n" + code}
        variants = {name: _peak(text) for name, text in codes.items()}
        peaks = paired(variants, plan.count(MEMORY_STARTS, 3), plan.seed)
    for over, under, words, target in (
        ("configured", "base", "peak added over the same standard library", 5.0),
        ("configured", "bare", "peak added over bare Python", None),
        ("torch, configured", "torch", "peak added to a process that has torch", 5.0),
    ):
        if over in peaks:
            added = [value - base for value, base in zip(peaks[over], peaks[under], strict=True)]
            detail = f"{statistics.median(peaks[over]):.1f} MiB in all"
            yield difference(MEMORY, words, estimate(added, plan.seed), "MiB", target, detail=detail)


def _configured(places: Scratch, stages: int) -> str:
    return CONFIGURED.format(output=str(places.output), locks=str(places.locks), stages=stages)


def _has_torch() -> bool:
    import importlib.util

    return importlib.util.find_spec("torch") is not None


def _start(code: str) -> Callable[[], float]:
    """Give a function that runs code in a new interpreter and returns the milliseconds to its exit."""
    command, surroundings = [sys.executable, "-c", code], environment()

    def started() -> float:
        begin = perf_counter_ns()
        pid = os.posix_spawn(sys.executable, command, surroundings)
        status = os.waitpid(pid, 0)[1]
        taken = (perf_counter_ns() - begin) / 1e6
        if status:
            raise RuntimeError(f"the new interpreter ended with {os.waitstatus_to_exitcode(status)}")
        return taken

    return started


def _peak(code: str) -> Callable[[], float]:
    return lambda: int(_output(code).split()[0]) / 1024


def _output(code: str) -> str:
    import subprocess

    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment()).stdout
