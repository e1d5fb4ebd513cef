"""Readers of one big trace, each a program of its own: profwin's, the peers', and unpacking alone."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.child import Child, run_child, run_code
from benchmarks.measure import compile_package

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CHECK", "FOUND", "GUNZIP", "HTA", "INSIGHT", "PEERS_PYTHON", "READER", "Sample", "load"]

PEERS_PYTHON = "PEERS_PYTHON"
"""Environment variable with the interpreter of an environment in which the peers are installed."""
CHECK, READER, GUNZIP = "profwin check", "profwin's reader", "gunzip"
HTA, INSIGHT = "HolisticTraceAnalysis", "rl-insight"
FOUND = (0, 1)
"""Exit statuses of `profwin check`: with and without findings."""

_TIMED = """
import json, os, sys, time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
def used():
    return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
{setup}
begin, before = time.perf_counter(), used()
{work}
print(json.dumps([time.perf_counter() - begin, used() - before]))
"""
_WORKS = {
    READER: (
        "from profwin.evidence.formats.kineto import read\nfolder, name = os.path.split(sys.argv[1])",
        "assert read(folder, name).tally.events",
    ),
    GUNZIP: ("import gzip", "with gzip.open(sys.argv[1]) as file:\n    while file.read(1 << 20): pass"),
    HTA: (
        "import logging\nfrom hta.trace_analysis import TraceAnalysis\nlogging.disable()",
        "assert len(TraceAnalysis(trace_files={0: sys.argv[1]}).t.get_trace(0))",
    ),
    INSIGHT: (
        "from loguru import logger\nfrom recipe.parser.torch_parser import TorchClusterParser\nlogger.remove()",
        "assert len(TorchClusterParser({}).run(os.path.dirname(sys.argv[1])))",
    ),
}
_VERSION = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"


class Sample(NamedTuple):
    """What one reading took.

    Attributes:
        seconds: of the whole command, or where it is a library of its call alone, without start and imports.
        processor: seconds of processor time of the same.
        child: the program that did it.
    """

    seconds: float
    processor: float
    child: Child


def load(path: str) -> tuple[dict[str, Callable[[], Sample]], dict[str, str]]:
    """Return what reads a trace, by name, and for each peer that is absent the reason."""
    compile_package()
    readers: dict[str, Callable[[], Sample]] = {CHECK: lambda: _check(os.path.dirname(path))}
    readers |= {name: _library(name, path, sys.executable) for name in (READER, GUNZIP)}
    absent: dict[str, str] = {}
    python = os.environ.get(PEERS_PYTHON)
    for name in (HTA, INSIGHT):
        if python is None:
            absent[name] = f"{PEERS_PYTHON} is not set"
            continue
        try:
            version = run_code(_VERSION, name, python=python).output.strip()
        except RuntimeError:
            absent[name] = f"is not installed where {PEERS_PYTHON} says"
        else:
            readers[f"{name} {version}"] = _library(name, path, python)
    return readers, absent


def _check(folder: str) -> Sample:
    child = run_child([sys.executable, "-m", "profwin", "check", folder, "--json"], FOUND)
    return Sample(child.seconds, child.processor, child)


def _library(name: str, path: str, python: str) -> Callable[[], Sample]:
    setup, work = _WORKS[name]
    code = _TIMED.format(setup=setup, work=work)

    def read() -> Sample:
        child = run_code(code, path, python=python)
        seconds, processor = json.loads(child.output.splitlines()[-1])
        return Sample(seconds, processor, child)

    return read
