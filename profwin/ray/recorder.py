"""What runs in an actor's own process: ordinary windows there, around the profiler of the actor's methods.

A driver asks for it through ``__ray_call__``, which every Python actor of Ray has. Ray 2.60 runs that as a call of the
actor's like any other: after those that wait already in an actor without concurrency, in one of its threads in one with
``max_concurrency``. In an actor with coroutine methods the window is opened and closed in its event loop, and a call
may have to be asked again for its answer: see :mod:`profwin.ray.eventloop`.

An answer may be lost, and then Ray or the driver asks again; and calls of an actor with concurrency overtake each
other. So each start and stop has its effect once, whatever comes twice, late, or in another order.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module

from profwin.engines.procfs import family
from profwin.errors import ProfwinError
from profwin.ray.eventloop import asynchronous, perform, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.ray.eventloop import Work
    from profwin.window import Window

__all__ = ["begin", "end"]

_OFF = (
    "profwin is off in the actor's process: start it with runtime_env=profwin.ray.environment(), or ray.init with that"
)
_KEPT = 256
_PENDING = {"pending": True}
"""The answer of a call that is to be asked again."""

_mutex = threading.Lock()
_windows: dict[str, _Told] = {}
"""The windows that drivers have opened here, and not closed yet: each by what the driver calls it."""
_over: dict[str, dict[str, Any]] = {}
"""What has ended lately, and what its driver is told of that: no start may come after it any more."""
_newest: dict[tuple[str, str], int] = {}
"""The number of the latest window that a driver has begun here, by the driver and the window's name."""


class _Told:
    """What a driver has been told of a window: nothing yet, or how its start ended; and whether it ends."""

    __slots__ = ("answer", "ending", "name", "window")

    def __init__(self, name: str, window: Window) -> None:
        self.name, self.window = name, window
        self.answer: dict[str, Any] | None = None
        self.ending = False


class _Methods:
    """An actor as the object that an engine is made of."""

    def __init__(self, actor: Any, start: str, stop: str, revocable: bool) -> None:
        self.start_profile, self.stop_profile = getattr(actor, start), getattr(actor, stop)
        self.revocable = revocable or getattr(actor, "revocable", False) is True
        self.in_process = getattr(actor, "in_process", False) is True
        self.devices = getattr(actor, "devices", None)
        # With what is below its process: an engine's workers may outlive a killed actor.
        self.process_ids = tuple(getattr(actor, "process_ids", None) or family())


def begin(actor: Any, token: str, order: dict[str, Any]) -> dict[str, Any]:
    """Open a window around an actor's profiler, once: a second call for it waits for the first, and answers the same.

    A window of that name which a driver has left open here is closed first: that driver is gone, or was late.

    Args:
        actor: the instance.
        token: what the driver calls this window: the driver, a dot, and a number that is higher for each of its windows
            than for those before.
        order: ``step``, ``name``, ``version``, ``start``, ``stop``, ``devices``, ``revocable`` and ``max_seconds``.

    Returns:
        ``recorded``, and why it is not: ``reason`` as in the journal's skips, or ``"off"``, and ``detail``. A window
        that is not recorded is closed again. Of one that is, also ``process``: pid, start time, boot and host of this
        process, and the name of its run. Or ``pending``: it is under way, and is to be asked for again.
    """
    from profwin.configuration import current
    from profwin.window import rollout_window

    if current() is None:
        return _answer("off", _OFF)
    try:
        engine = _engine(actor, order)
        window = rollout_window(
            order["step"], engine=engine, devices=order["devices"] or _granted(engine, order), name=order["name"],
            weight_version=order["version"], max_seconds=order["max_seconds"],
        )  # fmt: skip
    except ProfwinError as error:  # a device's name is wrong, or a method is missing
        return _answer("engine", str(error))
    # An agent drives several engines, whose windows have one name and nothing to do with each other.
    what = f"{order['name']} of {order['scope']}" if "scope" in order else order["name"]
    with _mutex:
        told = _windows.get(token)
        if told is None and (token in _over or _overtaken(token, what)):
            return _answer("ended", "it was ended before it began")
        stale = [key for key, other in _windows.items() if other.name == what]
        first = told is None
        if told is None:
            told = _windows[token] = _Told(what, window)
            window.token = token
    if first:
        perform(_beginning(token, told, stale))
    elif not asynchronous():
        perform(until(lambda: told.answer is not None))
    return told.answer or _PENDING


def end(actor: Any, token: str) -> dict[str, Any]:  # noqa: ARG001  # __ray_call__ passes it
    """Close a window that `begin` opened, once: a second call for it waits for the first, and answers the same.

    Returns:
        ``known``: whether this process has opened it; ``detail``: what went wrong: that nothing confirms the engine's
        stop yet or, under ``strict``, whatever else. Or ``pending``, as for :func:`begin`.
    """
    with _mutex:
        told = _windows.get(token)
        if told is None:
            return _ended(token, _over.get(token, {"known": False, "detail": ""}))
    if not (told.ending and asynchronous()):
        perform(_ending(token))
    with _mutex:
        return _PENDING if token in _windows else _over.get(token, {"known": True, "detail": ""})


def _beginning(token: str, told: _Told, stale: list[str]) -> Work:
    answer = _answer("ended", "it was interrupted in the actor's process")
    try:
        for key in stale:
            yield from _ending(key)
            _ended(key, {"known": False, "detail": ""})  # whoever began it must not take it for whole
        yield told.window.open, told.window.aopen
        skipped = told.window.skipped
        recorded = told.window.recorded
        ended = "ended", "it was ended, or the step is not selected, in the actor's process"
        answer = {**_answer(), "process": _own()} if recorded else _answer(*(skipped or ended))
    except ProfwinError as error:  # under strict
        answer = _answer("foreign" if getattr(error, "foreign", False) else "engine", str(error))
    finally:
        told.answer = answer
        if not answer["recorded"]:
            yield from _ending(token)


def _ending(token: str) -> Work:
    from profwin.configuration import current

    with _mutex:
        told = _windows.get(token)
        first = told is not None and not told.ending
        if told is not None:
            told.ending = True
    if told is None or not first:
        yield from until(lambda: token not in _windows)
        return
    session, detail = current(), ""
    if session is not None:
        session.position.follow_board()  # steps that are not selected are never told here
    try:
        yield told.window.close, told.window.aclose
        yield from until(lambda: told.answer is not None)  # a start that is under way undoes itself
        closing = () if session is None else [each for each in session.owner.collections if each.state == "closing"]
        if any(each.name == told.name and each.purpose == "rollout" for each in closing):
            detail = "its stop is not confirmed within the wait budget of the actor's process, and it may still record"
    except ProfwinError as error:
        detail = str(error)
    finally:
        with _mutex:
            del _windows[token]
            _ended(token, {"known": True, "detail": detail})


def _overtaken(token: str, name: str) -> bool:
    """Say whether the driver has begun a later window of that name here already."""
    driver, _, number = token.rpartition(".")
    if not number.isdecimal():
        return False
    newest = _newest.get((driver, name), 0)
    _newest[driver, name] = max(newest, int(number))
    return int(number) < newest


def _ended(token: str, answer: dict[str, Any]) -> dict[str, Any]:
    _over[token] = answer
    while len(_over) > _KEPT:
        del _over[next(iter(_over))]
    return answer


def _answer(reason: str = "", detail: str = "") -> dict[str, Any]:
    return {"recorded": not reason, "reason": reason, "detail": detail}


def _own() -> tuple[object, ...]:
    from profwin.configuration import current
    from profwin.registry.host import host_name

    session = current()
    if session is None:
        return ()
    run = session.run
    return run.pid, run.start, run.boot, host_name(), run.name


def _engine(actor: Any, order: dict[str, Any]) -> Any:
    from profwin.engines import ObjectEngine
    from profwin.errors import SettingError

    if "engine" in order:
        from profwin.ray.served import carried

        return carried(order)
    for method in (order["start"], order["stop"]):
        if not callable(getattr(actor, method, None)):
            raise SettingError("actors", type(actor).__name__, f"actors with the method {method}")
    engine = ObjectEngine(_Methods(actor, order["start"], order["stop"], order["revocable"]))
    engine.name = getattr(type(actor), "__ray_actor_class__", type(actor)).__name__
    return engine


def _granted(engine: Any, order: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the devices that Ray has given to this actor, where nothing else says on which it records."""
    from profwin.configuration import current
    from profwin.ray.devices import granted
    from profwin.registry.device import contexts

    session = current()
    if "engine" in order or engine.devices is not None or session is None:
        return None
    if session.settings.devices is not None or contexts():
        return None
    return granted(import_module("ray").get_runtime_context().get_accelerator_ids(), os.environ) or None
