"""Generators and async generators: the region spans the body; all that is sent or thrown passes through."""

from __future__ import annotations

import asyncio
import gc
from types import coroutine

import pytest
from wrap_support import Region, events, run, switched

from profwin.wrap import wrap


def note(what):
    """Say that a body got this far."""
    events.append(what)


def stage(target):
    """Wrap as a training stage does."""
    return wrap(target, Region(), always=False)


def test_generator_opens_at_the_first_next_and_closes_at_the_end():
    """A generator opens nothing when made, spans its body, and gives its return value."""

    def generator():
        note("body")
        got = yield 1
        note(f"got {got}")
        return 7

    with switched(True):
        made = stage(generator)()
        assert events == []
        assert next(made) == 1
        with pytest.raises(StopIteration) as stop:
            made.send("x")
        assert stop.value.value == 7
    assert events == ["open r", "body", "got x", "close r"]


def test_generator_close_throw_and_collection():
    """A closed, thrown-into or dropped generator cleans up, then the region ends; unstarted: nothing."""

    def generator():
        try:
            yield 1
            yield 2
        except KeyError:
            yield "handled"
        finally:
            note("clean-up")

    made = stage(generator)
    with switched(True):
        made().close()
        assert events == []
        for end in ("close", "drop"):
            events.clear()
            items = made()
            next(items)
            if end == "close":
                items.close()
            del items
            gc.collect()
            assert events == ["open r", "clean-up", "close r GeneratorExit"]
        events.clear()
        items = made()
        next(items)
        assert items.throw(KeyError("k")) == "handled"
        assert list(items) == []
        assert events == ["open r", "clean-up", "close r"]


def test_generator_that_ignores_close_is_still_an_error():
    """A generator that yields when closed raises the interpreter's RuntimeError, as undecorated."""

    def generator():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    items = stage(generator)()
    with switched(True):
        next(items)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            items.close()


async def talk():
    """Answer to everything that an async generator can be told."""
    value = "first"
    try:
        while True:
            value = f"got {(yield value)}"
            if value == "got guard":
                try:
                    yield "guarded"
                except KeyError as error:
                    value = f"caught {error} {error.__context__}"
            if value == "got return":
                return
    finally:
        await asyncio.sleep(0)
        note("clean-up")


async def everything(items):
    """Drive an async generator through sends and throws; return what it answered."""
    answers = [await anext(items), await items.asend("x"), await items.asend("guard")]
    answers += [await items.athrow(KeyError("k")), await anext(items)]
    try:
        await items.asend("return")
    except StopAsyncIteration:
        answers.append("stopped")
    return answers


def test_async_generator_answers_as_undecorated():
    """asend, athrow, anext and the end of an async generator give what the undecorated one gives."""
    with switched(False):
        want = run(everything(talk()))
    for on in (False, True):
        with switched(on):
            assert run(everything(stage(talk)())) == want
    assert events == ["open r", "clean-up", "close r"]


def test_async_generator_opens_late_and_closes_on_aclose():
    """Nothing opens before the first anext; aclose runs the target's own clean-up, then ends the region."""

    async def main():
        unstarted = stage(talk)()
        await unstarted.aclose()
        items = stage(talk)()
        note("made")
        await anext(items)
        await items.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(items)

    with switched(True):
        run(main())
    assert events == ["made", "open r", "clean-up", "close r GeneratorExit"]


def test_abandoned_async_generator_is_cleaned_up_by_its_loop():
    """An async generator left by a break is closed by its event loop, first the body, then the region."""

    async def main():
        async for _ in stage(talk)():
            break
        gc.collect()
        await asyncio.sleep(0.01)
        note("after")

    with switched(True):
        run(main())
    assert events == ["open r", "clean-up", "close r GeneratorExit", "after"]


def test_async_generator_errors_are_those_of_the_target():
    """The error is the very same, with no stranger as context; ignoring aclose is a RuntimeError."""
    error = ValueError("real")

    async def failing():
        try:
            yield 1
        except KeyError:
            pass
        raise error

    async def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    async def stopping():
        raise StopAsyncIteration
        yield

    async def fail():
        items = stage(failing)()
        await anext(items)
        with pytest.raises(ValueError, match="real") as caught:
            await items.athrow(KeyError("k"))
        assert caught.value is error
        assert error.__context__ is None

    async def ignore():
        items = stage(stubborn)()
        await anext(items)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await items.aclose()

    async def stop():
        with pytest.raises(RuntimeError, match="raised StopAsyncIteration"):
            await anext(stage(stopping)())

    for on in (False, True):
        with switched(on):
            run(fail())
            run(ignore())
            run(stop())


def test_async_generator_leaves_no_reference_cycle():
    """An error thrown in and out again is freed without the garbage collector."""
    import weakref

    class Thrown(Exception):
        pass

    async def main():
        items = stage(talk)()
        await anext(items)
        error = Thrown()
        reference = weakref.ref(error)
        try:
            await items.athrow(error)
        except Thrown:
            pass
        del error, items
        return reference

    gc.disable()
    try:
        with switched(True):
            assert run(main())() is None
    finally:
        gc.enable()


def test_iterable_coroutine_stays_awaitable():
    """A generator-based coroutine (types.coroutine) can still be awaited."""

    @coroutine
    def function(x):
        note("body")
        yield from asyncio.sleep(0).__await__()
        return x

    async def main():
        return await stage(function)(3)

    for on in (False, True):
        with switched(on):
            assert run(main()) == 3
    assert events == ["open r", "body", "close r"]
