"""Work in an actor's process: in the thread that Ray calls; where the actor has coroutine methods, in its event loop.

Ray 2.60 runs ``__ray_call__`` of such an actor *outside* of the loop, on a fiber of the thread that hands all calls to
it (read in Ray's sources, and run). A fiber may wait for the loop, and the thread goes on with other calls meanwhile.
But they share the thread's one stack of Python frames, so whoever has come last must go first: two calls that waited
there and went in another order crashed the process (SIGSEGV, with Python 3.11). So one call at a time waits there. Any
other begins its work in the loop and returns at once; it is asked again until that is done.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any, TypeAlias

    Work: TypeAlias = Generator[tuple[Callable[[], object], Callable[[], Coroutine[Any, Any, object]]], None, None]

__all__ = ["asynchronous", "perform", "until"]

_TURN = 0.01

_waits = False
"""Whether a call waits for the event loop in the thread that hands calls to it, which alone reads and sets this."""


def asynchronous() -> Any:
    """Return Ray's core worker in the process of an actor with an event loop; None in others."""
    worker: Any = import_module("ray._private.worker").global_worker.core_worker
    return worker if worker.current_actor_is_asyncio() else None


def perform(work: Work) -> None:
    """Do some work; in an actor with an event loop it may not be done yet when this returns.

    Args:
        work: yields each of its steps in two forms, of which one is called: one that blocks, and a coroutine function.
            What that raises is raised at the ``yield``.
    """
    worker = asynchronous()
    if worker is None:
        _blocking(work)
        return
    global _waits
    from inspect import signature

    describe: Any = import_module("ray._raylet").PythonFunctionDescriptor
    descriptor = describe(__name__, "work", "")
    if _waits:
        from asyncio import run_coroutine_threadsafe

        run_coroutine_threadsafe(_looped(work), worker.get_event_loop(descriptor, "")[0])
        return
    run: Any = worker.run_async_func_or_coro_in_event_loop  # as Ray itself runs a coroutine method
    more = {"is_actor_task": False} if "is_actor_task" in signature(run).parameters else {}  # Ray 2.60 has it
    _waits = True
    try:
        run(lambda: _looped(work), descriptor, "", **more)
    finally:
        _waits = False


def until(condition: Callable[[], bool]) -> Work:
    """Wait for what another call does."""
    import time

    async def looped() -> None:
        from asyncio import sleep

        await sleep(_TURN)

    while not condition():
        yield lambda: time.sleep(_TURN), looped


def _blocking(work: Work) -> None:
    try:
        step = next(work)
        while True:
            try:
                step[0]()
            except BaseException as error:  # noqa: BLE001  # the work's own affair
                step = work.throw(error)
            else:
                step = next(work)
    except StopIteration:
        pass


async def _looped(work: Work) -> None:
    try:
        step = next(work)
        while True:
            try:
                await step[1]()
            except BaseException as error:  # noqa: BLE001  # the work's own affair
                step = work.throw(error)
            else:
                step = next(work)
    except StopIteration:
        pass
