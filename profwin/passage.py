"""The passage from a window or stage in user code to the owner of collections, and back."""

from __future__ import annotations

import sys
import threading

from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import TypeAlias

    from profwin.collection import Collection
    from profwin.interval import Interval
    from profwin.session import Session

    Entered: TypeAlias = tuple[Session, Interval]
    Prepare: TypeAlias = Callable[[], Entered | None]

__all__ = ["begin_span", "call_site", "enter", "enter_async", "leave", "resume"]

_TURN = 0.05
_ASYNC_TURN = 0.002
_PACKAGE = __name__.partition(".")[0] + "."
_PASSED = (_PACKAGE, "contextlib", "asyncio.", "functools")


class _Passing(BaseException):  # it never leaves this module
    """Carries a user's exception past what is caught of ours."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


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
    try:
        entered = prepare()
        if entered is None:
            return None
        session, interval = entered
        try:
            _drive(session, interval)
            _entered(session, interval)
        except BaseException:
            session.owner.leave(interval, failed=True)
            raise
    except _Passing as passing:
        raise passing.error from None
    except ProfwinError:
        raise
    except Exception as error:  # noqa: BLE001  # an error of ours must not end a training run
        _report(error)
        return None
    return entered


def resume(session: Session, interval: Interval) -> None:
    """Record an interval on that was paused in its body.

    Raises:
        ProfwinError: under ``strict`` only.
    """
    interval.collection = None
    try:
        _drive(session, interval)
        _taken_up(session, interval)
    except _Passing as passing:
        raise passing.error from None
    except ProfwinError:
        raise
    except Exception as error:  # noqa: BLE001  # an error of ours must not end a training run
        _report(error)


async def enter_async(prepare: Prepare) -> Entered | None:
    """Like :func:`enter`, without blocking the event loop while it waits; cancellation leaves nothing behind."""
    from asyncio import sleep

    try:
        entered = prepare()
        if entered is None:
            return None
        session, interval = entered
        entering = session.entrance.entering(interval, blocking=False)
        try:
            for _wait in entering:
                await sleep(_ASYNC_TURN)
            _entered(session, interval)
        except BaseException:
            entering.close()
            session.owner.leave(interval, failed=True)
            raise
    except ProfwinError:
        raise
    except Exception as error:  # noqa: BLE001  # an error of ours must not end a training run
        _report(error)
        return None
    return entered


def leave(entered: Entered, error: BaseException | None) -> None:
    """Let an interval end; its own exception, if any, is the caller's and is never replaced.

    Raises:
        ProfwinError: under ``strict``, where the body did not fail itself.
    """
    session, interval = entered
    if interval.left:  # in a forked child: it ends where it began
        return
    failed = error is not None and not isinstance(error, GeneratorExit)
    try:
        try:
            if interval.collection is not None and interval.collection.ranges is not None:
                interval.collection.ranges.end(interval.identifier)
            if failed:
                name = type(error).__name__
                session.journal.write("exit", id=interval.identifier, status="error", error=name)
            else:
                session.journal.write("exit", id=interval.identifier, status="ok")
        finally:  # for Ctrl-C
            if interval.what != "span":
                # A generator that is closed early has not failed, but is being left by an exception all the same.
                session.owner.leave(interval, failed=failed, raising=error is None)
    except ProfwinError:
        raise
    except Exception as problem:  # noqa: BLE001  # an error of ours must not end a training run
        _report(problem)


def _drive(session: Session, interval: Interval) -> None:
    entering = session.entrance.entering(interval, blocking=True)
    try:
        for wait in entering:
            try:
                wait(_TURN)
            except Exception as error:
                # Sleeping raises nothing of its own: a signal handler of the user's did, such as an alarm's.
                raise _Passing(error) from error
    finally:
        entering.close()


def _entered(session: Session, interval: Interval) -> None:
    collection = interval.collection
    session.journal.write(
        "enter", id=interval.identifier, what=interval.what, name=interval.name, step=interval.step,
        occurrence=interval.occurrence, role=interval.role, thread=threading.get_native_id(), site=interval.site,
        devices=interval.keys, collection=None if collection is None else collection.identifier,
    )  # fmt: skip
    if collection is not None and collection.ranges is not None and interval.scoped:
        collection.ranges.begin(interval.identifier, interval.name)


def _taken_up(session: Session, interval: Interval) -> None:
    collection = interval.collection
    if collection is not None:
        session.journal.write("join", id=interval.identifier, collection=collection.identifier)
        if collection.ranges is not None and interval.scoped:
            collection.ranges.begin(interval.identifier, interval.name)


def begin_span(session: Session, interval: Interval, collection: Collection) -> Entered:
    """Let a span begin inside a collection that is open; it is no member and keeps nothing open."""
    interval.collection = collection
    _entered(session, interval)
    return session, interval


def _report(error: Exception) -> None:
    import logging

    logging.getLogger("profwin").error("profwin failed; the block runs unprofiled: %r", error, exc_info=error)
