"""Ranges of NVTX, begun and ended so that they are balanced whatever happens in between.

NVTX has two kinds of ranges (its own header, ``nvToolsExt.h``):

- Push and pop: a stack for each thread and domain. A pop ends whatever was pushed last in its thread, so it must come
  from the thread of the push. Tools draw these as a tree, in their thread's row.
- Start and end: each has a number, and may end in any thread and any order. Tools draw them in a row of the process.

A range here is ended from any thread, any number of times. One that was pushed is popped in its own thread alone, once
nothing that was pushed later is open there: where it is ended by another thread, or out of order as generators do it,
that is put off to the next time that a range begins or ends in its thread. One that nobody can end any more, since the
object that stands for it is gone (Ctrl-C in the middle of leaving), counts as ended; there is no ``__del__``, in which
a Ctrl-C would get lost.

CPython runs signal handlers, switches threads and (from 3.12) collects garbage after calls, at jumps backward and where
a function begins. So nothing comes between a call of C and the plain statement before it: this is what keeps NVTX's
stacks and ours the same without a lock.
"""

from __future__ import annotations

import os
import threading
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NO_RANGE", "NoRange", "PushedRange", "StartedRange", "end_lost"]


class _Thread(threading.local):
    """What was pushed in one thread and not popped, the outermost first."""

    def __init__(self) -> None:
        self.stack: list[weakref.ref[PushedRange]] = []


_thread = _Thread()
_started: dict[int, tuple[weakref.ref[StartedRange], list[int]]] = {}
"""What was started in this process and not ended: what stands for it, and its number."""


def _settle(domain: Any) -> None:
    """Pop what has ended in this thread, as far as nothing that is open lies above it."""
    stack, pop = _thread.stack, domain.pop_range
    while stack:
        last = stack[-1]
        pushed = last()
        if pushed is not None and pushed.open:
            return
        # A signal handler may have popped it just now. From here on there is none until it is popped.
        if stack and stack[-1] is last:
            del stack[-1]
            pop()


def _end(domain: Any, numbers: list[int]) -> None:
    end = domain.end_range
    if numbers:
        number = numbers[0]
        del numbers[0]
        end(number)


def end_lost(domain: Any) -> None:
    """End the started ranges that nobody can end any more."""
    for key, (owner, numbers) in list(_started.items()):
        if owner() is None:
            _end(domain, numbers)
            _started.pop(key, None)


class PushedRange:
    """A range of the thread that makes it.

    Args:
        domain: an ``nvtx.Domain`` that a tool listens to; always the same one.
        attributes: the domain's ``EventAttributes`` of the range.

    Attributes:
        open: whether it has not been ended.
    """

    __slots__ = ("__weakref__", "_domain", "open")

    def __init__(self, domain: Any, attributes: Any) -> None:
        self.open, self._domain = True, domain
        _settle(domain)
        stack, push = _thread.stack, domain.push_range
        place = [weakref.ref(self)]
        stack += place
        push(attributes)

    def end(self) -> None:
        """End it: now, if this is its thread and nothing later is open there, else as soon as that is so."""
        self.open = False
        _settle(self._domain)


class StartedRange:
    """A range of the process.

    Args:
        domain: an ``nvtx.Domain`` that a tool listens to.
        attributes: the domain's ``EventAttributes`` of the range.
    """

    __slots__ = ("__weakref__", "_domain", "_numbers", "_process")

    def __init__(self, domain: Any, attributes: Any) -> None:
        self._numbers: list[int] = []
        self._domain, self._process = domain, _thread
        _started[id(self._numbers)] = weakref.ref(self), self._numbers
        self._numbers.extend(map(domain.start_range, (attributes,)))  # one call: it is begun and known, or neither

    @property
    def open(self) -> bool:
        """Whether it has not been ended."""
        return bool(self._numbers)

    def end(self) -> None:
        """End it, in whichever thread this is."""
        if self._process is _thread:  # else this is a forked child
            _end(self._domain, self._numbers)
            _started.pop(id(self._numbers), None)
        _settle(self._domain)


class NoRange:
    """What stands for a range where no tool listens."""

    __slots__ = ()
    open = True

    def end(self) -> None:
        """Do nothing."""


NO_RANGE = NoRange()


def _forked() -> None:
    """Forget the parent's ranges in a child: what began there ends there, and NVTX has begun none here."""
    global _thread
    _thread = _Thread()
    _started.clear()


os.register_at_fork(after_in_child=_forked)
