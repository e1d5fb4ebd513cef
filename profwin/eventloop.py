"""Waiting and working beside a running event loop, without blocking it. Works with asyncio's loops and uvloop."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.waits import LockWait, Turn

__all__ = ["beside", "in_thread", "until"]

_LONGEST = 0.2


async def until(wait: Turn | LockWait) -> None:
    """Sleep until it is worth looking again; cancellation ends it at once and leaves no descriptor registered."""
    loop = asyncio.get_running_loop()
    seconds, descriptor = wait.pause(_LONGEST)
    began, hung_up = time.monotonic(), False
    if descriptor is None:
        await asyncio.sleep(seconds)
    else:
        hung_up = await _hang_up(loop, descriptor, seconds)
    further = wait.woken(hung_up, time.monotonic() - began)
    if further > 0:
        await asyncio.sleep(further)


async def _hang_up(loop: asyncio.AbstractEventLoop, descriptor: int, seconds: float) -> bool:
    woken: asyncio.Future[bool] = loop.create_future()

    def wake(hung_up: bool) -> None:
        if not woken.done():
            woken.set_result(hung_up)

    timer = loop.call_later(seconds, wake, False)
    try:
        with suppress(NotImplementedError, OSError):  # only time tells then
            loop.add_reader(descriptor, wake, True)
        return await woken
    finally:
        timer.cancel()
        # Before the attempt closes the descriptor: its number may belong to another file a moment later.
        with suppress(NotImplementedError):
            loop.remove_reader(descriptor)


def beside(work: Callable[[], object]) -> None:
    """Run work in a thread of its own, for which nobody waits; in this one where there can be no other."""
    thread = threading.Thread(target=work, name="profwin-engine", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # too many threads, or (from Python 3.12) the interpreter is ending
        work()


async def in_thread(work: Callable[[], object]) -> None:
    """Run work in a thread of its own, to its end.

    Cancellation is delivered when the work is done, since what it starts must be stopped by somebody. It is a thread of
    its own because the loop's default executor may be full, or shut down.

    Raises:
        Exception: what the work raised.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    errors: list[BaseException] = []

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def body() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised again in the coroutine
            errors.append(error)
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(finish)

    beside(body)
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    if errors:
        raise errors[0]
