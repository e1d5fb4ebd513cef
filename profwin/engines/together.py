"""Calls that are made side by side: in threads where they may be, else one after the other in the caller's."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["LOOP_GONE", "in_loop", "together"]

LOOP_GONE = "its event loop was closed before it was done"
_TURN = 0.05
"""Seconds after which a thread that waits for an event loop looks whether that is closed: nothing else tells it."""
_MOMENT = 1.0
"""Seconds that calls in other threads get to end once the caller was interrupted."""


class _Round:
    """The calls of one round, and how each of them ended."""

    def __init__(self, calls: list[tuple[Callable[[], object], bool]], undo: Callable[[int], object] | None) -> None:
        self._calls, self._undo = calls, undo
        self._mutex, self._over = threading.Lock(), False
        self.outcomes: list[BaseException | None] = [TimeoutError("it has not answered in time") for _ in calls]

    def make(self, number: int) -> None:
        """Make a call."""
        outcome: BaseException | None = None
        try:
            self._calls[number][0]()
        except BaseException as error:  # noqa: BLE001  # its caller gets it
            outcome = error
        with self._mutex:
            late = self._over
            if not late:
                self.outcomes[number] = outcome
        if late and outcome is None and self._undo is not None:
            self._undo(number)

    def end(self, here: list[int], interrupt: BaseException | None) -> BaseException | None:
        """Take no more outcomes; return what interrupted the round."""
        with self._mutex:
            self._over = True
        for number in here if interrupt is not None else ():
            if isinstance(self.outcomes[number], TimeoutError):
                self.outcomes[number] = interrupt  # it came in there, or right before or after
        interrupts = [error for error in self.outcomes if error is not None and not isinstance(error, Exception)]
        return interrupt or next(iter(interrupts), None)


def together(
    calls: list[tuple[Callable[[], object], bool]],
    undo: Callable[[int], object] | None = None,
    patience: float | None = None,
) -> tuple[list[BaseException | None], BaseException | None]:
    """Make calls side by side, and wait for all of them.

    Args:
        calls: each with whether it may be made in any thread; the others are made in this one, in their order.
        undo: called with the number of a call that succeeds after this function has returned, in that call's thread.
        patience: seconds that the calls in other threads are waited for; None: until they end.

    Returns:
        How each call failed, None where it did not, a TimeoutError where it had not ended; and what interrupted this
        thread, such as Ctrl-C: the other calls get a moment then. Of calls in this thread that is the outcome, too,
        where it is not known whether they were made.
    """
    here = [number for number, (_, anywhere) in enumerate(calls) if not anywhere]
    beside = [number for number, (_, anywhere) in enumerate(calls) if anywhere]
    if not here and beside and patience is None:
        here.append(beside.pop(0))  # a thread less
    made = _Round(calls, undo)
    threads: list[threading.Thread] = []
    interrupt: BaseException | None = None
    deadline = None if patience is None else time.monotonic() + patience
    try:
        for number in beside:
            thread = threading.Thread(target=made.make, args=(number,), name="profwin-engines", daemon=True)
            try:
                thread.start()
                threads.append(thread)
            except RuntimeError:  # too many threads, or (from Python 3.12) the interpreter is ending
                here.append(number)
        for number in here:
            made.make(number)
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except BaseException as error:  # noqa: BLE001  # returned to the caller, who has something to stop first
        interrupt = error
        for thread in threads:
            thread.join(_MOMENT)
    interrupt = made.end(here, interrupt)
    return list(made.outcomes), interrupt


def in_loop(loop: AbstractEventLoop, work: Callable[[], object]) -> None:
    """Do some work in an event loop that runs in another thread, and wait for it.

    Raises:
        RuntimeError: the loop was closed before it was done.
        BaseException: what the work raised.
    """
    done, errors = threading.Event(), []

    def body() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised again in the other thread
            errors.append(error)
        finally:
            done.set()

    loop.call_soon_threadsafe(body)
    while not done.wait(_TURN):
        if loop.is_closed():
            raise RuntimeError(LOOP_GONE)
    if errors:
        raise errors[0]
