"""Workers: many files are read by several processes, where that is worth it, and a few by this one."""

from __future__ import annotations

import os
from dataclasses import dataclass

from profwin.evidence.attempt import Failure, attempt, frugal, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias

    Progress: TypeAlias = Callable[[int, int], None]

__all__ = ["MOST", "Failure", "Job", "read_all", "usual_number"]

MOST = 8
"""The most processes that are started, whatever the number of cores: each reads with memory of its own."""
WORTH = 50_000_000
"""Bytes of text from which on it is worth starting processes, which takes as long as reading 20 million (measured).
Half of them must lie beside the largest file: that one takes no less time in a process of its own.
"""


@dataclass(frozen=True)
class Job:
    """One thing to read.

    Attributes:
        arguments: of the function that reads it.
        size: in bytes; the largest are read first, so that the processes end together.
    """

    arguments: tuple[Any, ...]
    size: int = 0


def usual_number(jobs: Sequence[Job]) -> int:
    """Return how many processes to use; 0 means none but this one."""
    sizes = [job.size for job in jobs]
    if len(jobs) < 2 or sum(sizes) < WORTH or sum(sizes) - max(sizes) < WORTH // 2:
        return 0
    number = min(len(os.sched_getaffinity(0)), MOST, len(jobs))
    return number if number > 1 else 0


def read_all(function: str, jobs: Sequence[Job], workers: int, progress: Progress) -> Iterator[tuple[int, Any]]:
    """Yield the number of each job and what the function made of it, in the order in which they are done.

    Args:
        function: ``module:name``.
        jobs: what to read.
        workers: how many processes to start; with 0 this one reads.
        progress: called with how many are done and how many there are; at least twice a second while others read.

    Yields:
        Number of the job, and the answer or a `Failure`.
    """
    order = sorted(range(len(jobs)), key=lambda number: -jobs[number].size)
    order.reverse()  # the next one stands at the end
    done = 0
    if workers and order:
        from profwin.evidence.pool import Pool  # a tenth of the start of a check, for the few that need it

        with Pool(function, jobs, order) as pool:
            for answer in pool.answers(workers):
                if answer is not None:
                    done += 1
                    yield answer
                progress(done, len(jobs))
    read = resolve(function) if order else None
    while read is not None and order:
        number = order.pop()
        with frugal():
            found = attempt(read, jobs[number].arguments)
        yield number, found
        done += 1
        progress(done, len(jobs))
