"""Rollout windows: the generation of a step, recorded here or by the engine that generates."""

from __future__ import annotations

import threading
from functools import partial

from profwin.configuration import current
from profwin.errors import StateError
from profwin.interval import Interval
from profwin.passage import call_site, enter, enter_async, leave, leave_async
from profwin.step import checked_seconds, checked_step
from profwin.switch import SWITCH, compiling
from profwin.wrap import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from profwin.session import Session

    Target = TypeVar("Target", bound=Callable[..., Any])

__all__ = ["Window", "rollout_window"]

_ROLE = "rollout"


class Window:
    """What :func:`rollout_window` returns: a context manager used once, or a decorator used any number of times."""

    __slots__ = (
        "_devices", "_engine", "_entered", "_max_seconds", "_mutex", "_name", "_state", "_step", "_version", "token",
    )  # fmt: skip

    def __init__(
        self,
        step: int | Callable[..., int],
        engine: object,
        devices: tuple[str, ...] | None,
        name: str,
        version: int | None,
        max_seconds: float | None,
    ) -> None:
        self._step, self._engine, self._devices, self._name = step, engine, devices, name
        self._version, self._max_seconds = version, max_seconds
        self.token: str | None = None  # what another process calls it that has this one open it
        self._state = "new"
        self._mutex = threading.Lock()
        self._entered: tuple[Session, Interval] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return Window, self._parts(self._step)

    @property
    def recorded(self) -> bool:
        """Whether the window is open and something records it."""
        interval = self._entered[1] if self._entered is not None else None
        return interval is not None and interval.collection is not None and interval.collection.state == "open"

    @property
    def skipped(self) -> tuple[str, str] | None:
        """Why the open window is not recorded: the journal's reason for it, and more in words; None where none is."""
        return None if self._entered is None else self._entered[1].skipped

    def open(self) -> None:
        """Begin the window, for trainers that have hooks instead of a block. Opening it twice changes nothing.

        Raises:
            StateError: it was closed already; a window is used once.
            ProfwinError: under ``strict``, if it cannot be recorded; it is then closed.
        """
        with self._mutex:
            if self._state == "closed":
                raise StateError(f"window {self._name!r} was closed", "call rollout_window() anew for each window")
            if self._state == "open":
                return
            self._state = "closed"  # unless it gets open
            self._begin(scoped=False)
            self._state = "open"

    def close(self) -> None:
        """End the window, from any thread.

        When several threads call it, one closes it and the others wait until it is closed. Closing one that was never
        opened does nothing but log a warning.

        Raises:
            ProfwinError: under ``strict``, if what was recorded is lost.
        """
        with self._mutex:
            if self._state == "new" and SWITCH.on:
                import logging

                logging.getLogger("profwin").warning("profwin: window %r was closed but never opened", self._name)
            self._state = "closed"
            self._end(None)

    def __enter__(self) -> Window:
        if SWITCH.on and not compiling():
            with self._mutex:
                self._take()
                self._begin(scoped=True)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._state == "open":
            with self._mutex:
                self._state = "closed"
                self._end(error)

    async def aopen(self) -> None:
        """Begin the window, like :meth:`open`, without blocking the event loop while it waits or its engine starts.

        Cancellation leaves nothing behind. Raises what :meth:`open` raises.
        """
        if self._state != "open":
            await self.__aenter__()

    async def aclose(self) -> None:
        """End the window, like :meth:`close`, without blocking the event loop while its engine stops.

        That is so for engines whose stop may be called from any thread, or is a coroutine function; others, and this
        process's own profilers, stop at once. Raises what :meth:`close` raises.
        """
        if self._mutex.locked():  # a thread is in open() or close()
            from profwin.eventloop import in_thread

            await in_thread(self.close)
        else:
            await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Window:
        if SWITCH.on:
            self._take()
            try:
                entered = await enter_async(self._prepare_async)
            except BaseException:
                self._state = "closed"
                raise
            with self._mutex:
                still = self._state == "open"
                if still:
                    self._entered = entered
            if entered is not None and not still:  # it was closed while it waited
                await leave_async(entered, None)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._mutex:
            self._state = "closed"
            entered, self._entered = self._entered, None
        if entered is not None:
            await leave_async(entered, error)

    def __call__(self, target: Target) -> Target:
        """Decorate a callable of any kind: each call is a window of its own."""
        wrapped: Target = wrap(target, self, always=True)
        return wrapped

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Window:
        """Return the window of one call."""
        step = self._step(*args, **kwargs) if callable(self._step) else self._step
        return Window(*self._parts(checked_step(step)))

    aenter = enter

    def _parts(self, step: Any) -> tuple[Any, ...]:
        return step, self._engine, self._devices, self._name, self._version, self._max_seconds

    def _take(self) -> None:
        if self._state != "new":
            raise StateError(
                f"window {self._name!r} of step {self._step} is already entered",
                "call rollout_window() anew for each window",
            )
        self._state = "open"

    def _begin(self, *, scoped: bool) -> None:
        self._entered = enter(partial(self._prepare, scoped=scoped))

    def _end(self, error: BaseException | None) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            leave(entered, error)

    def _prepare(self, *, scoped: bool) -> tuple[Session, Interval] | None:
        told = self._tell()
        if told is None:
            return None
        told[0].position.settle()
        return self._made(*told, scoped=scoped)

    async def _prepare_async(self) -> tuple[Session, Interval] | None:
        told = self._tell()
        if told is None:
            return None
        await told[0].position.settled()
        return self._made(*told, scoped=False, looped=True)

    def _tell(self) -> tuple[Session, int, bool] | None:
        """Say which step the loop is at; return the session, the step, and whether it is selected."""
        if not SWITCH.on:
            return None
        if callable(self._step):
            from profwin.errors import SettingError

            raise SettingError("step", self._step, "a number here: a callable is for the decorator")
        session = current()
        if session is None:
            return None
        return session, self._step, session.position.begin_rollout(self._step, self._version)

    def _made(
        self, session: Session, step: int, selected: bool, *, scoped: bool, looped: bool = False
    ) -> tuple[Session, Interval] | None:
        roles = session.settings.roles
        selected = selected and (roles is None or _ROLE in roles)
        if not selected and not session.owner.collections:
            return None
        from profwin.engines import adapt, of_ranks

        chosen, said = of_ranks(self._engine, session.settings.ranks)
        selected = selected and (chosen is not None if said else session.position.rank_selected())
        recorder = chosen if selected else self._engine
        engine = None if recorder is None else adapt(recorder, session.budget.whole)
        if getattr(engine, "parts", None) == ():  # they come and go, and none is there
            return None
        keys = session.keys(self._devices, engine)
        if not selected:
            ours, stands = engine is None or engine.in_process, keys or getattr(engine, "elsewhere", ())
            session.owner.end_windows(step, stands, ours=ours)
            return None
        if looped and engine is not None:
            from asyncio import get_running_loop

            engine.attach(get_running_loop())
        interval = Interval(
            "window", self._name, step, keys, call_site(), role=_ROLE, engine=engine, scoped=scoped,
            occurrence=session.position.number("window", step, self._name), version=self._version,
            max_seconds=self._max_seconds,
        )  # fmt: skip
        interval.token = self.token
        return session, interval


def rollout_window(
    step: int | Callable[..., int],
    *,
    engine: object = None,
    devices: str | Iterable[str] | None = None,
    name: str = "rollout",
    weight_version: int | None = None,
    max_seconds: float | None = None,
) -> Window:
    """Mark the generation of one step: ``with``, ``async with``, decorator, or ``open()`` and ``close()``.

    If the step is selected, the window is recorded: by the engine, where one is given, else by this process's backends.
    When it ends, its profiler has stopped and its devices are free for the first training stage; what other processes
    and the stages of this one do meanwhile stands in the concepts page on ordering. If the step is not selected it only
    says which step the loop is at. Several windows of one name in a step are numbered; one inside another of the same
    step joins it. Reward models, teachers and any other inference that shares devices with training are windows of
    another name.

    Args:
        step: the loop's step, from 0; as a decorator also a callable that is given the call's arguments and returns it.
        engine: an object with ``start_profile`` and ``stop_profile``, see :class:`profwin.engines.ObjectEngine`; vLLM's
            ``LLM`` or ``AsyncLLM``, SGLang's ``Engine``; a server of :mod:`profwin.engines`; or a list of these, which
            are started and stopped together, each with its own outcome.
        devices: devices that are recorded, where the engine does not say; as in :func:`profwin.configure`.
        name: of the window, in the journal and in paths.
        weight_version: version of the weights that generate; it stands in the traces of this window.
        max_seconds: after so many seconds, more than 0, the recording is cut: at the next window, stage or span that
            begins or ends in this process, or on time where the engine may be stopped at any time (``revocable``).

    Raises:
        SettingError: the step or the version is not a whole number from 0, ``max_seconds`` is no such number, or the
            engine lacks a method; or a list of engines is empty, or has one twice.
        StateError: the object is entered a second time.
        DeviceBusyError, BackendError, EngineError, RegistryError: under ``strict``, if it cannot be recorded.
    """
    if isinstance(devices, str):
        devices = (devices,)
    if not callable(step):
        step = checked_step(step)
    if weight_version is not None:
        weight_version = checked_step(weight_version, "weight_version")
    limit = checked_seconds(max_seconds)
    return Window(step, engine, None if devices is None else tuple(devices), name, weight_version, limit)
