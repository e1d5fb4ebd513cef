"""Work that a process of an actor was asked for, and the answer: of many such calls, waited for at once."""

from __future__ import annotations

import threading
import time
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Any

__all__ = ["NOT_CONNECTED", "Call"]

NOT_CONNECTED = (
    "this process is not connected to Ray: the actors of its job have ended with that, and a detached one records on"
)
_BRISK, _SLICE = 1.0, 0.2
"""Seconds that Ray waits for all answers by itself, which takes it less than futures do; at a time, for Ctrl-C."""
_TURN, _LONGEST = 0.005, 0.5


class Call:
    """A call to an actor, sent when it is made. One that answers ``pending`` is sent again, in growing pauses.

    Args:
        handle: of the actor.
        work: called with the actor, in its process. It is one argument in all, since Ray takes time for each.
        seconds: how long the answer is waited for.

    Attributes:
        until: when that is over, of ``time.monotonic``.
    """

    __slots__ = (
        "_brisk", "_connection", "_future", "_handle", "_outcome", "_pause", "_reference", "_resend", "_work", "until",
    )  # fmt: skip

    def __init__(self, handle: Any, work: Callable[[Any], dict[str, Any]], seconds: float) -> None:
        self._handle, self._work = handle, work
        self.until = time.monotonic() + seconds
        self._outcome: dict[str, Any] | BaseException | None = None
        self._pause = _TURN
        self._send()

    @property
    def done(self) -> bool:
        """Whether there is an answer, or none can come any more."""
        return self._outcome is not None

    @property
    def failed(self) -> bool:
        """Whether there is no answer, but an exception in its place."""
        return isinstance(self._outcome, BaseException)

    def result(self) -> dict[str, Any]:
        """Wait for the answer, and return it.

        Raises:
            TimeoutError: it has not come in time.
            Exception: whatever came in its place.
        """
        while self._outcome is None and (left := self.until - time.monotonic()) > 0:
            Call.gather([self], min(left, _BRISK))
        if self._outcome is None:
            raise TimeoutError("it has not answered in time")
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    @staticmethod
    def gather(calls: Sequence[Call], seconds: float) -> None:
        """Wait for answers, until all have come, one fails, or so many seconds are over; it may also return before."""
        connection = _connection()
        left = [call for call in calls if call._outcome is None and not call._cut_off(connection)]
        resent = min((call._resend for call in left if call._resend), default=None)
        if resent is not None:
            time.sleep(max(0.0, min(resent - time.monotonic(), seconds)))
            for call in left:
                if call._resend and call._resend <= time.monotonic():
                    call._send()
            return
        fresh = [call for call in left if call._future is None]
        if fresh and Call._by_ray(fresh, min(seconds, _SLICE)):
            return
        from concurrent.futures import FIRST_EXCEPTION, wait

        for call in fresh:
            call._listen()
        if not fresh:
            wait([call._future for call in left if call._future is not None], seconds, FIRST_EXCEPTION)
        for call in left:
            future = call._future
            if future is not None and future.done():
                problem = future.exception()
                call._take(future.result() if problem is None else problem)

    @staticmethod
    def _by_ray(calls: Sequence[Call], seconds: float) -> bool:
        """Have Ray wait for all; False where one has failed or is late.

        Not for long, and in the main thread alone: where Ray is shut down while another thread waits in it, or turns to
        it again, it ends the thread or the whole process (Ray 2.60). Nor in an actor with an event loop, whose user Ray
        then warns.
        """
        ray: Any = import_module("ray")
        if not _main() or not ray.is_initialized() or _has_loop():
            return False
        try:
            answers = ray.get([call._reference for call in calls], timeout=seconds)
        except ray.exceptions.GetTimeoutError:
            return min(call._brisk for call in calls) > time.monotonic()
        except Exception:  # noqa: BLE001  # whose it is, and what it is, is seen one by one
            return False
        for call, answer in zip(calls, answers, strict=True):
            call._take(answer)
        return True

    def _send(self) -> None:
        self._resend, self._brisk = 0.0, time.monotonic() + _BRISK
        self._future: Future[dict[str, Any]] | None = None
        self._connection = _connection()
        if not self._connection:  # Ray 2.60 would connect to any cluster that it finds, or start one
            self._outcome = RuntimeError(NOT_CONNECTED)
            return
        try:
            self._reference = self._handle.__ray_call__.remote(self._work)
            if not _main():
                self._listen()
        except Exception as error:  # noqa: BLE001  # it is told to who waits for the answer
            self._outcome = error

    def _cut_off(self, connection: int) -> bool:
        """Say whether Ray has been shut down since, so that no answer comes any more; then that is the outcome."""
        come = self._future is not None and self._future.done()
        if not come and self._connection != connection:
            self._outcome = RuntimeError(NOT_CONNECTED)
        return self._outcome is not None

    def _listen(self) -> None:
        self._future = self._reference.future()

    def _take(self, answer: dict[str, Any] | BaseException) -> None:
        if isinstance(answer, BaseException) or "pending" not in answer:
            self._outcome, self._reference = answer, None
            return
        self._resend = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST)


def _main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _connection() -> int:
    """Tell one connection to Ray from the next, without a call to it; 0: there is none."""
    if not import_module("ray").is_initialized():
        return 0
    return id(getattr(import_module("ray._private.worker").global_worker, "core_worker", None))


def _has_loop() -> bool:
    worker: Any = getattr(import_module("ray._private.worker").global_worker, "core_worker", None)
    return worker is not None and bool(worker.current_actor_is_asyncio())
