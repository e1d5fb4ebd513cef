"""Calls that are made side by side: in threads where they may be, else one after the other in the caller's.

Those that send a request and wait for its answer share a thread, however many they are: it sends all requests first.
Starting a thread for each of 16 Ray actors took 0.6 ms a thread, beside 1 ms of Ray's own for each actor (measured).
"""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, Protocol, TypeAlias

    class Asked(Protocol):
        """A request that was sent."""

        @property
        def until(self) -> float:
            """Until when, of ``time.monotonic``, the answer is waited for."""

        @property
        def done(self) -> bool:
            """Whether there is an answer, or none can come any more."""

        @property
        def failed(self) -> bool:
            """Whether none can come any more."""

        @staticmethod
        def gather(requests: Sequence[Any], seconds: float, /) -> None:
            """Wait for the answers to some of its kind until all have come, one fails, or so many seconds are over."""

    Asking: TypeAlias = Generator[Asked, None, None]
    Call: TypeAlias = Callable[[], object] | "Request"

__all__ = ["LOOP_GONE", "Request", "answered", "in_loop", "together"]

LOOP_GONE = "its event loop was closed before it was done"
_TURN = 0.05
"""Seconds after which a thread that waits for an event loop looks whether that is closed: nothing else tells it."""
_LOOK = 1.0
"""Seconds after which a thread that waits for answers looks whether anybody waits for it."""
_MOMENT = 1.0
"""Seconds that calls in other threads get to end once the caller was interrupted."""


class Request:
    """A call that sends a request and waits for the answer, which may be done in any thread.

    Args:
        work: makes a generator, which sends the request and yields it; then it is resumed, perhaps in another thread
            and before there is an answer, to take the answer or to wait for it by itself. It may also come to its end
            before.
    """

    __slots__ = ("work",)

    def __init__(self, work: Callable[[], Asking]) -> None:
        self.work = work

    def alone(self) -> None:
        """Make it, without any others."""
        for _ in self.work():
            pass


def answered(requests: Sequence[Asked], seconds: float) -> bool:
    """Wait for the answers to some requests of one kind, in this thread, and say whether all have come.

    Args:
        requests: at least one.
        seconds: how long; no longer once one has failed.
    """
    until, left = time.monotonic() + seconds, list(requests)
    while left and (remaining := until - time.monotonic()) > 0:
        left[0].gather(left, remaining)
        if any(each.failed for each in left):
            return False
        left = [each for each in left if not each.done]
    return not left


class _Round:
    """The calls of one round, and how each of them ended."""

    def __init__(self, calls: list[tuple[Call, bool]], undo: Callable[[int], object] | None) -> None:
        self._calls, self._undo = calls, undo
        self._mutex, self._over = threading.Lock(), False
        self._ending = threading.Condition(self._mutex)
        self.outcomes: list[BaseException | None] = [TimeoutError("it has not answered in time") for _ in calls]
        self._threads: list[threading.Thread] = []
        self._running = 0

    def make(self, number: int, rest: Asking | None = None, *, further: bool = False) -> BaseException | None:
        """Make a call, or the rest of it; return how it failed.

        Args:
            number: of the call.
            rest: of a request.
            further: whether this thread has further ones to make, which must not wait while this one is undone.
        """
        outcome: BaseException | None = None
        try:
            call = self._calls[number][0]
            if not isinstance(call, Request):
                call()
            for _ in rest or ():
                pass
        except BaseException as error:  # noqa: BLE001  # its caller gets it
            outcome = error
        self._ended(number, outcome, further=further)
        return outcome

    def _ended(self, number: int, outcome: BaseException | None, *, further: bool) -> None:
        with self._mutex:
            late = self._over
            if not late:
                self.outcomes[number] = outcome
        undo = self._undo if late and outcome is None else None
        if undo is not None and not (further and self.beside(undo, number)):
            undo(number)

    def beside(self, work: Callable[..., object], *arguments: object) -> bool:
        """Do some work in a thread; False where there can be none."""
        thread = threading.Thread(target=self._beside, args=(work, arguments), name="profwin-engines", daemon=True)
        with self._mutex:
            self._running += 1
        try:
            thread.start()
        except RuntimeError:  # too many threads, or (from Python 3.12) the interpreter is ending
            with self._mutex:
                self._running -= 1
            return False
        self._threads.append(thread)
        return True

    def _beside(self, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
        try:
            work(*arguments)
        finally:
            with self._ending:
                self._running -= 1
                self._ending.notify_all()

    def wait(self, seconds: float | None) -> None:
        """Wait for all threads, or for so many seconds."""
        # No `join` before they have ended: Python 3.11 takes a thread for dead where Ctrl-C comes in there (run).
        with self._ending:
            ended = self._ending.wait_for(lambda: self._running == 0, seconds)
        for thread in self._threads if ended else ():
            thread.join()

    def ask(self, requests: dict[int, Request], here: list[int]) -> None:
        """Make calls that are requests: send all, then take the answers as they come.

        Those that fail or are late, and all that are left when this thread is interrupted or the round is over, are
        dealt with each in a thread of its own: that may take long.

        Args:
            requests: by their numbers.
            here: gets the numbers of those that are completed in this thread.
        """
        waiting: dict[int, tuple[Asking, Asked]] = {}
        try:
            for number, request in requests.items():
                if not self._over:
                    self._send(number, request.work(), waiting)
            while waiting and not self._over:
                asked = [each for _, each in waiting.values()]
                left = min(each.until for each in asked) - time.monotonic()
                asked[0].gather([each for each in asked if type(each) is type(asked[0])], min(_LOOK, max(left, 0.0)))
                now = time.monotonic()
                for number in [key for key, (_, each) in waiting.items() if each.done or each.until <= now]:
                    self._take(number, waiting, here)
        finally:
            for number, (rest, _) in waiting.items():
                self._apart(number, rest)

    def _send(self, number: int, rest: Asking, waiting: dict[int, tuple[Asking, Asked]]) -> None:
        try:
            waiting[number] = rest, next(rest)
        except StopIteration:
            self._ended(number, None, further=True)
        except BaseException as error:
            self._ended(number, error, further=True)
            if not isinstance(error, Exception):
                raise

    def _take(self, number: int, waiting: dict[int, tuple[Asking, Asked]], here: list[int]) -> None:
        rest, asked = waiting.pop(number)
        if asked.failed or not asked.done:
            self._apart(number, rest)
            return
        here.append(number)
        outcome = self.make(number, rest, further=True)
        if outcome is not None and not isinstance(outcome, Exception):
            raise outcome

    def _apart(self, number: int, rest: Asking) -> None:
        if not self.beside(self.make, number, rest):
            self.make(number, rest)

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
    calls: list[tuple[Call, bool]],
    undo: Callable[[int], object] | None = None,
    patience: float | None = None,
) -> tuple[list[BaseException | None], BaseException | None]:
    """Make calls side by side, and wait for all of them.

    Args:
        calls: each with whether it may be made in any thread, as a :class:`Request` always may; the others are made in
            this one, in their order.
        undo: called with the number of a call that succeeds after this function has returned, in that call's thread.
        patience: seconds that the calls in other threads are waited for; None: until they end.

    Returns:
        How each call failed, None where it did not, a TimeoutError where it had not ended; and what interrupted this
        thread, such as Ctrl-C: the other calls get a moment then. Of calls in this thread that is the outcome, too,
        where it is not known whether they were made.
    """
    beside = [number for number, (call, anywhere) in enumerate(calls) if anywhere and not isinstance(call, Request)]
    here = [number for number, (call, anywhere) in enumerate(calls) if not anywhere and not isinstance(call, Request)]
    requests = {number: call for number, (call, _) in enumerate(calls) if isinstance(call, Request)}
    taken: list[int] = []
    made = _Round(calls, undo)
    interrupt: BaseException | None = None
    deadline = None if patience is None else time.monotonic() + patience
    free = not here and patience is None  # this thread may make some, too: a thread less
    if free and beside and not requests:
        here.append(beside.pop(0))
    try:
        if requests and not free:
            free = not made.beside(made.ask, requests, taken)
        here += [number for number in beside if not made.beside(made.make, number)]
        if requests and free:
            made.ask(requests, taken)
        for number in here:
            made.make(number)
        made.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except BaseException as error:  # noqa: BLE001  # returned to the caller, who has something to stop first
        interrupt = error
        made.wait(_MOMENT)
    interrupt = made.end(here + taken, interrupt)
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
