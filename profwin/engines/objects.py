"""Engines that are plain objects with ``start_profile`` and ``stop_profile``."""

from __future__ import annotations

import os
from threading import get_ident
from weakref import WeakKeyDictionary

from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

__all__ = ["ObjectEngine"]

_OFFERED = ("directory", "profile_prefix", "metadata")
_NO_LOOP = "it is a coroutine function: use `async with`, in an event loop that is still running"
_TURN = 0.05
"""Seconds after which a thread that waits for an event loop looks whether that is closed: nothing else tells it."""
_accepting: WeakKeyDictionary[Any, list[str]] = WeakKeyDictionary()
"""Which of the keywords the function behind a method takes: to find out takes a tenth of a window that does nothing."""


class ObjectEngine:
    """Adapt an object.

    ``start_profile`` is called with those of the keywords ``directory``, ``profile_prefix`` and ``metadata`` that its
    signature names (vLLM's ``LLM`` takes the prefix; one that only has ``**kwargs`` gets none, since it may hand them
    to something that takes none: verl's ``LLMServerManager`` does); ``stop_profile`` without arguments, and its return
    confirms that nothing records any more. If it returns a path (a text, or pathlib's) or a list of paths, those are
    listed as the window's traces. Both may be coroutine functions: they run in the event loop of the ``async with``
    that opened the window.

    Three attributes are read where they exist: ``devices``, names as :func:`profwin.configure` takes them;
    ``process_ids``, the processes that record, by whose death an engine that cannot be asked any more is known to have
    stopped; and ``revocable``: True says that ``stop_profile`` may be called from any thread at any time, also while
    other methods run. Then another process that needs the device can have it, and a stop that takes long is not waited
    for longer than the wait budget. Without it both methods are called in the thread that enters and leaves the window,
    and must come to an end by themselves.

    Args:
        engine: the object.

    Raises:
        SettingError: one of the two methods is missing.
    """

    _loop: AbstractEventLoop | None = None
    _thread = 0

    def __init__(self, engine: object) -> None:
        for method in ("start_profile", "stop_profile"):
            if not callable(getattr(engine, method, None)):
                raise SettingError("engine", engine, "an object with the methods start_profile and stop_profile")
        self.target: Any = engine
        self.name = type(engine).__name__
        self.in_process = getattr(engine, "in_process", False) is True
        self.revocable = bool(getattr(engine, "revocable", False)) and not self.in_process
        self._named: list[str] = []

    @property
    def detached(self) -> bool:
        """Whether both methods may be called from any thread: it says so, or they run in an event loop anyway."""
        return self.revocable or self._loop is not None

    def attach(self, loop: AbstractEventLoop) -> None:
        """Use the event loop that runs in this thread, if the methods are coroutine functions."""
        if self._asynchronous():
            self._loop, self._thread = loop, get_ident()

    def obstacle(self) -> str | None:
        """Say that its methods are coroutine functions, where there is no event loop to run them in."""
        if self._loop is None:
            return _NO_LOOP if self._asynchronous() else None
        return _NO_LOOP if self._loop.is_closed() or self.needs(get_ident()) else None

    def _asynchronous(self) -> bool:
        from inspect import iscoroutinefunction

        return iscoroutinefunction(self.target.start_profile) or iscoroutinefunction(self.target.stop_profile)

    def needs(self, thread: int) -> bool:
        """Say whether the methods run in the event loop of a thread; not where that is closed, for then none can."""
        return self._loop is not None and self._thread == thread and not self._loop.is_closed()

    @property
    def devices(self) -> tuple[str, ...] | None:
        """The engine's own ``devices``, or None."""
        found = getattr(self.target, "devices", None)
        return None if found is None else (found,) if isinstance(found, str) else tuple(found)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The engine's own ``process_ids``, empty where it has none; and this process, where it records in it."""
        here = (os.getpid(),) if self.in_process else ()
        return tuple(dict.fromkeys((*here, *(getattr(self.target, "process_ids", None) or ()))))

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
        """Call ``start_profile``; whatever it raises passes."""
        values = dict(zip(_OFFERED, (directory, prefix, metadata), strict=True))
        self._finished(self.target.start_profile(**{name: values[name] for name in self._accepted()}))

    def stop(self) -> list[str]:
        """Call ``stop_profile``; whatever it raises passes, and means that the stop is not confirmed."""
        from pathlib import PurePath

        answer = self._finished(self.target.stop_profile())
        paths = answer if isinstance(answer, (list, tuple)) else [answer]
        self._named = [os.fspath(path) for path in paths if isinstance(path, (str, PurePath))]
        return self._named

    def export(self, directory: str, prefix: str) -> list[str]:  # noqa: ARG002  # the object was told where they belong
        """Return the traces that ``stop_profile`` named."""
        return self._named

    def _finished(self, answer: Any) -> Any:
        from inspect import iscoroutine

        if not iscoroutine(answer):
            if hasattr(answer, "__await__"):
                raise RuntimeError(f"it returned {answer!r}, which is not done yet: make it a coroutine function")
            return answer
        if self._loop is None or self._loop.is_closed() or self.needs(get_ident()):
            answer.close()
            raise RuntimeError(_NO_LOOP)
        return _run(answer, self._loop)

    def _accepted(self) -> list[str]:
        from functools import partial
        from inspect import isfunction, isroutine, signature

        start = self.target.start_profile
        # Of another object its class is looked at: comparing it, as `signature` does, may be a call that it notes.
        called = start if isroutine(start) or isinstance(start, partial) else type(start).__call__
        of = getattr(called, "__func__", None)  # a method is a new object each time
        lasting = isfunction(of)
        if lasting and of in _accepting:
            return _accepting[of]
        try:
            parameters = signature(called).parameters
        except (TypeError, ValueError):
            return []
        names = [name for name in _OFFERED if name in parameters]
        if lasting:
            _accepting[of] = names
        return names


def _run(coroutine: Any, loop: AbstractEventLoop) -> Any:
    """Run a coroutine in the event loop of another thread; return its result.

    Raises:
        RuntimeError: the loop was closed before it was done.
        Exception: what the coroutine raised.
    """
    from asyncio import run_coroutine_threadsafe
    from concurrent.futures import wait

    try:
        future = run_coroutine_threadsafe(coroutine, loop)
        while not wait([future], _TURN).done and not loop.is_closed():
            pass
        if future.done():
            return future.result()
    finally:
        # It has ended, unless the loop did before; closing it leaves no complaint that nobody awaited it.
        coroutine.close()
    raise RuntimeError(_NO_LOOP)
