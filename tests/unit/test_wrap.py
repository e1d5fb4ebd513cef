"""What a wrapper does around the body of each kind of function."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
import weakref
from types import FunctionType

import pytest
from wrap_support import Region, events, run, switched

from profwin.wrap import wrap


def note(what):
    """Say that a body got this far."""
    events.append(what)


def stage(target, *, always=False):
    """Wrap as a training stage does, or as a rollout window does."""
    return wrap(target, Region(), always=always)


@pytest.mark.parametrize(
    ("on", "word", "always", "opens"),
    [
        (False, 1, False, False),
        (False, 1, True, False),
        (True, 0, False, False),
        (True, 0, True, True),
        (True, 1, False, True),
    ],
)
def test_opens_only_when_it_is_to(on, word, always, opens):
    """A stage opens if profwin is on and the step selected; a window opens whenever profwin is on."""

    def function():
        note("body")

    async def coroutine_function():
        note("body")

    def generator():
        note("body")
        yield 1

    async def async_generator():
        note("body")
        yield 1

    async def collect():
        return [item async for item in stage(async_generator, always=always)()]

    for call in (
        stage(function, always=always),
        lambda: run(stage(coroutine_function, always=always)()),
        lambda: list(stage(generator, always=always)()),
        lambda: run(collect()),
    ):
        with switched(on, word):
            call()
            assert events == (["open r", "body", "close r"] if opens else ["body"])


def test_kind_and_identity_are_those_of_the_target():
    """The inspect predicates, the signature and the documentation answer as for the undecorated function."""

    def function(a, b: int = 2, *, c):
        """Say something."""

    async def coroutine_function(a, /, b=1): ...

    def generator(*args, k=3):
        yield

    async def async_generator(**kwargs):
        yield

    for target in (function, coroutine_function, generator, async_generator):
        made = stage(target)
        assert type(made) is FunctionType
        for probe in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            assert probe(made) == probe(target)
        assert asyncio.iscoroutinefunction(made) == asyncio.iscoroutinefunction(target)
        assert inspect.signature(made) == inspect.signature(target)
        assert inspect.getdoc(made) == inspect.getdoc(target)
        assert (made.__name__, made.__qualname__, made.__module__) == (
            target.__name__,
            target.__qualname__,
            target.__module__,
        )
        assert made.__wrapped__ is target
        assert inspect.getsourcelines(made) == inspect.getsourcelines(target)


def test_no_parameter_name_is_reserved():
    """Parameters of the user's called like anything inside a decorator pass through untouched."""

    def function(self=1, instance=2, wrapped=3, args=4, kwargs=5, step=6, name=7, region=8, target=9, always=10):
        return (self, instance, wrapped, args, kwargs, step, name, region, target, always)

    made = stage(function)
    for word in (0, 1):
        with switched(True, word):
            assert made(wrapped="w", args="a", instance="i", name="n") == (
                1,
                "i",
                "w",
                "a",
                5,
                6,
                "n",
                8,
                9,
                10,
            )
            assert made(kwargs="k", region="r", target="t", self="s")[0] == "s"


def test_region_sees_the_arguments():
    """The region is given the call's own arguments, fresh for each call."""
    seen = []

    class Noting(Region):
        def enter(self, args, kwargs):
            seen.append((args, kwargs))
            return super().enter(args, kwargs)

    made = wrap(lambda *a, **k: None, Noting(), always=True)
    with switched(True):
        made(1, step=2)
        made()
    assert seen == [((1,), {"step": 2}), ((), {})]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, asyncio.CancelledError, StopIteration])
def test_exceptions_pass_unchanged(kind):
    """The very exception object of the body reaches the caller, and the region has ended by then."""
    error = kind("real")

    def function():
        raise error

    with switched(True), pytest.raises(kind) as caught:
        stage(function)()
    assert caught.value is error
    assert error.__context__ is None
    assert error.__cause__ is None
    assert events == ["open r", f"close r {kind.__name__}"]


def test_body_runs_once_even_if_the_region_swallows():
    """A region that suppresses an exception never makes the body run a second time."""

    class Swallowing:
        def enter(self, args, kwargs):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return True

    def function():
        note("body")
        raise ValueError

    with switched(True):
        assert wrap(function, Swallowing(), always=False)() is None
    assert events == ["body"]


def test_coroutine_opens_at_the_first_await():
    """Creating the coroutine opens nothing; awaiting it opens, and its end closes."""

    async def function():
        note("body")
        await asyncio.sleep(0)
        return 5

    async def main():
        waiting = stage(function)()
        note("created")
        assert await waiting == 5

    with switched(True):
        run(main())
    assert events == ["created", "open r", "body", "close r"]


def test_stop_iteration_in_a_coroutine_stays_a_runtime_error():
    """StopIteration out of a coroutine or generator is the interpreter's RuntimeError, as undecorated."""

    async def coroutine_function():
        raise StopIteration("x")

    def generator():
        raise StopIteration("x")
        yield

    for on in (False, True):
        with switched(on), pytest.raises(RuntimeError, match="raised StopIteration") as caught:
            run(stage(coroutine_function)())
        assert isinstance(caught.value.__cause__, StopIteration)
        with switched(on), pytest.raises(RuntimeError, match="raised StopIteration"):
            list(stage(generator)())


def test_cancellation_reaches_the_body_and_ends_the_region():
    """Cancelling a task cancels the body where it waits; the region ends after the body's clean-up."""

    async def function():
        try:
            await asyncio.sleep(60)
        finally:
            note("clean-up")

    async def main():
        task = asyncio.create_task(stage(function)())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with switched(True):
        run(main())
    assert events == ["open r", "clean-up", "close r CancelledError"]


def test_calls_keep_no_state_between_them():
    """Concurrent and recursive calls of one wrapper each open and close their own region."""
    barrier = threading.Barrier(4)

    def function(depth):
        if depth:
            return made(depth - 1)
        barrier.wait(20)
        return threading.get_ident()

    made = stage(function)
    results = []
    with switched(True):
        threads = [threading.Thread(target=lambda: results.append(made(2))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert events.count("open r") == events.count("close r") == 12
    assert len(set(results)) == 4


def test_wrapper_does_not_keep_objects_alive():
    """Neither the wrapper nor a call of it keeps the object whose method it is."""

    class Held:
        @stage
        def method(self, x):
            return x

    held = Held()
    reference = weakref.ref(held)
    gc.disable()
    try:
        with switched(True):
            held.method(1)
        del held
        assert reference() is None
    finally:
        gc.enable()


def test_importing_it_loads_nothing_heavy():
    """The module loads no inspect, typing, asyncio, contextlib or dataclasses."""
    heavy = {"inspect", "typing", "asyncio", "dataclasses", "torch", "logging", "contextlib"}
    code = f"import sys, profwin.wrap; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
