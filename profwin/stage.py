"""Training stages: the phases of an update, recorded one by one or a step at a time."""

from __future__ import annotations

from profwin.configuration import current
from profwin.interval import Interval
from profwin.passage import call_site, enter, enter_async, leave
from profwin.step import checked_seconds
from profwin.switch import SWITCH, compiling
from profwin.wrap import name_of, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar, overload

    from profwin.session import Session

    Target = TypeVar("Target", bound=Callable[..., Any])

__all__ = ["Stage", "training_stage"]


class StageRun:
    """One call of a stage: a context manager, sync and async, used once."""

    __slots__ = ("_entered", "_scoped", "_site", "_stage")

    def __init__(self, stage: Stage, *, site: str | None, scoped: bool) -> None:
        self._stage, self._site, self._scoped = stage, site, scoped
        self._entered: tuple[Session, Interval] | None = None

    def __enter__(self) -> None:
        self._entered = enter(self._prepare)

    async def __aenter__(self) -> None:
        self._entered = await enter_async(self._prepare)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            leave(entered, error)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)

    def _prepare(self) -> tuple[Session, Interval] | None:
        session = current()
        if session is None:
            return None
        position, settings, stage = session.position, session.settings, self._stage
        step, selected = position.training_side()
        role = stage.role or settings.role or "train"
        name = stage.name or "stage"
        if not selected or not position.rank_selected():
            if session.owner.collections:
                session.owner.end_step(step, "step")
            return None
        if (settings.stages is not None and name not in settings.stages) or (
            settings.roles is not None and role not in settings.roles
        ):
            return None
        interval = Interval(
            "stage", name, step, session.keys(stage.devices, None), self._site or call_site(), role=role,
            scoped=self._scoped, occurrence=position.number("stage", step, name), max_seconds=stage.max_seconds,
        )  # fmt: skip
        return session, interval


class Stage:
    """What :func:`training_stage` returns when it is called: a decorator, and a context manager for a block.

    As a decorator it may be applied to any number of functions, and each call has its own state. As a context manager
    it is used by one block at a time.
    """

    __slots__ = ("_run", "devices", "max_seconds", "name", "role", "site")

    def __init__(
        self,
        name: str | None,
        role: str | None,
        devices: tuple[str, ...] | None,
        site: str | None,
        max_seconds: float | None,
    ) -> None:
        self.name, self.role, self.devices, self.site, self.max_seconds = name, role, devices, site, max_seconds
        self._run: StageRun | None = None

    def __call__(self, target: Target) -> Target:
        """Decorate a callable of any kind; see :func:`training_stage`."""
        name = self.name or name_of(target)
        code = getattr(getattr(target, "__wrapped__", target), "__code__", None)
        site = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else name
        wrapped: Target = wrap(target, Stage(name, self.role, self.devices, site, self.max_seconds), always=False)
        return wrapped

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> StageRun:  # noqa: ARG002  # windows need them
        """Return the context manager of one call."""
        return StageRun(self, site=self.site, scoped=True)

    def aenter(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> StageRun:  # noqa: ARG002  # likewise
        """Return the context manager of one call of a coroutine or an async generator."""
        return StageRun(self, site=self.site, scoped=False)

    def __enter__(self) -> None:
        if not SWITCH.on or not SWITCH.word.value or compiling():
            return
        run = self._begin(scoped=True)
        try:
            run.__enter__()
        except BaseException:
            self._run = None
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.__exit__(kind, error, trace)

    async def __aenter__(self) -> None:
        if SWITCH.on and SWITCH.word.value:
            run = self._begin(scoped=False)
            try:
                await run.__aenter__()
            except BaseException:
                self._run = None
                raise

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)

    def _begin(self, *, scoped: bool) -> StageRun:
        if self._run is not None:
            from profwin.errors import StateError

            raise StateError(f"stage {self.name!r} is already entered", "call training_stage() anew for each block")
        self._run = run = StageRun(self, site=None, scoped=scoped)
        return run

    def __reduce__(self) -> tuple[object, ...]:
        return Stage, (self.name, self.role, self.devices, self.site, self.max_seconds)


if TYPE_CHECKING:

    @overload
    def training_stage(name: Target, /) -> Target: ...
    @overload
    def training_stage(
        name: str | None = None,
        *,
        role: str | None = None,
        devices: str | Iterable[str] | None = None,
        max_seconds: float | None = None,
    ) -> Stage: ...
    def training_stage(  # noqa: D103  # documented below
        name: object = None,
        *,
        role: str | None = None,
        devices: str | Iterable[str] | None = None,
        max_seconds: float | None = None,
    ) -> object: ...

else:

    def training_stage(name=None, *, role=None, devices=None, max_seconds=None):
        """Mark training code as a stage: as a decorator, bare or called, or as a context manager.

        While its step is recorded, the stage waits until the rollout window has left its devices (see the concepts page
        on ordering), then everything that this process does until the body ends is recorded: until the function
        returns, the coroutine finishes, or the generator is exhausted or closed. A stage inside a stage is a named
        range of the outer one. Otherwise the body just runs, at the cost of a hand-written ``if`` wrapper, and inside
        compiled code at none.

        The decorated object is a plain function of the same kind, with the same signature, documentation and
        attributes; it can be pickled, sent by cloudpickle and used as a method of a Ray actor. Functions, methods,
        static and class methods (in either order), partials, bound methods and callable objects are accepted.

        Args:
            name: the stage's name; default: the function's.
            role: role of the process for this stage, as ``roles=`` selects; default: the setting's.
            devices: devices that the stage runs on, as in :func:`profwin.configure`; default: the setting's, else those
                where this process has a context.
            max_seconds: after so many seconds, more than 0, the recording is cut at the next window, stage or span that
                begins or ends in this process; the body goes on unrecorded.

        Raises:
            TypeError: at decoration, for what cannot be decorated.
            SettingError: ``max_seconds`` is no such number.
            WindowOverlapError, DeviceBusyError, BackendError, RegistryError: on a call, under ``strict``; the body did
                not run.
            StateError: the same object is entered by two blocks at once.
        """
        if name is not None and not isinstance(name, str):
            return Stage(None, None, None, None, None)(name)
        if isinstance(devices, str):
            devices = (devices,)
        limit = checked_seconds(max_seconds)
        return Stage(name, role, None if devices is None else tuple(devices), None, limit)
