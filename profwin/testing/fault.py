"""Faults: what a fake was told to do wrong."""

from __future__ import annotations

import threading
import time

from profwin import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Event(Protocol):
        """Anything that becomes true once, such as ``threading.Event`` or one of ``multiprocessing``."""

        def is_set(self) -> bool:
            """Say whether it has become true."""


__all__ = ["Faults"]

_TURN = 1e-3


class _Fault:
    """One thing told: to fail, or to be late; ``times`` counts down."""

    def __init__(
        self, action: str, name: str | None, times: int | None, error: BaseException | None, until: float | Event | None
    ) -> None:
        self.action, self.name, self.times, self.error, self.until = action, name, times, error, until

    def strikes(self, action: str, name: str | None) -> bool:
        if action != self.action or self.name not in (None, name) or self.times == 0:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class Faults:
    """A fake's instructions; the fake asks before each of its actions. Usable from any thread.

    Args:
        actions: what the fake does, in its own words.
    """

    def __init__(self, *actions: str) -> None:
        self._actions = actions
        self._faults: list[_Fault] = []
        self._mutex = threading.Lock()

    def fail(
        self, action: str, error: BaseException | None = None, *, times: int | None = None, name: str | None = None
    ) -> None:
        """Let an action fail from now on.

        Args:
            action: which one.
            error: what it raises; default: a ``RuntimeError`` that names the action.
            times: how often; default: until :meth:`heal`.
            name: only for the window or stage of this name.

        Raises:
            ValueError: there is no such action.
        """
        self._add(action, name, times, error or RuntimeError(f"{action}: told to fail"), None)

    def delay(self, action: str, until: float | Event, *, times: int | None = None, name: str | None = None) -> None:
        """Let an action be late from now on.

        Args:
            action: which one.
            until: seconds on profwin's clock (a fake one counts), or an event that the test sets.
            times: how often; default: until :meth:`heal`, which also ends delays under way.
            name: only for the window or stage of this name.

        Raises:
            ValueError: there is no such action.
        """
        self._add(action, name, times, None, until)

    def heal(self) -> None:
        """Forget all faults; whoever is being delayed goes on at once."""
        with self._mutex:
            self._faults = []

    def waiting(self, action: str, name: str | None) -> Iterator[None]:
        """Yield for as long as an action is to be late, then raise if it is to fail; the caller sleeps at each turn."""
        with self._mutex:
            struck = [fault for fault in self._faults if fault.strikes(action, name)]
        for fault in struck:
            if fault.until is not None:
                yield from self._late(fault, fault.until)
        for fault in struck:
            if fault.error is not None:
                raise fault.error

    def happen(self, action: str, name: str | None = None) -> None:
        """Do an action's faults, in this thread."""
        for _turn in self.waiting(action, name):
            time.sleep(_TURN)

    async def happen_later(self, action: str, name: str | None = None) -> None:
        """Do an action's faults without blocking the event loop."""
        from asyncio import sleep

        for _turn in self.waiting(action, name):
            await sleep(_TURN)

    def _late(self, fault: _Fault, until: float | Event) -> Iterator[None]:
        if isinstance(until, (int, float)):
            end = clock.now() + until
            while fault in self._faults and clock.now() < end:
                yield
        else:
            while fault in self._faults and not until.is_set():
                yield

    def _add(
        self, action: str, name: str | None, times: int | None, error: BaseException | None, until: float | Event | None
    ) -> None:
        if action not in self._actions:
            raise ValueError(f"action={action!r} is not allowed: use one of {', '.join(self._actions)}")
        with self._mutex:
            self._faults.append(_Fault(action, name, times, error, until))
