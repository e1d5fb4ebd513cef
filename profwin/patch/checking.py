"""Checking: does a plan fit the modules that can be imported in this process."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pkgutil
import sys
from dataclasses import dataclass, field

from profwin.errors import PlanError
from profwin.patch.lookup import resolve
from profwin.patch.nearest import nearest
from profwin.patch.paths import of_configure, of_patch, unfit
from profwin.patch.versions import outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from profwin.patch.lookup import Match
    from profwin.patch.plan import Plan

__all__ = ["Result", "check"]


@dataclass
class Result:
    """What checking a plan found.

    Attributes:
        plan: the plan.
        problems: what does not fit, a sentence each.
        notes: what could not be told, or does not matter.
        matches: how many objects the plan's targets name here.
    """

    plan: Plan
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    matches: int = 0


def check(plans: Iterable[Plan]) -> list[Result]:
    """Import the modules of the plans' targets, here, and look up everything that the plans name in them.

    What the modules write to ``sys.stdout`` meanwhile goes to ``sys.stderr``. All plans are checked together: no object
    may have two roles.
    """
    taken: dict[tuple[int, str], str] = {}
    modules: dict[str, ModuleType | str] = {}
    return [_check(plan, modules, taken) for plan in plans]


def _check(plan: Plan, modules: dict[str, ModuleType | str], taken: dict[tuple[int, str], str]) -> Result:
    result = Result(plan)
    result.problems += outside(plan)
    wanted = [(patch.place, patch.target, patch.optional, of_patch(plan, patch)) for patch in plan.patches]
    if plan.configure is not None:
        wanted.append(("configure", plan.configure.target, False, of_configure(plan)))
    absent: dict[tuple[str, bool], list[str]] = {}
    for place, target, optional, paths in wanted:
        name = target.partition(":")[0]
        if name == "__main__":
            result.notes.append(f"{place}.target={target!r} is in the program itself: it is looked up when that runs")
            continue
        if name not in modules:
            modules[name] = _imported(name)
        module = modules[name]
        if isinstance(module, str):
            absent.setdefault((module, optional), []).append(f"{place}.target={target!r}")
            continue
        try:
            matches = resolve(module, target, plan=plan.name, place=f"{place}.target")
        except PlanError as error:
            (result.notes if optional and error.missing else result.problems).append(str(error))
            continue
        result.matches += len(matches)
        listed = list(paths)
        for match in matches:
            result.problems += [str(error) for error in unfit(plan, match.target, match.function, listed)]
            if place != "configure":
                result.problems += _twice(plan, place, match, taken)
    for (reason, optional), (first, *others) in absent.items():  # one reason, not one line for each target
        needed = f"{first} and {len(others)} more" if others else first
        (result.notes if optional else result.problems).append(f"{needed}: {reason}")
    return result


def _twice(plan: Plan, place: str, match: Match, taken: dict[tuple[int, str], str]) -> list[str]:
    here = f"{place} of plan {plan.name!r}"
    there = taken.setdefault((id(match.holder), match.name), here)
    return [] if there == here else [f"{match.target} has two roles: in {there} and in {here}"]


def _imported(name: str) -> ModuleType | str:
    """Return a module, or why it cannot be imported."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return f"there is no module {error.name!r} here: {_sibling(error.name)}"
        return f"{name} cannot be imported: {_said(error)}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a module may do anything, also exit
        return f"{name} cannot be imported: {_said(error)}"


def _sibling(name: str) -> str:
    parent, _dot, last = name.rpartition(".")
    if not parent:
        return f"install it in this environment ({sys.prefix})"
    found = [each.name for each in pkgutil.iter_modules(getattr(sys.modules.get(parent), "__path__", ()))]
    return nearest(last, found)


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
