"""Decorators that leave plain functions of the same kind as what they decorate.

Ray, cloudpickle and ``inspect`` handle plain functions right and strip or refuse everything else (Ray 2.60
and cloudpickle 3.1 drop a wrapt proxy without an error and run the undecorated function; measured). A wrapper
holds its target and its region, which are fixed, and nothing of a call. It finds the switch by reference,
wherever it travels.
"""

from __future__ import annotations

import functools
import sys
from types import CodeType, FunctionType, MethodType, coroutine

from profwin.switch import SWITCH, compiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from typing import Any, Protocol

    class Region(Protocol):
        """What a wrapper opens around a call. It pickles: a function that travels by value takes it along."""

        def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> AbstractContextManager[object, None]:
            """Return a fresh context manager for one call with these arguments, which it must not change."""

        def aenter(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> AbstractAsyncContextManager[object, None]:
            """Return the same for a coroutine or an async generator."""


__all__ = ["dressed", "name_of", "wrap"]

# The interpreter's code flags (the numbers that the standard library's inspect module names).
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


def wrap(target: Any, region: Region, *, always: bool) -> Any:
    """Return *target* with *region* around each call of it; the result is a callable of the same kind.

    Whether a call opens the region is decided when its body starts: at the call, the first ``await`` or the
    first ``next``. The region ends with the body: on return or exception, when the coroutine finishes, when
    the generator is exhausted, closed or collected. Arguments, results, sent and thrown values pass
    untouched, under any name. A call that Dynamo traces is the undecorated one.

    Generators lose what ``yield from`` loses: ``throw(GeneratorExit)`` acts as ``close()``, and ``close()``
    returns None (since Python 3.13 it could return a value).

    Args:
        target: a function (compiled and built-in ones too), coroutine function, generator function, async
            generator function, static or class method, bound method, partial, partialmethod, or object with
            ``__call__``. A partial, built-in function or callable object becomes a plain function, so it
            binds in a class body: put ``staticmethod`` around it there. A bound method stays one, so that a
            deep copy of its object calls the copy; the standard ``pickle`` looks it up by name, and so finds
            the method that the class has.
        region: opens what surrounds a call.
        always: False: only calls in a step whose stages may have to be recorded open the region (training
            stages). True: every call in a process that is on does (rollout windows, which know their step).

    Raises:
        TypeError: *target* is a class, a property, a torch module or not callable; the message says what to
            do instead.
    """
    if type(target) is FunctionType:
        return dressed(_closure(target, region, always), target)
    return _wrap_other(target, region, always)


def dressed(wrapper: Callable[..., Any], target: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of a function with that one's name, documentation and attributes."""
    functools.update_wrapper(wrapper, target)
    # torch.compile marks what it returns; Dynamo would follow a copied mark past this wrapper.
    for mark in [key for key in wrapper.__dict__ if key.startswith("_torchdynamo_")]:
        del wrapper.__dict__[mark]
    return wrapper


def name_of(target: object) -> str:
    """Return the name of a callable as its author wrote it, seen through partials and descriptors."""
    inner = _innermost(target)
    return str(getattr(inner, "__name__", None) or type(inner).__name__)


def _wrap_other(target: Any, region: Region, always: bool) -> Any:
    if isinstance(target, staticmethod | classmethod):
        return type(target)(wrap(target.__func__, region, always=always))
    if isinstance(target, functools.partialmethod):
        return type(target)(wrap(target.func, region, always=always), *target.args, **target.keywords)
    if isinstance(target, MethodType):
        return MethodType(wrap(target.__func__, region, always=always), target.__self__)
    _refuse(target)
    wrapper = _closure(target, region, always)
    inner = _innermost(target)
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    # An object's attributes are its own state: copies of them on the wrapper would go stale.
    functools.update_wrapper(wrapper, named, updated=())
    wrapper.__dict__["__wrapped__"] = target
    return wrapper


def _refuse(target: Any) -> None:
    torch = sys.modules.get("torch")
    if isinstance(target, type):
        problem = "is a class: decorate one of its methods"
    elif isinstance(target, property | functools.cached_property):
        problem = "is a property: put @property above this decorator, so that the getter is what it decorates"
    elif torch is not None and hasattr(torch, "nn") and isinstance(target, torch.nn.Module):
        problem = "is a torch module: decorate its class's forward, or pass module.forward"
    elif not callable(target):
        problem = "is not callable: pass a function or method"
    else:
        return
    raise TypeError(f"{name_of(target)!r} {problem}, or use the `with` form around the block")


def _innermost(target: Any) -> Any:
    while True:
        if isinstance(target, functools.partial | functools.partialmethod):
            target = target.func
        elif isinstance(target, staticmethod | classmethod | MethodType):
            target = target.__func__
        else:
            return target


def _flags(target: Any) -> int:
    inner = _innermost(target)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, CodeType):
        call = getattr(type(inner), "__call__", None)  # noqa: B004 - the method itself is wanted
        code = getattr(call, "__code__", None)
    flags = code.co_flags if isinstance(code, CodeType) else 0
    # A plain function can be marked as a coroutine function, by inspect (Python 3.12): then that is loaded.
    inspect = sys.modules.get("inspect")
    if inspect is not None and inspect.iscoroutinefunction(inner):
        flags |= _COROUTINE
    return flags


def _closure(target: Any, region: Region, always: bool) -> Callable[..., Any]:
    flags = _flags(target)
    if flags & _COROUTINE:
        return _around_coroutine(target, region, always)
    if flags & _ASYNC_GENERATOR:
        return _around_async_generator(target, region, always)
    if flags & _GENERATOR:
        wrapper = _around_generator(target, region, always)
        return coroutine(wrapper) if flags & _ITERABLE_COROUTINE else wrapper
    return _around_function(target, region, always)


# The wrappers take nothing but *args and **kwargs, so that no parameter of the user's clashes with one of
# theirs. They repeat one condition, because calling a helper would double what a decorated call costs when
# profwin is off.


def _around_function(target: Callable[..., Any], region: Region, always: bool) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if SWITCH.on and (always or SWITCH.word.value) and not compiling():
            with region.enter(args, kwargs):
                return target(*args, **kwargs)
        else:
            return target(*args, **kwargs)

    return wrapper


def _around_coroutine(
    target: Callable[..., Awaitable[Any]], region: Region, always: bool
) -> Callable[..., Awaitable[Any]]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if SWITCH.on and (always or SWITCH.word.value) and not compiling():
            async with region.aenter(args, kwargs):
                return await target(*args, **kwargs)
        else:
            return await target(*args, **kwargs)

    return wrapper


def _around_generator(
    target: Callable[..., Generator[Any, Any, Any]], region: Region, always: bool
) -> Callable[..., Generator[Any, Any, Any]]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        if SWITCH.on and (always or SWITCH.word.value) and not compiling():
            with region.enter(args, kwargs):
                return (yield from target(*args, **kwargs))
        else:
            return (yield from target(*args, **kwargs))

    return wrapper


class _Unrecorded:
    """An async context manager that does nothing."""

    __slots__ = ()

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *error: object) -> None:
        pass


def _first(source: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Begin an async generator that the event loop does not know: closing it is its wrapper's part.

    A loop that ends closes all that it knows at once, in any order.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return source.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def _around_async_generator(
    target: Callable[..., AsyncGenerator[Any, Any]], region: Region, always: bool
) -> Callable[..., AsyncGenerator[Any, Any]]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        selected = SWITCH.on and (always or SWITCH.word.value) and not compiling()
        async with region.aenter(args, kwargs) if selected else _Unrecorded():
            source = target(*args, **kwargs)
            thrown: BaseException | None = None
            step: Awaitable[Any] | None = None
            try:
                step = _first(source)
                while True:
                    value = await step
                    sent = thrown = None
                    # What is thrown in here, GeneratorExit too, is the target's to answer. It is passed on
                    # after the handler: inside, it would become the context of errors unrelated to it.
                    try:
                        sent = yield value
                    except BaseException as error:
                        if getattr(source, "ag_frame", source) is None:  # collected first: it would swallow this
                            raise
                        thrown = error
                    step = source.asend(sent) if thrown is None else source.athrow(thrown)
            except StopAsyncIteration:
                return
            finally:
                thrown = step = None  # an exception that is held by its own traceback's frame is a reference cycle

    return wrapper
