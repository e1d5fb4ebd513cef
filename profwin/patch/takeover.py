"""Takeovers: wrappers for what needs the call whole, its result or whether it is made at all.

Like those of :mod:`profwin.wrap` they are plain functions of the target's kind, and hold nothing of a call.
"""

from __future__ import annotations

import functools
from types import FunctionType

from profwin.switch import SWITCH, compiling
from profwin.wrap import dressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Taker(Protocol):
        """What makes the calls of a target. It pickles."""

        def call(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            """Make a call, or not; return its result."""

        async def acall(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            """Make a call of a coroutine function, or not; return its result."""


__all__ = ["proxy", "takeover"]


def takeover(target: Any, taker: Taker, *, off: bool = False) -> Any:
    """Return a function of the target's kind whose calls a taker makes while profwin is on.

    Args:
        target: a function or coroutine function, perhaps in a static or class method.
        taker: makes the calls.
        off: let it make them while profwin is off, too.

    Raises:
        TypeError: the target is a generator function, whose calls do nothing, or no Python function.
    """
    if isinstance(target, staticmethod | classmethod):
        return type(target)(takeover(target.__func__, taker, off=off))
    import inspect

    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise TypeError("is a generator function, whose calls only begin it")
    if not isinstance(target, FunctionType):
        raise TypeError("is no Python function")
    make = _around_coroutine if inspect.iscoroutinefunction(target) else _around_function
    return dressed(make(target, taker, off), target)


def _around_function(target: Callable[..., Any], taker: Taker, off: bool) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if (SWITCH.on or off) and not compiling():
            return taker.call(target, args, kwargs)
        return target(*args, **kwargs)

    return wrapper


def _around_coroutine(target: Callable[..., Any], taker: Taker, off: bool) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if (SWITCH.on or off) and not compiling():
            return await taker.acall(target, args, kwargs)
        return await target(*args, **kwargs)

    return wrapper


def proxy(target: Any, wrapper: Callable[..., Any], mark: str) -> Any:
    """Return an object that stands for a callable which is no Python function, and whose calls go to a wrapper of it.

    It has the target's type and attributes. What has a name is pickled and copied by it, anything else as if there were
    no proxy. ``wrapt`` is imported here alone.

    Args:
        target: a C function, a compiled one, or an object with ``__call__``.
        wrapper: what is called instead, while profwin is on.
        mark: name of an attribute by which the proxy's type is known.

    Raises:
        ImportError: wrapt is not installed.
    """

    def passes(called: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return wrapper(*args, **kwargs) if SWITCH.on else called(*args, **kwargs)

    return _proxies(mark)(target, passes)


@functools.cache
def _proxies(mark: str) -> Any:
    import copy

    import wrapt

    base: Any = wrapt.FunctionWrapper

    class Proxy(base):  # type: ignore[misc]  # it is generic for type checkers alone
        def __reduce_ex__(self, protocol: Any) -> Any:
            name = getattr(self.__wrapped__, "__qualname__", None)
            return name or (_same, (self.__wrapped__,))

        def __copy__(self) -> Any:
            return self if hasattr(self.__wrapped__, "__qualname__") else copy.copy(self.__wrapped__)

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            named = hasattr(self.__wrapped__, "__qualname__")
            return self if named else copy.deepcopy(self.__wrapped__, memo)

    setattr(Proxy, mark, True)
    return Proxy


def _same(target: Any) -> Any:
    return target
