"""A program as a whole: its time, the processor time and the peak memory of it and of all that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import ROOT, environment, in_fresh_process

__all__ = ["Child", "run_child", "run_code"]

TICKS = os.sysconf("SC_CLK_TCK")
LOOK = 0.01
"""Seconds between two looks at the memory of the processes."""


class Child(NamedTuple):
    """What a program took.

    Attributes:
        seconds: from its start to its end.
        processor: user and system time of it and of the processes that it has waited for, in seconds.
        longest: processor time of it and of the busiest of those that it has started, in seconds: how long it would
            take at least on processors that nobody else uses.
        largest: peak of the largest of its processes, in MiB.
        together: sum of the peaks of all of its processes, in MiB.
        status: its exit status.
        output: what it printed.
    """

    seconds: float
    processor: float
    longest: float
    largest: float
    together: float
    status: int
    output: str


def run_child(command: list[str], statuses: tuple[int, ...] = (0,), cpus: int = 0) -> Child:
    """Run a program and measure it.

    Args:
        command: the program and its arguments.
        statuses: exit statuses that are no failure.
        cpus: how many processors it may use; 0 for all.

    Raises:
        RuntimeError: it failed; the message ends with its last error lines.
    """
    child = Child(*in_fresh_process(measured, command=command, cpus=cpus))
    if child.status not in statuses:
        raise RuntimeError(f"{' '.join(command[:4])} ended with {child.status}: {child.output[-600:]}")
    return child


def run_code(code: str, *arguments: str, python: str = sys.executable) -> Child:
    """Run a piece of Python as a program; see `run_child`."""
    return run_child([python, "-c", code, *arguments])


def measured(command: list[str], cpus: int) -> Child:
    """Run a program from this small process, since what is counted for it begins with the size of its parent."""
    if cpus:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cpus])
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, cwd=ROOT, env=environment())
        peaks: dict[int, int] = {}
        times: dict[int, float] = {}
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            _look(process.pid, peaks, times)
            time.sleep(LOOK)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        printed = errors if process.returncode < 0 or (process.returncode and not output.tell()) else output
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    largest = max(usage.ru_maxrss, *peaks.values()) if peaks else usage.ru_maxrss
    peaks[process.pid] = max(peaks.get(process.pid, 0), usage.ru_maxrss if len(peaks) < 2 else 0)
    together = sum(peaks.values())
    processor = usage.ru_utime + usage.ru_stime
    own = times.pop(process.pid, processor)
    longest = own + max(times.values(), default=0.0)
    return Child(seconds, processor, longest, largest / 1024, together / 1024, process.returncode, text)


def _look(pid: int, peaks: dict[int, int], times: dict[int, float]) -> None:
    """Note the peak of a process and of those that it has started, in kB, and their processor times."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                peaks[pid] = int(line.split()[1])
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        times[pid] = (int(fields[11]) + int(fields[12])) / TICKS
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return  # it has ended
    for child in children:
        _look(int(child), peaks, times)
