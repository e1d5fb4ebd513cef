"""Regions: what the wrapper of a patched callable opens around each call, made of profwin's public blocks.

A region pickles with its wrapper, and knows nothing but what the plan says and where the target's calls have their
arguments. Nothing of it is looked at while profwin is off. Outside ``strict`` nothing of ours reaches the caller: a
call for which something cannot be found runs as it would without the plan.
"""

from __future__ import annotations

from profwin.configuration import current
from profwin.errors import PlanError, ProfwinError
from profwin.patch.notes import PENDING, note, record, uneven
from profwin.patch.value import PathError, Reader, checks, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from profwin.patch.plan import Patch, Value
    from profwin.patch.value import Arguments, Keywords, Parameters

    Block: TypeAlias = Any
    """A context manager; if it has ``__aenter__``, it is an asynchronous one as well."""

__all__ = ["BLOCKS", "Call", "PatchRegion", "devices_of", "reader_of"]


class Call:
    """One call of a patched callable: a context manager, sync and async, used once."""

    __slots__ = ("_args", "_block", "_kwargs", "_region")

    def __init__(self, region: PatchRegion, args: Arguments, kwargs: Keywords) -> None:
        self._region, self._args, self._kwargs = region, args, kwargs
        self._block: Block = None

    def __enter__(self) -> object:
        block = self._region.block(self._args, self._kwargs)
        if block is not None:
            try:
                block.__enter__()
            except Exception as error:  # noqa: BLE001  # the call goes on, whatever fails
                self._region.fail(error)
            else:
                self._block = block
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        block, self._block = self._block, None
        if block is not None:
            try:
                block.__exit__(kind, error, trace)
            except Exception as problem:  # noqa: BLE001  # likewise
                self._region.fail(problem, after=error)

    async def __aenter__(self) -> object:
        block = self._region.block(self._args, self._kwargs)
        if block is not None:
            try:
                await block.__aenter__() if hasattr(block, "__aenter__") else block.__enter__()
            except Exception as error:  # noqa: BLE001  # the call goes on, whatever fails
                self._region.fail(error)
            else:
                self._block = block
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        block, self._block = self._block, None
        if block is not None:
            leave = block.__aexit__ if hasattr(block, "__aexit__") else None
            try:
                await leave(kind, error, trace) if leave else block.__exit__(kind, error, trace)
            except Exception as problem:  # noqa: BLE001  # likewise
                self._region.fail(problem, after=error)


class PatchRegion:
    """The region of one patch on one target; see :mod:`profwin.wrap`.

    Args:
        plan: the name of the plan.
        patch: what the target is.
        parameters: of the target.
        name: of the target.
        strict: whether what goes wrong raises, even where the session is not strict.

    Attributes:
        active: False when the patch is taken back: whoever still holds the wrapper then calls through it.

    Raises:
        PathError: the target lacks a parameter at which a path begins.
    """

    always = True
    """Whether calls open it in steps of which no stage is recorded, too."""

    def __init__(self, plan: str, patch: Patch, parameters: Parameters, name: str, *, strict: bool = False) -> None:
        self.plan, self.patch, self.name, self.strict = plan, patch, name, strict
        self.active = True
        self._checks = checks(patch.when, patch.unless, parameters)
        self._step = reader_of(patch.step, parameters)
        self._version = reader_of(patch.version, parameters)
        self._engine = reader_of(patch.engine, parameters)
        self._devices = devices_of(patch.devices, parameters)

    def enter(self, args: Arguments, kwargs: Keywords, /) -> Call:
        """Return the context manager of one call."""
        return Call(self, args, kwargs)

    aenter = enter

    def block(self, args: Arguments, kwargs: Keywords) -> Block | None:
        """Return what surrounds a call, not yet entered; None where it runs plain.

        Raises:
            ProfwinError: under ``strict``, where that cannot be found.
        """
        if not self.active:
            return None
        session = current()
        if session is None:
            return None
        if PENDING:
            record(session)
        try:
            return self._open(args, kwargs) if self.concerns(args, kwargs) else None
        except Exception as error:  # noqa: BLE001  # likewise
            self.fail(error)
        return None

    def concerns(self, args: Arguments, kwargs: Keywords) -> bool:
        """Say whether `when` and `unless` let this call be what the plan says.

        Raises:
            PathError: that cannot be found.
        """
        return all(check(args, kwargs) for check in self._checks)

    def fail(self, error: Exception, after: BaseException | None = None) -> None:
        """Take note that something of ours failed in a call, which goes on.

        Args:
            error: what failed.
            after: what the call itself raised; it goes first.

        Raises:
            ProfwinError: under ``strict``, if the call itself did not raise.
        """
        session = current()
        if isinstance(error, PathError | ValueError) and not isinstance(error, PlanError):
            remedy = "correct the path, or say with `when` which calls have it"
            error = PlanError(self.plan, self.patch.place, self.patch.target, f"had a call where {error}", remedy)
        if after is None and (self.strict or (session is not None and session.settings.strict)):
            raise error
        text = str(error) if isinstance(error, ProfwinError) else repr(error)
        note("plan-path", f"{text}; such calls run unprofiled", key=(self.plan, self.patch.place))
        if session is not None:
            record(session)

    def _open(self, args: Arguments, kwargs: Keywords) -> Block | None:
        raise NotImplementedError

    def _say_uneven(self, what: str, name: str, step: int | None = None) -> None:
        session = None if self.patch.every_step else current()
        # A journal has nothing of steps that are not recorded.
        if session is not None and (step is None or session.settings.steps is None or step in session.settings.steps):
            uneven(session, what, name)


class _Window(PatchRegion):
    def _open(self, args: Arguments, kwargs: Keywords) -> Block:
        from profwin.window import rollout_window

        step = _read(self._step, args, kwargs)
        self._say_uneven("window", self.patch.name or "rollout", step)
        return rollout_window(
            step, engine=_read(self._engine, args, kwargs),
            devices=_names(self._devices, args, kwargs), name=self.patch.name or "rollout",
        )  # fmt: skip


class _Stage(PatchRegion):
    always = False

    def _open(self, args: Arguments, kwargs: Keywords) -> Block:
        from profwin.stage import training_stage

        name, devices = self.patch.name or self.name, _names(self._devices, args, kwargs)
        self._say_uneven("stage", name)
        return training_stage(name, role=self.patch.stage_role, devices=devices)


class _Step(PatchRegion):
    def _open(self, args: Arguments, kwargs: Keywords) -> Block:
        from profwin.step import training_step

        return training_step(_read(self._step, args, kwargs))


class _WeightSync(PatchRegion):
    def _open(self, args: Arguments, kwargs: Keywords) -> Block:
        from profwin.sync import weight_sync

        return weight_sync(
            _read(self._version, args, kwargs), _read(self._engine, args, kwargs),
            devices=_names(self._devices, args, kwargs), name=self.patch.name or "rollout", window=self.patch.window,
        )  # fmt: skip


class _Pause(PatchRegion):
    def _open(self, args: Arguments, kwargs: Keywords) -> Block:  # noqa: ARG002  # the others need them
        from profwin.pause import paused

        return paused()


class _Span(PatchRegion):
    def _open(self, args: Arguments, kwargs: Keywords) -> Block:  # noqa: ARG002  # the others need them
        from profwin.spans import span

        return span(self.patch.name or self.name)


BLOCKS: dict[str, type[PatchRegion]] = {
    "window": _Window,
    "stage": _Stage,
    "step": _Step,
    "weight_sync": _WeightSync,
    "pause": _Pause,
    "span": _Span,
}
"""The region of each role that is a block around the call."""


def reader_of(value: Value | None, parameters: Parameters) -> Reader | None:
    """Compile a value of a plan, if there is one.

    Raises:
        PathError: the target lacks the parameter.
    """
    return None if value is None else Reader(value, parameters)


def devices_of(devices: tuple[str, ...] | Value | None, parameters: Parameters) -> tuple[str, ...] | Reader | None:
    """Compile the devices of a plan: names stay as they are.

    Raises:
        PathError: the target lacks the parameter.
    """
    return devices if devices is None or isinstance(devices, tuple) else Reader(devices, parameters)


def _read(reader: Reader | None, args: Arguments, kwargs: Keywords) -> Any:
    value: Any = None if reader is None else reader(args, kwargs)
    return value


def _names(devices: tuple[str, ...] | Reader | None, args: Arguments, kwargs: Keywords) -> Any:
    return plain(devices(args, kwargs)) if isinstance(devices, Reader) else devices
