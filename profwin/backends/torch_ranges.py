"""Ranges of the user's own, ``torch.profiler.record_function``, that are open while our torch recording stops.

What torch 2.13 does, measured on its CPU build, and what follows here:

- The end of a range writes to the recording under which the range began, and asks only whether any profiler records.
  So a range that begins in one recording and ends in a later one writes to memory that is free by then: the interpreter
  dies, nearly every time. So ours ends the ranges that are open in it, from whichever thread, right before it stops:
  what passed of them is in the trace.
- The second end of a range does nothing, and neither does an end while no profiler records. So a range that was ended
  here needs no more care.
- A range that began before our recording may be of another profiler, which has stopped. So its end inside ours is put
  off until ours has stopped; for one that nothing records the end does nothing, now or then. This does not reach a
  ``with`` that was entered before: it has torch's own method in hand.
- Nothing lists the ranges that are open. A search among all objects of the garbage collector needs no patch, but takes
  85 ms a stop for 1.3 million objects, with everything standing still, and finds nothing after ``gc.freeze``. So the
  two methods of the class are replaced, from the start to the stop of a recording, at 0.6 us a range of 4.3 us. Dynamo
  knows the class by its identity and TorchScript follows ``__wrapped__``, so both are unaffected.

Only what Python's ``record_function`` opens is seen, not what torch opens inside itself: ``docs/concepts/limits.md``.
"""

from __future__ import annotations

import functools
import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["OpenRanges", "watch"]

_PATIENCE = 1.0  # seconds for other threads' ends that are under way; they take microseconds
_METHODS = ("__enter__", "__exit__")


class OpenRanges:
    """The user's ranges that began in one recording and have not ended. Safe to use from any thread.

    Users' threads take no lock here: each step is one operation on a dictionary, and who takes a range out of ``begun``
    is the one who ends it.
    """

    def __init__(self) -> None:
        self.begun: dict[int, Any] = {}
        self.ending: dict[int, int] = {}  # by which threads
        self.put_off: list[Any] = []

    def end_all(self) -> None:
        """End every range, the latest first, while the profiler still records."""
        while self.begun:
            try:
                _end(self.begun.popitem()[1].record)
            except KeyError:  # another thread took the last one
                break
        mine, deadline = threading.get_ident(), time.monotonic() + _PATIENCE
        while any(thread != mine for thread in list(self.ending.values())) and time.monotonic() < deadline:
            time.sleep(0.0001)

    def close(self) -> None:
        """Watch no more, after the profiler has stopped, or did not start. Idempotent."""
        global _current
        with _mutex:
            if _current is self:
                _current = None
                _restore()
        if _recording():
            # Another profiler took over: these must never end before it does, so they are kept.
            _kept.extend(self.put_off)
        else:
            for record in self.put_off + _kept:
                _end(record)
            _kept.clear()
        self.put_off.clear()


_mutex = threading.RLock()
_current: OpenRanges | None = None
_kept: list[Any] = []
_replaced: list[tuple[str, Any, Any]] = []  # method, what was there, what we put there
_warned = False


def watch() -> OpenRanges | None:
    """Watch ranges from now on, for one recording; call it right before the profiler starts. The latest call counts.

    Returns:
        None where this torch does not allow it, which is said once, as a warning of the logger ``profwin``.
    """
    global _current, _warned
    if (missing := _missing()) is not None:
        if not _warned:
            import logging

            _warned = True
            logging.getLogger("profwin").warning(
                "ranges of record_function are not watched, since this torch has no %s: end your own before the window "
                "or stage ends in which they began, or the interpreter may crash",
                missing,
            )
        return None
    ranges = OpenRanges()
    with _mutex:
        if _current is None:
            _replace()
        _current = ranges
    return ranges


def _missing() -> str | None:
    """Name what the installed torch lacks of the things that are relied on here."""
    import torch
    from torch.profiler import record_function

    for name in _METHODS:
        if not callable(vars(record_function).get(name)):
            return f"record_function.{name}"
    for name in ("record", "run_callbacks_on_exit"):
        if name not in vars(record_function("profwin")):
            return f"record_function.{name}"
    if not hasattr(getattr(torch.ops.profiler, "_record_function_exit", None), "_RecordFunction"):
        return "profiler::_record_function_exit"
    return None


def _recording() -> bool:
    from torch.autograd import _profiler_enabled, profiler  # type: ignore[attr-defined]  # not in its __all__

    return bool(profiler._is_profiler_enabled or _profiler_enabled())


def _end(record: Any) -> None:
    import torch

    if record is not None:  # else another's patch of __enter__ began none
        with torch._C.DisableTorchFunctionSubclass():
            torch.ops.profiler._record_function_exit._RecordFunction(record)


def _replace() -> None:
    from torch.profiler import record_function

    for name, make in zip(_METHODS, (_entering, _leaving), strict=True):
        before = vars(record_function)[name]
        ours = make(before)
        _replaced.append((name, before, ours))
        setattr(record_function, name, ours)


def _restore() -> None:
    from torch.profiler import record_function

    for name, before, ours in _replaced:
        # Where somebody has patched the method since, ours is inside theirs, stays, and does nothing.
        if vars(record_function).get(name) is ours:
            setattr(record_function, name, before)
    _replaced.clear()


def _entering(enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(enter)
    def entering(self: Any) -> Any:
        # Read before: one that is noted with a recording that has stopped meanwhile is merely put off later, whereas
        # one that is noted with the next would be ended in it.
        ranges = _current
        entered = enter(self)
        if ranges is not None:
            ranges.begun[id(self)] = self
        return entered

    return entering


def _leaving(leave: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(leave)
    def leaving(self: Any, *exception: Any) -> Any:
        ranges = _current
        key = id(self)
        # A range whose end waits for a future is not ended by this, and one that is being ended came through a second
        # wrapper of ours that somebody else's patch has kept.
        if ranges is None or not self.run_callbacks_on_exit or key in ranges.ending:
            return leave(self, *exception)
        try:
            ranges.ending[key] = threading.get_ident()
            if ranges.begun.pop(key, None) is not None:
                return leave(self, *exception)
            ranges.put_off.append(self.record)
            self.run_callbacks_on_exit = False
            try:
                return leave(self, *exception)
            finally:
                self.run_callbacks_on_exit = True
        finally:
            ranges.ending.pop(key, None)

    return leaving


def _forked() -> None:
    """Forget the parent's other threads, in a child."""
    global _mutex
    _mutex = threading.RLock()
    if _current is not None:
        _current.ending.clear()


os.register_at_fork(after_in_child=_forked)
