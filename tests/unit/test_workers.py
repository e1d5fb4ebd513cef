"""Reading with several processes: every job is answered once, whatever happens to the process that has it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profwin.evidence import workers
from profwin.evidence.workers import Failure, Job, read_all, usual_number

HERE = Path(__file__).parent
READ = "workers_support:read"


def _answers(jobs: list[Job], number: int) -> dict[int, object]:
    found = list(read_all(READ, jobs, number, lambda done, total: None))
    answers = dict(found)
    assert len(answers) == len(found), "a job was answered twice"
    return answers


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_every_job_is_answered(number):
    """With any number of processes each answer comes once, beside those that raise or print."""
    jobs = [Job((what, size), size) for size, what in enumerate(["x", "raise", "print", "deny", "x"] * 5)]
    answers = _answers(jobs, number)
    for each, job in enumerate(jobs):
        what, value = job.arguments
        expected = {
            "raise": Failure("ValueError: no such value"),
            "deny": Failure("PermissionError: Permission denied"),
        }
        assert answers[each] == expected.get(what, value)


@pytest.mark.parametrize("number", [1, 2])
def test_a_killed_process_costs_its_file_alone(number):
    """A process that the kernel kills is named with its signal; another one takes over the rest."""
    jobs = [Job((what, each), each) for each, what in enumerate(["x", "kill", "x", "kill", "kill", "x"])]
    answers = _answers(jobs, number)
    assert [answers[each] for each in (0, 2, 5)] == [0, 2, 5]
    for each in (1, 3, 4):
        assert answers[each] == Failure("its process was ended by SIGKILL", killed=True)


def test_ctrl_c_is_not_for_the_processes_that_read():
    """Ctrl-C reaches all processes of the terminal: those that read leave it to the one that checks."""
    jobs = [Job((what, each), each) for each, what in enumerate(["x", "interrupt", "x"])]
    assert _answers(jobs, 1) == {0: 0, 1: 1, 2: 2}


def test_two_processes_read_at_the_same_time(tmp_path):
    """Two jobs that wait for each other both end, in two processes, neither of them this one."""
    pids = set(_answers([Job(("meet", str(tmp_path))) for _ in range(2)], 2).values())
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_the_largest_is_read_first():
    """Jobs are taken by size, so that no process is left alone with the largest one at the end."""
    sizes = [3, 9, 1, 7]
    order = [number for number, _ in read_all(READ, [Job(("x",), size) for size in sizes], 0, lambda *_: None)]
    assert [sizes[number] for number in order] == [9, 7, 3, 1]


@pytest.mark.parametrize("interpreter", [os.devnull, "no/such/python"])
def test_without_processes_this_one_reads(monkeypatch, interpreter):
    """Where no process can be started, or none comes to work, everything is read all the same."""
    monkeypatch.setattr(sys, "executable", interpreter)
    assert _answers([Job(("x", each)) for each in range(5)], 2) == {each: each for each in range(5)}


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_small_jobs_need_no_process(monkeypatch, cores):
    """Starting a process takes longer than reading a few small files; large ones use the cores there are."""
    assert usual_number([Job((), 1000)] * 50) == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    large = [Job((), workers.WORTH)]
    assert usual_number(large * 50) == (min(cores, workers.MOST) if cores > 1 else 0)
    assert usual_number(large) == 0, "one file is read as fast by this process"
    assert usual_number([*large, *[Job((), 1000)] * 50]) == 0, "nor is there enough beside it"
    assert usual_number([]) == 0


@pytest.mark.parametrize("thresholds", [(700, 10, 10), (10**6, 5, 5), (0, 10, 10)])
def test_the_garbage_collector_is_as_before(thresholds):
    """While this process reads, garbage is looked for less often, and never where it was not; then as before."""
    before = gc.get_threshold()
    gc.set_threshold(*thresholds)
    try:
        reading = read_all("gc:get_threshold", [Job(())], 0, lambda *_: None)
        (_, during), after = next(reading), gc.get_threshold()
    finally:
        gc.set_threshold(*before)
    assert after == thresholds
    assert during[1:] == thresholds[1:]
    assert (during[0] > 100_000) if thresholds[0] else (during[0] == 0)


def test_progress_goes_on_while_a_file_takes_long():
    """The progress function is called at least twice a second, so that it can show that the check is alive."""
    calls = []
    reading = read_all(READ, [Job(("sleep",), 1)], 1, lambda *call: calls.append(call) or _stop(calls))
    with pytest.raises(TimeoutError):
        next(reading)
    assert calls == [(0, 1)] * 3


def _stop(calls: list[object]) -> None:
    if len(calls) == 3:
        raise TimeoutError


_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from profwin.evidence.workers import Job, read_all
list(read_all("workers_support:read", [Job(("sleep", sys.argv[2]), 1)] * 4, 2, lambda *_: None))
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_check(signum, tmp_path):
    """Ctrl-C, a polite end and a kill: the processes that read go with the one that started them, file or no file."""
    checking = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(HERE), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=HERE.parents[1],
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    children = [int(path.name) for path in tmp_path.iterdir()]
    assert len(children) == 2
    checking.send_signal(signum)
    _, errors = checking.communicate(timeout=100)
    assert errors.count(b"Traceback") == (signum == signal.SIGINT), errors
    while any(map(_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(_alive, children))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_ELSEWHERE = """
import sys
sys.path[:] = [*sys.argv[1:], *filter(None, sys.path)]
from os import getpid
from profwin.evidence.workers import Job, read_all
print(all(answer != getpid() for _, answer in read_all("workers_support:read", [Job(("pid",), 1)], 1, lambda *_: None)))
"""


def test_the_current_directory_is_not_searched(tmp_path):
    """A module that lies in the checked directory is never imported by the processes that read it."""
    for name in ("gzip", "json", "workers_support"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(HERE.parents[1]), str(HERE)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr
