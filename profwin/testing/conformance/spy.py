"""A spy around a backend: it notes in which thread each thing happens, and fails where it is told to."""

from __future__ import annotations

import threading
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import Backend, Recording, Request

__all__ = ["POINTS", "Spy"]

POINTS = ("entry", "span", "step", "exit", "export")


class Spy:
    """Stands in for a backend, which does all the work.

    Args:
        backend: that one.

    Attributes:
        acts: what happened, in order: one of :data:`POINTS`, and the thread's identifier.
        faults: what is raised at which point: before the backend is asked, but at the exit after it has left.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.acts: list[tuple[str, int]] = []
        self.faults: dict[str, BaseException] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def open(self, request: Request) -> _Manager:
        """Return the backend's own context manager, watched."""
        return _Manager(self, self._backend.open(request))

    def threads(self, point: str) -> list[int]:
        """Return the threads in which a point was passed."""
        return [thread for name, thread in self.acts if name == point]

    def act(self, point: str) -> None:
        """Note that a point is passed, and fail there if told to."""
        self.acts.append((point, threading.get_ident()))
        if point in self.faults:
            raise self.faults[point]


class _Manager:
    def __init__(self, spy: Spy, manager: AbstractContextManager[Recording]) -> None:
        self._spy, self._manager = spy, manager

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def __enter__(self) -> _Recording:
        self._spy.act("entry")
        return _Recording(self._spy, self._manager.__enter__())

    def __exit__(self, *exception: object) -> None:
        self._manager.__exit__(None, None, None)  # what a collection gives it, whatever the body raised
        self._spy.act("exit")


class _Recording:
    def __init__(self, spy: Spy, recording: Recording) -> None:
        self._spy, self._recording = spy, recording

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._recording, name)
        return partial(self._range, found) if name in ("loose_span", "lasting_range") else found

    def _range(self, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._spy.act("span")
        return make(*args, **kwargs)

    def span(self, name: str) -> AbstractContextManager[object]:
        self._spy.act("span")
        return self._recording.span(name)

    def step(self) -> None:
        self._spy.act("step")
        self._recording.step()

    def export(self) -> list[str]:
        self._spy.act("export")
        return self._recording.export()
