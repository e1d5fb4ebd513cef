"""Paths: do the parameters that a plan's paths begin at exist in the targets."""

from __future__ import annotations

from profwin.errors import PlanError
from profwin.patch.nearest import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    from profwin.patch.plan import Condition, Patch, Plan, Value

    Path: TypeAlias = Value | Condition

__all__ = ["of_configure", "of_patch", "unfit"]


def of_patch(plan: Plan, patch: Patch) -> Iterator[tuple[str, Path]]:
    """Return where each path of a patch stands and what it is; with events, those of their loop too."""
    place = patch.place
    for key in ("step", "version", "engine", "devices"):
        yield from _single(f"{place}.{key}", getattr(patch, key))
    yield from _conditions(place, patch)
    for key in ("before", "after", "error"):
        for index, event in enumerate(getattr(patch, key)):
            yield from _single(f"{place}.{key}[{index}].number", event.number)
            yield from _conditions(f"{place}.{key}[{index}]", event)
    if patch.loop is not None:
        loop = plan.loop(patch.loop)
        where = f"loop[{plan.loops.index(loop)}]"
        for key in ("owner", "engine", "hybrid_engine", "devices", "hybrid_devices", "actors", "hybrid_actors"):
            yield from _single(f"{where}.{key}", getattr(loop, key))


def of_configure(plan: Plan) -> Iterator[tuple[str, Path]]:
    """Return where each path of the settings stands and what it is."""
    for name, value in plan.configure.settings if plan.configure is not None else ():
        several = isinstance(value, tuple)
        for index, each in enumerate(value if isinstance(value, tuple) else (value,)):
            place = f"configure.settings.{name}[{index}]" if several else f"configure.settings.{name}"
            yield place, each
            yield from _conditions(place, each)


def unfit(plan: Plan, target: str, function: Any, paths: Iterable[tuple[str, Path]]) -> list[PlanError]:
    """Return an error for each path that begins at a parameter which a function does not have.

    One that takes ``**kwargs``, or that is written in C and does not say what it takes, may have any.

    Args:
        plan: that the paths are of.
        target: what errors call the function.
        function: what is called, without a descriptor around it.
        paths: from `of_patch` or `of_configure`.
    """
    names = _parameters(function)
    if names is None:
        return []
    problems = []
    for place, path in paths:
        first = path.parts[0]
        if first not in names and first != "return":
            problem = f"begins at {first!r}, which is no parameter of {target}({', '.join(names)})"
            problems.append(PlanError(plan.name, place, path.path, problem, nearest(first, names)))
    return problems


def _parameters(function: Any) -> tuple[str, ...] | None:
    """Return the names of a function's parameters; None where it may take any."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return None
    return tuple(parameters)


def _single(place: str, value: object) -> Iterator[tuple[str, Any]]:
    if hasattr(value, "path"):
        yield place, value


def _conditions(place: str, holder: Any) -> Iterator[tuple[str, Condition]]:
    for key in ("when", "unless"):
        for index, condition in enumerate(getattr(holder, key)):
            yield f"{place}.{key}[{index}]", condition
