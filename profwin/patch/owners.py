"""Owners: which objects have a loop of a plan, and the training steps that events entered, in this process.

Owners are told apart by identity and held weakly. One object may own several loops, of different names.
"""

from __future__ import annotations

import os
import threading
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.hooks import Loop
    from profwin.session import Session
    from profwin.step import TrainingStep

__all__ = ["begin_step", "end_step", "forget", "loop_of"]

_lock = threading.Lock()
_loops: dict[tuple[str, str, int], tuple[Any, Loop]] = {}
_steps: dict[tuple[str, str, int], tuple[Any, Session, TrainingStep]] = {}


def loop_of(plan: str, name: str, owner: object, make: Callable[[], Loop]) -> Loop:
    """Return an owner's loop of a name; made by `make` where there is none.

    Raises:
        BaseException: what `make` raises; the next event tries again.
    """
    key = (plan, name, id(owner))
    found = _loops.get(key)
    if found is None or found[0]() is not owner:
        loop = make()
        with _lock:
            found = _loops.get(key)
            if found is None or found[0]() is not owner:
                found = _loops[key] = (_weak(owner, _loops, key), loop)
    return found[1]


def begin_step(plan: str, name: str, owner: object, session: Session, step: TrainingStep) -> None:
    """Enter a training step; the one before that the owner is in ends."""
    key = (plan, name, id(owner))
    end_step(plan, name, owner, session)
    step.__enter__()
    with _lock:
        _steps[key] = (_weak(owner, _steps, key), session, step)


def end_step(plan: str, name: str, owner: object, session: Session) -> None:
    """Leave the training step that the owner is in, if any; one of a session that has ended was left with it."""
    with _lock:
        found = _steps.pop((plan, name, id(owner)), None)
    if found is not None and found[1] is session and found[0]() is owner:
        found[2].__exit__(None, None, None)


def forget(plan: str | None = None) -> None:
    """Drop the loops and steps of a plan, or of all; what is open in them stays so until the session ends."""
    with _lock:
        for table in (_loops, _steps):
            for key in [key for key in table if plan is None or key[0] == plan]:
                del table[key]


def _weak(owner: object, table: dict[Any, Any], key: tuple[str, str, int]) -> Any:
    def gone(reference: object) -> None:
        # No lock: the collector may call this in a thread that holds it. The entry may be another owner's by now.
        found = table.get(key)
        if found is not None and found[0] is reference:
            table.pop(key, None)

    try:
        return weakref.ref(owner, gone)
    except TypeError:  # None, or an object with slots: it is held
        return lambda: owner


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    forget()


os.register_at_fork(after_in_child=_after_fork)
