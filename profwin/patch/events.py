"""Events: what a trainer's own methods tell its loop, before a call, after it, and when it raised."""

from __future__ import annotations

from profwin.configuration import current
from profwin.patch import owners
from profwin.patch.plan import TRAINING_STEP
from profwin.patch.regions import Call, PatchRegion, devices_of, reader_of
from profwin.patch.value import MISSING, PathError, checks, plain
from profwin.step import training_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from profwin.hooks import Loop
    from profwin.patch.plan import Event, LoopPlan, Patch
    from profwin.patch.value import Arguments, Keywords, Parameters, Reader

__all__ = ["EventsRegion"]


class EventsRegion(PatchRegion):
    """The region of a target whose calls are events.

    Events of a loop go to the `profwin.Loop` of the owner, which is made at the first of them. Those of a training step
    enter and leave a ``training_step`` of the owner; without a loop, the process's own.

    Args:
        plan, patch, parameters, name, strict: as in `PatchRegion`.
        loop: the loop that the events belong to, if any.

    Raises:
        PathError: the target lacks a parameter at which a path begins.
    """

    def __init__(
        self, plan: str, patch: Patch, parameters: Parameters, name: str, loop: LoopPlan | None, *, strict: bool = False
    ) -> None:
        super().__init__(plan, patch, parameters, name, strict=strict)
        self.before = tuple(_Told(event, parameters) for event in patch.before)
        self.after = tuple(_Told(event, parameters) for event in patch.after)
        self.error = tuple(_Told(event, parameters) for event in patch.error)
        self._loop = loop
        self._owner = None if loop is None else reader_of(loop.owner, parameters)
        self._parameters = parameters

    @property
    def of_result(self) -> bool:
        """Whether an event needs to know what the call returned."""
        return any(told.of_result for told in self.after)

    def enter(self, args: Arguments, kwargs: Keywords, /) -> EventsCall:
        """Return the context manager of one call."""
        return EventsCall(self, args, kwargs)

    aenter = enter

    def call(self, target: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        """Make a call with its events around, which then know its result."""
        with self.enter(args, kwargs) as call:
            result = call.result = target(*args, **kwargs)
        return result

    async def acall(self, target: Callable[..., Coroutine[Any, Any, Any]], args: Arguments, kwargs: Keywords) -> Any:
        """Make a call of a coroutine function with its events around."""
        async with self.aenter(args, kwargs) as call:
            result = call.result = await target(*args, **kwargs)
        return result

    def addressee(self, told: _Told, args: Arguments, kwargs: Keywords, result: object) -> Loop | None:
        """Return the loop that an event is for; None where it is not told, or was done here, since it needs no loop.

        Raises:
            PathError: something of it cannot be found in this call.
            SettingError: the number of a training step is no whole number from 0.
        """
        session = current()
        if session is None or not all(check(args, kwargs, result) for check in told.checks):
            return None
        owner = None if self._owner is None else self._owner(args, kwargs, result)
        name = "" if self._loop is None else self._loop.name
        if told.event not in TRAINING_STEP:
            return owners.loop_of(self.plan, name, owner, lambda: self._make(args, kwargs))
        if told.number is None:
            owners.end_step(self.plan, name, owner, session)
        else:
            step = training_step(told.number(args, kwargs, result))
            owners.begin_step(self.plan, name, owner, session, step)
        return None

    def _open(self, args: Arguments, kwargs: Keywords) -> bool:  # noqa: ARG002  # its `with` is the call's own
        return True

    def _make(self, args: Arguments, kwargs: Keywords) -> Loop:
        from profwin.hooks import Loop

        plan = self._loop
        if plan is None:
            raise LookupError("the events have no loop")

        def found(compiled: Reader | tuple[str, ...] | None) -> Any:
            return compiled if compiled is None or isinstance(compiled, tuple) else compiled(args, kwargs)

        def part(prefix: str) -> dict[str, Any]:
            actors, engine, devices = (getattr(plan, f"{prefix}{key}") for key in ("actors", "engine", "devices"))
            own = _of_ray(reader_of(actors, given), args, kwargs)
            if own is not None:
                return {f"{prefix}engine": own}
            return {
                f"{prefix}engine": found(reader_of(engine, given)),
                f"{prefix}devices": plain(found(devices_of(devices, given))) or None,
            }

        given = self._parameters
        return Loop(plan.mode, name="rollout", **part(""), **part("hybrid_"))


def _of_ray(actors: Reader | None, args: Arguments, kwargs: Keywords) -> Any:
    """Return the Ray actors that a loop's engine consists of, as engines; None where there are none in this call."""
    if actors is None:
        return None
    from profwin.ray.replicas import served

    try:
        return served(plain(actors(args, kwargs)))
    except PathError:
        return None  # it is an engine of another make


class _Told:
    """An event of a plan, compiled for a target."""

    def __init__(self, event: Event, parameters: Parameters) -> None:
        self.event = event.event
        self.number = reader_of(event.number, parameters)
        self.checks = checks(event.when, event.unless, parameters)

    @property
    def of_result(self) -> bool:
        """Whether it is read from what the call returned."""
        readers = [check.reader for check in self.checks] + ([] if self.number is None else [self.number])
        return any(reader.of_result for reader in readers)


class EventsCall(Call):
    """One call with events; `result` is set before it is left, where somebody needs it."""

    __slots__ = ("_events", "_told", "result")

    def __init__(self, region: EventsRegion, args: Arguments, kwargs: Keywords) -> None:
        super().__init__(region, args, kwargs)
        self._events = region
        self._told = False
        self.result: object = MISSING

    def __enter__(self) -> EventsCall:
        for told in self._first():
            self._tell(told, None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for told in self._last(error):
            self._tell(told, error)

    async def __aenter__(self) -> EventsCall:
        for told in self._first():
            await self._atell(told, None)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for told in self._last(error):
            await self._atell(told, error)

    def _first(self) -> tuple[_Told, ...]:
        self._told = self._events.block(self._args, self._kwargs) is not None
        return self._events.before if self._told else ()

    def _last(self, error: BaseException | None) -> tuple[_Told, ...]:
        if not self._told:
            return ()
        # A generator that is closed early has not failed.
        return self._events.after if error is None or isinstance(error, GeneratorExit) else self._events.error

    def _tell(self, told: _Told, error: BaseException | None) -> None:
        try:
            found = self._events.addressee(told, self._args, self._kwargs, self.result)
            if found is not None:
                getattr(found, told.event)(*self._number(told))
        except Exception as problem:  # noqa: BLE001  # the call goes on, whatever fails
            self._events.fail(problem, after=error)

    async def _atell(self, told: _Told, error: BaseException | None) -> None:
        try:
            found = self._events.addressee(told, self._args, self._kwargs, self.result)
            if found is not None:
                await found.tell(told.event, *self._number(told))
        except Exception as problem:  # noqa: BLE001  # likewise
            self._events.fail(problem, after=error)

    def _number(self, told: _Told) -> tuple[Any, ...]:
        return () if told.number is None else (told.number(self._args, self._kwargs, self.result),)
