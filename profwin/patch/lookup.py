"""Lookup: the objects that a plan's target names in a loaded module, as their holders have them.

Only ``__dict__`` is read: no descriptor runs, no ``__getattr__`` is asked. So a package that makes its names on demand
(transformers, trl) is left as it is, and a target must name the module that defines it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import FunctionType, ModuleType

from profwin.errors import PlanError
from profwin.patch.kinds import is_a, kind_of, refusal
from profwin.patch.nearest import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeAlias

    Holder: TypeAlias = ModuleType | type

__all__ = ["Match", "actor_class", "resolve"]


@dataclass(frozen=True, eq=False)
class Match:
    """One object that a target names.

    Attributes:
        target: ``module:qualname`` of this object, without wildcards.
        holder: the module or class on which a patch of it is set.
        name: its name there.
        raw: the object as it lies in a ``__dict__``: static and class methods are still such.
        owner: the module or class in whose ``__dict__`` it lies.
        kind: one of :mod:`profwin.patch.kinds` that can be patched.
        remote: whether the class is decorated with ``@ray.remote``: `holder` is then the class that Ray ships, and a
            patch counts only before the first actor is made of it.
    """

    target: str
    holder: Holder
    name: str
    raw: Any
    owner: Holder
    kind: str
    remote: bool = False

    @property
    def inherited(self) -> bool:
        """Whether the holder only inherits it: a patch makes an entry, and putting it back deletes that."""
        return self.owner is not self.holder

    @property
    def function(self) -> Any:
        """What is called: `raw`, or what is inside of a static or class method."""
        return self.raw.__func__ if is_a(self.raw, staticmethod, classmethod) else self.raw


def resolve(module: ModuleType, target: str, *, plan: str = "plan", place: str = "target") -> tuple[Match, ...]:
    """Return what a target names: one object or, with wildcards, all functions and methods that match.

    Wildcards match what is defined in the module and in its classes themselves: nothing imported, nothing inherited, no
    properties or classes, and ``__names__`` only where the pattern begins with two underscores.

    Args:
        module: the loaded module of the target.
        target: ``module:qualname``.
        plan: the plan's name, for the error.
        place: where the target stands in it.

    Raises:
        PlanError: there is no such object, and the nearest name there is (`missing` is set), or it cannot be patched.
    """
    search = _Search(module, target, plan, place)
    *classes, last = target.partition(":")[2].split(".")
    holders: list[_Place] = [_Place(module, (), False)]
    for part in classes:
        holders = [inner for holder in holders for inner in search.classes(holder, part)]
    found: dict[tuple[int, str], Match] = {}
    for holder in holders:
        for match in search.objects(holder, last):
            found.setdefault((id(match.holder), match.name), match)  # a class may have two names in its module
    if not found:
        names = [name for holder in holders for name in _names(holder)]
        raise search.error(f"matches nothing in {module.__name__}", nearest(last, names), missing=True)
    return tuple(found.values())


def actor_class(value: object) -> type | None:
    """Return the class that Ray ships for a class decorated with ``@ray.remote``; None for anything else."""
    metadata = getattr(value, "__dict__", {}).get("__ray_metadata__") if _of_ray(type(value)) else None
    shipped = getattr(metadata, "modified_class", None)
    return shipped if isinstance(shipped, type) else None


@dataclass(frozen=True)
class _Place:
    holder: Holder
    path: tuple[str, ...]
    remote: bool
    several: bool = False
    """Whether a wildcard led here: what comes next then need not be here, and counts only where it is defined."""

    def searched(self, part: str) -> bool:
        return self.several or "*" in part or "?" in part


class _Search:
    """One search, which knows how to name what it does not find."""

    def __init__(self, module: ModuleType, target: str, plan: str, place: str) -> None:
        self._module, self._target, self._plan, self._place = module, target, plan, place

    def error(self, problem: str, remedy: str, *, missing: bool = False) -> PlanError:
        return PlanError(self._plan, self._place, self._target, problem, remedy, missing=missing)

    def classes(self, place: _Place, part: str) -> Iterator[_Place]:
        if not place.searched(part):
            _owner, value = self._entry(place, part)
            self._at_home(place, part, actor_class(value) or value)
            yield self._inside(place, part, value, False)
            return
        for name, value in _entries(place):
            kind = actor_class(value) or value
            if is_a(kind, type) and _matches(name, part) and kind.__module__ == self._module.__name__:
                yield self._inside(place, name, value, True)

    def objects(self, place: _Place, part: str) -> Iterator[Match]:
        if not place.searched(part):
            owner, value = self._entry(place, part)
            self._at_home(place, part, value)
            if problem := refusal(value, place.holder, actor_class(value)):
                raise self.error(*problem)
            yield self._match(place, part, value, owner)
            return
        for name, value in _entries(place):
            inner = value.__func__ if is_a(value, staticmethod, classmethod) else value
            if not is_a(inner, FunctionType) or not _matches(name, part):
                continue
            if isinstance(place.holder, type) or inner.__module__ == self._module.__name__:
                owner, raw = self._entry(place, name)
                yield self._match(place, name, raw, owner)

    def _match(self, place: _Place, name: str, raw: object, owner: Holder) -> Match:
        target = f"{self._target.partition(':')[0]}:{'.'.join((*place.path, name))}"
        return Match(target, place.holder, name, raw, owner, kind_of(raw), place.remote)

    def _inside(self, place: _Place, name: str, value: Any, several: bool) -> _Place:
        path, shipped = (*place.path, name), actor_class(value)
        if shipped is not None or is_a(value, type):
            return _Place(shipped or value, path, shipped is not None, several)
        if is_a(value, ModuleType):
            raise self.error(
                f"goes through {name!r}, which is a module", f"write {value.__name__}:… with what is in it"
            )
        if is_a(value, FunctionType):
            raise self.error(f"goes through {name!r}, which is a function", "name a function of a module or class")
        kind = type(value)
        remedy = f"name the method of its class: {kind.__module__}:{kind.__qualname__}.…"
        raise self.error(f"is an attribute of an instance: {name!r} is no class", remedy)

    def _entry(self, place: _Place, name: str) -> tuple[Holder, Any]:
        for owner in place.holder.__mro__ if isinstance(place.holder, type) else (place.holder,):
            if name in vars(owner):
                return owner, vars(owner)[name]
        raise self._missing(place, name)

    def _at_home(self, place: _Place, name: str, value: Any) -> None:
        """Refuse what a module that makes its names on demand has by now: when it loads, it does not have it yet."""
        home = value.__module__ if is_a(value, FunctionType, type) else None
        holder = place.holder
        if home and not isinstance(holder, type) and home != holder.__name__ and _is_lazy(holder):
            problem = f"is defined in {home}, and {holder.__name__} makes its names on demand"
            raise self.error(problem, f"write {home}:{name}")

    def _missing(self, place: _Place, name: str) -> PlanError:
        holder = place.holder
        if isinstance(holder, type):
            if _set_on_instances(holder, name):
                problem = f"is an attribute of instances of {holder.__name__}, not of the class"
                return self.error(problem, "name the method that its instances call", missing=True)
            problem = f"does not exist: {holder.__name__} has no {name!r}"
            return self.error(problem, nearest(name, _names(place)), missing=True)
        shown = holder.__name__
        if _is_lazy(holder):
            homes = vars(holder).get("_class_to_module")  # of transformers' _LazyModule
            where = homes.get(name) if isinstance(homes, dict) else None
            remedy = f"write {shown}.{where}:{name}" if where else f"name the module below {shown} that defines it"
            return self.error(f"is not in {shown} itself, which makes its names on demand", remedy, missing=True)
        problem = f"does not exist: {shown} has no {name!r}"
        return self.error(problem, nearest(name, _names(place)), missing=True)


def _matches(name: str, pattern: str) -> bool:
    hidden = name.startswith("__") and name.endswith("__") and not pattern.startswith("__")
    return not hidden and fnmatchcase(name, pattern)


def _entries(place: _Place) -> list[tuple[str, Any]]:
    """Return what a holder defines itself; of an actor's class, which has copies of all, what its author wrote."""
    holder: Any = place.holder
    if place.remote:
        holder = vars(holder).get("__ray_actor_class__", holder)
    return list(vars(holder).items())


def _names(place: _Place) -> list[str]:
    """Return the names that could have been meant."""
    holders = place.holder.__mro__[:-1] if isinstance(place.holder, type) else (place.holder,)
    return [name for holder in holders for name in list(vars(holder)) if not name.startswith("__")]


def _set_on_instances(holder: type, name: str) -> bool:
    """Return whether a class declares a name for its instances, or its ``__init__`` sets it."""
    import dis

    for owner in holder.__mro__:
        if name in _annotations(owner):
            return True
        code = getattr(vars(owner).get("__init__"), "__code__", None)
        if code is not None and any(
            step.opname == "STORE_ATTR" and step.argval == name for step in dis.get_instructions(code)
        ):
            return True
    return False


def _annotations(owner: type) -> Mapping[str, object]:
    # Asked for where there are none, Python before 3.14 would add them to the class.
    if not vars(owner).keys() & {"__annotations__", "__annotate__", "__annotate_func__"}:
        return {}
    try:
        return owner.__annotations__
    except Exception:  # noqa: BLE001  # since Python 3.14 they are evaluated here
        return {}


def _is_lazy(module: ModuleType) -> bool:
    """Return whether a module answers for names that it does not have."""
    return "__getattr__" in vars(module) or any("__getattr__" in vars(kind) for kind in type(module).__mro__)


def _of_ray(kind: type) -> bool:
    return "ray.actor" in sys.modules and any(base.__module__ == "ray.actor" for base in kind.__mro__)
