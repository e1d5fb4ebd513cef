"""Processes that read, of which none outlives the one that started them, and none can end it.

They are started as programs of their own rather than forked or spawned by ``multiprocessing``: the caller may have
threads, need not guard its main module, and the current directory is not searched for modules.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys

from profwin.evidence.attempt import Failure
from profwin.evidence.worker import receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from profwin.evidence.workers import Job

__all__ = ["Pool"]

PATIENCE = 0.5
"""Seconds between two calls of the progress function while nothing is answered."""

_PROGRAM = (
    "import json,sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from profwin.evidence.worker import main; main(sys.argv[2])"
)  # fmt: skip


class _Worker:
    """One process and the job that it has; without one until it is ready."""

    def __init__(self, function: str) -> None:
        # The module search path is this process's; `-I` keeps the current directory out of it.
        path = json.dumps([os.path.abspath(entry) for entry in sys.path])
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM, path, function],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.jobs, self.answers = self.process.stdin, self.process.stdout
        self.ready = False
        self.job: int | None = None

    def end(self, grace: float = 0.0) -> int:
        """Kill it, unless it ends by itself within some seconds, and return its exit status."""
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for pipe in (self.jobs, self.answers):
            try:
                pipe.close()
            except OSError:  # unsent bytes, and nobody to read them
                pass
        return self.process.wait()


class Pool:
    """Processes and what they are to read; used as a context, after which none of them is left.

    Args:
        function: ``module:name``, what reads.
        jobs: its arguments.
        order: numbers of the jobs; the last is taken first, and what is left in the end was not taken.
    """

    def __init__(self, function: str, jobs: Sequence[Job], order: list[int]) -> None:
        self._function, self._jobs, self._order = function, jobs, order
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._selector.close()

    def answers(self, number: int) -> Iterator[tuple[int, Any] | None]:
        """Yield answers until no job is left, or no process to do it; None where there has been none for a while."""
        for _ in range(number):
            self._start()
        while self._workers:
            events = self._selector.select(PATIENCE)
            if not events:
                yield None
            for key, _mask in events:
                yield from self._hear(key.data)

    def _start(self) -> None:
        try:
            worker = _Worker(self._function)
        except OSError:
            return  # too many processes, or no interpreter: whoever is left does it
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)

    def _hear(self, worker: _Worker) -> Iterator[tuple[int, Any]]:
        try:
            answer = receive(worker.answers)
        except EOFError:
            yield from self._bury(worker)
            return
        if worker.ready and worker.job is not None:
            yield worker.job, answer
        worker.ready, worker.job = True, None
        if not self._order:
            self._dismiss(worker)
            return
        worker.job = self._order.pop()
        try:
            send(worker.jobs, self._jobs[worker.job].arguments)
        except OSError:
            pass  # it has just died: heard of in a moment, at the other pipe

    def _bury(self, worker: _Worker) -> Iterator[tuple[int, Any]]:
        status = self._dismiss(worker, grace=1.0)  # its pipe is closed a moment before its status is known
        if worker.job is None:
            return  # it never began: the jobs are for the others, or for this process
        yield worker.job, Failure(_death(status), killed=True)
        if self._order:
            self._start()

    def _dismiss(self, worker: _Worker, grace: float = 0.0) -> int:
        self._selector.unregister(worker.answers)
        self._workers.remove(worker)
        return worker.end(grace)


def _death(status: int) -> str:
    if status >= 0:
        return f"its process ended with status {status}"
    try:
        return f"its process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"its process was ended by signal {-status}"
