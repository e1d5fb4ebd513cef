"""What ``profwin run`` adds to the start of a Python program, and to that of each of its Python children."""

from __future__ import annotations

import os
import statistics
import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING

from benchmarks.measure import Plan, compile_package, environment, estimate, paired, scratch
from benchmarks.report import Figure, Skipped, difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["run"]

LAUNCH = "launch"
STARTS = 40
MODULES = 30
HEAD = 'format = 1\nname = "launching"\n'
PATCH = '\n[[patch]]\ntarget = "absent_{number}.module:Class.method_{number}"\nrole = "stage"\n'
MAIN = '\n[[patch]]\ntarget = "__main__:train"\nrole = "stage"\n'
BOUND = 60.0
CHILD_BOUND = 3.0


def run(plan: Plan) -> Iterator[Figure | Skipped]:
    """Measure whole processes, from their start to their exit, and subtract a bare one of the same round.

    The programs use no target. The launcher is the installed command; a child has what it leaves in the environment.
    """
    from profwin.patch.environment import patch_variables
    from profwin.patch.reading import find

    compile_package()
    python, bare = sys.executable, environment()
    with scratch() as places:
        places.output.mkdir(exist_ok=True)
        scripts = {name: str(places.output / f"{name}.py") for name in ("program", "defining")}
        files = {name: str(places.output / f"{name}.toml") for name in ("targets", "main")}
        targets = HEAD + "".join(PATCH.format(number=number) for number in range(MODULES))
        for path, text in (
            (scripts["program"], "pass\n"),
            (scripts["defining"], "def train():\n    pass\n"),
            (files["targets"], targets),
            (files["main"], targets + MAIN),
        ):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        child = {**bare, **patch_variables(find(files["targets"]), "all", bare)}
        child_main = {**bare, **patch_variables(find(files["main"]), "all", bare)}
        launcher = [python, "-m", "profwin", "run", "--quiet", "--steps", "1"]
        starts = {
            "bare": _Start([python, scripts["program"]], bare),
            "run": _Start([*launcher, "--plan", files["targets"], "--", python, scripts["program"]], bare),
            "no plan": _Start([*launcher, "--", python, scripts["program"]], bare),
            "child": _Start([python, scripts["program"]], child),
            "child, main": _Start([python, scripts["program"]], child_main),
            "defining": _Start([python, scripts["defining"]], child_main),
        }
        milliseconds = paired({**starts}, plan.count(STARTS, 3), plan.seed)
    base = milliseconds["bare"]
    for name, words, target in (
        ("run", f"profwin run, a plan of {MODULES} modules, none of them used", BOUND),
        ("no plan", "profwin run without a plan", None),
        ("child", "each Python child of it", CHILD_BOUND),
        ("child, main", "each child, with a target in __main__ that it does not define", CHILD_BOUND),
        ("defining", "a script that defines a target, and so is started twice", None),
    ):
        added = [value - under for value, under in zip(milliseconds[name], base, strict=True)]
        least = min(milliseconds[name]) - min(base)
        processor = statistics.median(starts[name].processor) - statistics.median(starts["bare"].processor)
        detail = f"bare {statistics.median(base):.1f}; minima {least:.1f}; processor {processor:.1f} ms"
        yield difference(LAUNCH, f"{words}, over bare Python", estimate(added, plan.seed), "ms", target, detail=detail)


class _Start:
    """A function that runs a command and returns the milliseconds to its exit.

    Attributes:
        processor: milliseconds of processor time of each call, of which neighbours take nothing.
    """

    def __init__(self, command: list[str], surroundings: Mapping[str, str]) -> None:
        self._command, self._surroundings = command, surroundings
        self.processor: list[float] = []

    def __call__(self) -> float:
        begin = perf_counter_ns()
        pid = os.posix_spawn(self._command[0], self._command, self._surroundings)
        _pid, status, used = os.wait4(pid, 0)
        taken = (perf_counter_ns() - begin) / 1e6
        if status:
            raise RuntimeError(f"{self._command} ended with {os.waitstatus_to_exitcode(status)}")
        self.processor.append((used.ru_utime + used.ru_stime) * 1e3)
        return taken
