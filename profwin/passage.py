"""The passage from a window or stage in user code to the owner of collections, and back."""

from __future__ import annotations

import sys
import threading
from functools import partial

from profwin.errors import ProfwinError
from profwin.waits import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import FrameType
    from typing import TypeAlias

    from profwin.collection import Collection
    from profwin.interval import Interval
    from profwin.session import Session

    Entered: TypeAlias = tuple[Session, Interval]
    Prepare: TypeAlias = Callable[[], Entered | None]
    PrepareAsync: TypeAlias = Callable[[], Entered | Awaitable[Entered | None] | None]

__all__ = ["GUARD", "begin_span", "call_site", "enter", "enter_async", "leave", "leave_async", "resume"]

_TURN = 0.2
_PACKAGE = __name__.partition(".")[0] + "."
_PASSED = (_PACKAGE, "contextlib", "asyncio.", "functools")


class _Passing(BaseException):  # it never leaves this module
    """Carries a user's exception past what is caught of ours."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Guard:
    """Keeps errors of profwin's own from user code: logs them, and lets pass what is the user's, misuse, or strict."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, _Passing):
            raise error.error from None
        if not isinstance(error, Exception) or isinstance(error, ProfwinError):
            return False
        import logging

        logging.getLogger("profwin").error("profwin failed; the block runs unprofiled: %r", error, exc_info=error)
        return True


GUARD = _Guard()


def call_site() -> str:
    """Return ``file:line`` of the nearest caller outside of profwin."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith(_PASSED):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def enter(prepare: Prepare) -> Entered | None:
    """Let an interval begin, waiting in this thread for as long as the rules and the budget say.

    Args:
        prepare: makes the interval, or returns None where nothing is to be recorded.

    Returns:
        What :func:`leave` needs; None where nothing was prepared, or where profwin failed, which is logged.

    Raises:
        ProfwinError: for misuse, and under ``strict``.
    """
    with GUARD:
        entered = prepare()
        if entered is None:
            return None
        session, interval = entered
        try:
            _drive(session, interval)
            _entered(session, interval)
        except BaseException:
            _unmark(interval)
            session.owner.leave(interval, failed=True)
            raise
        return entered
    return None


def resume(session: Session, interval: Interval) -> None:
    """Record an interval on that was paused in its body.

    Raises:
        ProfwinError: under ``strict`` only.
    """
    interval.collection = None
    with GUARD:
        _drive(session, interval)
        _taken_up(session, interval)


async def enter_async(prepare: PrepareAsync) -> Entered | None:
    """Like :func:`enter`, without blocking the event loop while it waits; cancellation leaves nothing behind."""
    from profwin.eventloop import in_thread, until

    with GUARD:
        prepared = prepare()
        entered = prepared if prepared is None or isinstance(prepared, tuple) else await prepared
        if entered is None:
            return None
        session, interval = entered
        entering = session.entrance.entering(interval, blocking=False)
        try:
            for wait in entering:
                await (in_thread(wait.run) if isinstance(wait, Job) else until(wait))
            _entered(session, interval)
        except BaseException as error:
            _unmark(interval)
            entering.close()
            await _without_blocking(interval, partial(session.owner.leave, interval, failed=True), error)
            raise
        return entered
    return None


async def leave_async(entered: Entered, error: BaseException | None) -> None:
    """Like :func:`leave`, without blocking the event loop while an engine stops, where it can be stopped from a thread.

    Cancellation is delivered when the engine has stopped. A coroutine or an async generator that is closed early does
    not wait: its engine is stopped beside it, and keeps its devices until it has stopped.
    """
    await _without_blocking(entered[1], partial(leave, entered, error), error)


async def _without_blocking(interval: Interval, work: Callable[[], object], error: BaseException | None) -> None:
    collection = interval.collection
    if collection is None or not collection.detached or collection.state == "closed":
        work()
        return
    from profwin.eventloop import beside, in_thread

    if isinstance(error, GeneratorExit):
        # The coroutine is being closed, and must not wait for anything any more.
        beside(work)
    else:
        await in_thread(work)


def leave(entered: Entered, error: BaseException | None) -> None:
    """Let an interval end; its own exception, if any, is the caller's and is never replaced.

    Raises:
        ProfwinError: under ``strict``, where the body did not fail itself.
    """
    session, interval = entered
    if interval.left:  # in a forked child: it ends where it began
        return
    failed = error is not None and not isinstance(error, GeneratorExit)
    with GUARD:
        try:
            _unmark(interval)
            if failed:
                name = type(error).__name__
                session.journal.write("exit", id=interval.identifier, status="error", error=name)
            else:
                session.journal.write("exit", id=interval.identifier, status="ok")
        except BaseException:
            _unmark(interval)  # it may have been what was interrupted
            raise
        finally:  # for Ctrl-C
            if interval.what != "span":
                # A generator that is closed early has not failed, but is being left by an exception all the same.
                for other in session.owner.leave(interval, failed=failed, raising=error is None):
                    resume(session, other)
            session.owner.close_due()


def _drive(session: Session, interval: Interval) -> None:
    entering = session.entrance.entering(interval, blocking=True)
    try:
        for wait in entering:
            try:
                if not isinstance(wait, Job):  # it yields none where its caller blocks
                    wait.block(_TURN)
            except Exception as error:
                # Sleeping raises nothing of its own: a signal handler of the user's did, such as an alarm's.
                raise _Passing(error) from error
    finally:
        entering.close()


def _entered(session: Session, interval: Interval) -> None:
    collection = interval.collection
    write = session.journal.write
    if interval.token is not None:
        write = partial(write, token=interval.token)
    write(
        "enter", id=interval.identifier, what=interval.what, name=interval.name, step=interval.step,
        occurrence=interval.occurrence, role=interval.role, thread=threading.get_native_id(), site=interval.site,
        devices=interval.keys, collection=None if collection is None else collection.identifier,
    )  # fmt: skip
    if collection is not None:
        _mark(interval, collection)


def _mark(interval: Interval, collection: Collection, *, resumed: bool = False) -> None:
    if collection.ranges is not None:
        purpose = collection.purpose if interval.what == "span" else interval.purpose
        collection.ranges.begin(interval, purpose, resumed=resumed)


def _unmark(interval: Interval) -> None:
    if interval.collection is not None and interval.collection.ranges is not None:
        interval.collection.ranges.end(interval.identifier)
    if interval.lasting_range is not None:  # perhaps of an earlier collection
        interval.lasting_range.end()


def _taken_up(session: Session, interval: Interval) -> None:
    collection = interval.collection
    if collection is not None:
        session.journal.write("join", id=interval.identifier, collection=collection.identifier)
        _mark(interval, collection, resumed=True)


def begin_span(session: Session, interval: Interval, collection: Collection) -> Entered:
    """Let a span begin inside a collection that is open; it is no member and keeps nothing open."""
    interval.collection = collection
    _entered(session, interval)
    return session, interval
