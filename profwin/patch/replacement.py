"""Replacements: one object of a module or class, what stands in its place, and the way back."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MethodType, ModuleType

from profwin.errors import PlanError
from profwin.patch.events import EventsRegion
from profwin.patch.kinds import C_FUNCTION, OBJECT
from profwin.patch.plan import Configure
from profwin.patch.preparation import Preparation
from profwin.patch.regions import BLOCKS
from profwin.patch.silence import Silence
from profwin.patch.takeover import proxy, takeover
from profwin.patch.value import Parameters, PathError
from profwin.wrap import name_of, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from profwin.patch.lookup import Match
    from profwin.patch.plan import Patch, Plan

    Maker: TypeAlias = Any
    """A region or a taker: what a wrapper asks about its calls."""

__all__ = ["MARK", "Replacement", "is_patched"]

MARK = "__profwin_patch__"
"""Attribute of what this package puts in the place of something: ``plan:place``."""


def is_patched(raw: object) -> bool:
    """Say whether an object is a wrapper of this package already.

    Decorators copy the attributes of what they decorate, so the mark alone does not say it.
    """
    inner = raw.__func__ if isinstance(raw, staticmethod | classmethod | MethodType) else raw
    if isinstance(inner, FunctionType):
        made = inner.__globals__.get("__name__") in ("profwin.wrap", "profwin.patch.takeover")
        return made and MARK in inner.__dict__
    return getattr(type(inner), MARK, None) is not None


class Replacement:
    """What stands in the place of one object that a target names.

    Making it changes nothing: :meth:`set` does, and :meth:`undo` puts back what was there, the very same object.

    Args:
        plan: of the patch.
        patch: what the target is; or the plan's ``[configure]``.
        match: the object.
        strict: whether what goes wrong in its calls raises.

    Attributes:
        match: the object.
        new: what stands in its place.

    Raises:
        PlanError: such an object cannot be patched so, or lacks a parameter.
    """

    def __init__(self, plan: Plan, patch: Patch | Configure, match: Match, *, strict: bool) -> None:
        self.match = match
        place = "configure" if isinstance(patch, Configure) else patch.place
        try:
            self._maker = _maker(plan, patch, match, strict)
            self.new = _wrapper(match, self._maker)
        except (PathError, TypeError, ImportError) as error:
            problem, remedy = _explained(error)
            raise PlanError(plan.name, f"{place}.target", match.target, problem, remedy) from error
        marked = self.new.__func__ if isinstance(self.new, staticmethod | classmethod | MethodType) else self.new
        if isinstance(marked, FunctionType):
            marked.__dict__[MARK] = f"{plan.name}:{place}"

    @property
    def stands(self) -> bool:
        """Whether it is in its place."""
        return vars(self.match.holder).get(self.match.name) is self.new

    def set(self) -> None:
        """Put it in its place."""
        setattr(self.match.holder, self.match.name, self.new)

    def undo(self) -> None:
        """Put back what was there, unless somebody replaced this since; who still holds it, calls through it."""
        self._maker.active = False
        if not self.stands:
            return
        if self.match.inherited:
            delattr(self.match.holder, self.match.name)
        else:
            setattr(self.match.holder, self.match.name, self.match.raw)


def _maker(plan: Plan, patch: Patch | Configure, match: Match, strict: bool) -> Maker:
    parameters = Parameters(_called(match.raw))
    if isinstance(patch, Configure):
        return Preparation(plan.name, patch, parameters, strict=strict)
    name = name_of(match.raw)
    if patch.role == "events":
        loop = None if patch.loop is None else plan.loop(patch.loop)
        return EventsRegion(plan.name, patch, parameters, name, loop, strict=strict)
    if patch.role == "silence":
        _check_result(match)
        return Silence(plan.name, patch, parameters, name, strict=strict)
    return BLOCKS[patch.role](plan.name, patch, parameters, name, strict=strict)


def _wrapper(match: Match, maker: Maker) -> Any:
    raw = match.raw
    whole = isinstance(maker, Silence | Preparation) or (isinstance(maker, EventsRegion) and maker.of_result)
    if match.kind not in (C_FUNCTION, OBJECT):
        return (
            takeover(raw, maker, off=isinstance(maker, Preparation)) if whole else wrap(raw, maker, always=maker.always)
        )
    binds = isinstance(raw, functools.partialmethod) or type(raw).__name__ == "cython_function_or_method"
    if isinstance(match.holder, ModuleType) and not whole:
        return proxy(raw, wrap(raw, maker, always=maker.always), MARK)
    if binds and not whole:
        return wrap(raw, maker, always=maker.always)
    raise TypeError(f"is a {match.kind}")


def _called(raw: Any) -> Any:
    """Return the function whose parameters the wrapped calls have."""
    if isinstance(raw, staticmethod | classmethod | MethodType):
        return raw.__func__
    return raw.func if isinstance(raw, functools.partialmethod) else raw


def _check_result(match: Match) -> None:
    """Refuse to let a call return None whose result a ``with`` needs."""
    function = _called(match.raw)
    inner = inspect.unwrap(function)
    generates = inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)
    if inner is not function and generates and not inspect.isgeneratorfunction(function):
        raise TypeError("is a context manager, and None is none")


def _explained(error: Exception) -> tuple[str, str]:
    if isinstance(error, ImportError):
        return "is no Python function", "install profwin[patch], which has wrapt, or name the function that calls it"
    if isinstance(error, PathError):
        return f"has other parameters: {error}", "correct the path"
    return f"cannot have this role: it {error}", "name a Python function that calls it"
