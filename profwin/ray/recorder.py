"""What runs in an actor's own process: ordinary windows there, around the profiler of the actor's methods.

A driver asks for it through ``__ray_call__``, which every Python actor of Ray has. Ray 2.60 runs that as a call of the
actor's like any other: after those that wait already in an actor without concurrency, in one of its threads in one with
``max_concurrency``. In an actor with coroutine methods it runs *outside* of the event loop, in the thread that hands
calls to it, which must not be blocked (read in Ray's sources, and run): there the window is opened and closed in the
loop.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module

from profwin.engines.procfs import parents, within
from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from profwin.window import Window

__all__ = ["begin", "end"]

_OFF = (
    "profwin is off in the actor's process: start it with runtime_env=profwin.ray.environment(), or ray.init with that"
)
_KEPT = 256

_mutex = threading.Lock()
_windows: dict[str, tuple[str, Window]] = {}
"""The windows that drivers have opened here: each by what the driver calls it, with its name."""
_over: dict[str, None] = {}
"""What ended before it began: calls of an actor with concurrency overtake each other."""


class _Methods:
    """An actor as the object that an engine is made of."""

    def __init__(self, actor: Any, start: str, stop: str, revocable: bool) -> None:
        self.start_profile, self.stop_profile = getattr(actor, start), getattr(actor, stop)
        self.revocable = revocable or getattr(actor, "revocable", False) is True
        self.in_process = getattr(actor, "in_process", False) is True
        self.devices = getattr(actor, "devices", None)
        # With what is below its process: an engine's workers may outlive a killed actor.
        self.process_ids = tuple(getattr(actor, "process_ids", None) or within(os.getpid(), parents()))


def begin(actor: Any, token: str, order: dict[str, Any]) -> dict[str, Any]:
    """Open a window around an actor's profiler.

    A window of that name which a driver has left open here is closed first: that driver is gone, or was late.

    Args:
        actor: the instance.
        token: what the driver calls this window.
        order: ``step``, ``name``, ``version``, ``start``, ``stop``, ``devices``, ``revocable`` and ``max_seconds``.

    Returns:
        ``recorded``, and why it is not: ``reason`` as in the journal's skips, or ``"off"``, and ``detail``. A window
        that is not recorded is closed again.
    """
    from profwin.configuration import current
    from profwin.window import rollout_window

    if current() is None:
        return _answer("off", _OFF)
    try:
        engine = _engine(actor, order)
        window = rollout_window(
            order["step"], engine=engine, devices=order["devices"] or _granted(engine), name=order["name"],
            weight_version=order["version"], max_seconds=order["max_seconds"],
        )  # fmt: skip
        with _mutex:
            stale = [key for key, (name, _) in _windows.items() if name == order["name"]]
            if token in _over:
                return _answer("ended", "it was ended before it began")
            _windows[token] = order["name"], window
        for key in stale:
            end(actor, key)
        _do(window.open, window.aopen)
        skipped = window.skipped
        if window.recorded:
            return _answer()
    except ProfwinError as error:  # under strict, or a device's name is wrong
        skipped = ("foreign" if getattr(error, "foreign", False) else "engine"), str(error)
    end(actor, token)
    return _answer(*(skipped or ("ended", "it was ended, or the step is not selected, in the actor's process")))


def end(actor: Any, token: str) -> dict[str, Any]:  # noqa: ARG001  # __ray_call__ passes it
    """Close a window that `begin` opened.

    Returns:
        ``known``: whether this process has opened it; ``detail``: what went wrong, under ``strict``.
    """
    from profwin.configuration import current

    with _mutex:
        _name, window = _windows.pop(token, ("", None))
        if window is None:
            _over[token] = None
            while len(_over) > _KEPT:
                del _over[next(iter(_over))]
    if window is None:
        return {"known": False, "detail": ""}
    session = current()
    if session is not None:
        session.position.follow_board()  # steps that are not selected are never told here
    try:
        _do(window.close, window.aclose)
    except ProfwinError as error:
        return {"known": True, "detail": str(error)}
    return {"known": True, "detail": ""}


def _answer(reason: str = "", detail: str = "") -> dict[str, Any]:
    return {"recorded": not reason, "reason": reason, "detail": detail}


def _engine(actor: Any, order: dict[str, Any]) -> Any:
    from profwin.engines import ObjectEngine
    from profwin.errors import SettingError

    for method in (order["start"], order["stop"]):
        if not callable(getattr(actor, method, None)):
            raise SettingError("actors", type(actor).__name__, f"actors with the method {method}")
    engine = ObjectEngine(_Methods(actor, order["start"], order["stop"], order["revocable"]))
    engine.name = getattr(type(actor), "__ray_actor_class__", type(actor)).__name__
    return engine


def _granted(engine: Any) -> tuple[str, ...] | None:
    """Return the devices that Ray has given to this actor, where nothing else says on which it records."""
    from profwin.configuration import current
    from profwin.ray.devices import granted
    from profwin.registry.device import contexts

    session = current()
    if engine.devices is not None or session is None or session.settings.devices is not None or contexts():
        return None
    return granted(import_module("ray").get_runtime_context().get_accelerator_ids(), os.environ) or None


def _do(blocking: Callable[[], None], looped: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do something in this thread, or in the event loop of an actor that has one."""
    worker: Any = import_module("ray._private.worker").global_worker.core_worker
    if not worker.current_actor_is_asyncio():
        blocking()
        return
    from inspect import signature

    # As Ray itself runs a coroutine method: this thread goes on with other calls of the actor until it is done.
    run: Any = worker.run_async_func_or_coro_in_event_loop
    describe: Any = import_module("ray._raylet").PythonFunctionDescriptor
    more = {"is_actor_task": False} if "is_actor_task" in signature(run).parameters else {}  # Ray 2.60 has it
    run(looped, describe(__name__, "window", ""), "", **more)
