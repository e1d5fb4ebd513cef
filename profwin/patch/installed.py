"""Installed: one plan in this process, what it found in each module, and what it replaced there."""

from __future__ import annotations

import dataclasses
import sys
from fnmatch import fnmatchcase
from importlib.util import find_spec
from types import ModuleType

from profwin.errors import PlanError
from profwin.patch.kinds import is_a, kind_of, refusal
from profwin.patch.lookup import Match, actor_class, resolve
from profwin.patch.notes import note
from profwin.patch.paths import of_configure, of_patch, unfit
from profwin.patch.plan import Configure
from profwin.patch.replacement import Replacement, is_patched
from profwin.patch.versions import mismatches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Any

    from profwin.patch.plan import Patch, Plan

__all__ = ["Installed"]


class Installed:
    """A plan that is installed in this process.

    Args:
        plan: the plan.
        strict: whether what goes wrong raises.
    """

    def __init__(self, plan: Plan, *, strict: bool) -> None:
        self.plan, self.strict = plan, strict
        self._replaced: list[Replacement] = []
        self._compared = False

    def concerns(self, module: str) -> bool:
        """Say whether the plan has a target in a module of this name."""
        return module in self.plan.modules()

    def find(self, module: ModuleType) -> list[Replacement]:
        """Look up all of the plan's targets in a loaded module; nothing is replaced yet.

        Raises:
            PlanError: a target is missing or cannot be patched, or the plan is for another version of its package.
        """
        if not self._compared:
            self._compare()
            self._compared = True
        found: dict[tuple[int, str], Replacement] = {}
        places: dict[tuple[int, str], str] = {}
        for patch in self.plan.patches:
            for match in self._matches(module, patch, patch.target, patch.place) if _in(module, patch.target) else ():
                key = (id(match.holder), match.name)
                if key in found:
                    raise self._doubled(patch.place, match.target, places[key])
                places[key] = patch.place
                found[key] = Replacement(self.plan, patch, match, strict=self.strict)
        replacements = list(found.values())
        configure = self.plan.configure
        if configure is not None and _in(module, configure.target):
            for match in self._matches(module, configure, configure.target, "configure"):
                below = found.get((id(match.holder), match.name))
                # The settings are made before what else the call is, so they lie around it.
                outer = match if below is None else dataclasses.replace(match, raw=below.new, owner=match.holder)
                replacements.append(Replacement(self.plan, configure, outer, strict=self.strict))
        return replacements

    def defined(self, module: str, qualname: str, function: Any) -> Any:
        """Return what a function of ``__main__`` becomes that has just been defined, in a class perhaps.

        Raises:
            PlanError: it is a target, and cannot be patched.
        """
        main = sys.modules["__main__"]
        target = f"{module}:{qualname}"
        named = [patch for patch in self.plan.patches if _names(patch.target, target)]
        searched = [patch for patch in named if patch.target != target]
        if searched and is_a(function, property):  # wildcards do not mean it
            named = [patch for patch in named if patch not in searched]
        if len(named) > 1:
            raise self._doubled(named[1].place, target, named[0].place)
        roles: list[Patch | Configure] = [] if is_patched(function) else list(named)
        if self.plan.configure is not None and self.plan.configure.target == target:
            roles.append(self.plan.configure)
        for role in roles:
            if problem := refusal(function, main, None):
                raise PlanError(self.plan.name, "target", target, *problem)
            match = Match(target, main, qualname, function, main, kind_of(function))
            self._check_paths(match, role)
            replacement = Replacement(self.plan, role, match, strict=self.strict)
            self._replaced.append(replacement)
            function = replacement.new
        return function

    def set(self, found: Iterable[Replacement]) -> None:
        """Put replacements in their places.

        Raises:
            PlanError: one cannot be; those before it are to be undone.
        """
        found = list(found)
        for replacement in found:
            self._replaced.append(replacement)
            try:
                replacement.set()
            except Exception as error:
                problem = f"cannot be set: {type(error).__name__}: {error}"
                raise PlanError(
                    self.plan.name, "target", replacement.match.target, problem, "name what it calls"
                ) from error
        self._note_bindings(found)

    def undo(self) -> None:
        """Put back what was there before this plan, the last first."""
        new = {id(each.new): each for each in self._replaced}
        while self._replaced:
            self._replaced.pop().undo()
        for module, name in _bindings(new) if new else ():  # what was imported from there meanwhile
            original = vars(module)[name]
            while id(original) in new:
                original = new[id(original)].match.raw
            vars(module)[name] = original

    def _doubled(self, place: str, target: str, other: str) -> PlanError:
        return PlanError(self.plan.name, place, target, f"is what {other} matches too", "give it one role")

    def _matches(self, module: ModuleType, patch: Patch | Configure, target: str, place: str) -> Iterator[Match]:
        optional = getattr(patch, "optional", False)
        try:
            matches = resolve(module, target, plan=self.plan.name, place=f"{place}.target")
        except PlanError as error:
            if not (optional and error.missing):
                raise
            note("plan-note", str(error), quiet=True)
            return
        for match in matches:
            if is_patched(match.raw):
                continue  # by an earlier call, by another plan, or on the class from which it is inherited
            self._check_paths(match, patch)
            if match.remote and _exported(module, match):
                note(
                    "plan-note",
                    f"plan {self.plan.name!r}: actors were made of the class of {match.target} before it was patched; "
                    "those and later ones of this job run without it: install the plan before the first .remote()",
                )
            yield match

    def _check_paths(self, match: Match, patch: Patch | Configure) -> None:
        paths = of_configure(self.plan) if isinstance(patch, Configure) else of_patch(self.plan, patch)
        if problems := unfit(self.plan, match.target, match.function, paths):
            raise problems[0]

    def _compare(self) -> None:
        packages = mismatches(self.plan)
        for each in packages:
            if each.other is not None:
                value, problem = f"{each.package.name} {each.other}", f"the plan is for {each.package.versions}"
                raise PlanError(
                    self.plan.name, "package", value, f"is installed, and {problem}", "use a plan for that one"
                )
        for each in packages:
            note("plan-note", each.text, quiet=True)
        needed = {each.target.partition(":")[0] for each in self.plan.patches if not each.optional} - {"__main__"}
        for name in sorted(needed):
            if absent := _absent(name):
                text = (
                    f"plan {self.plan.name!r}: this process finds no module {absent!r}, so no target in it is patched"
                )
                note("plan-note", text, quiet=True)

    def _note_bindings(self, found: list[Replacement]) -> None:
        """Name other modules that got an original by ``from x import f`` before it was replaced: they call that."""
        originals = {
            id(each.match.raw): each.match.target
            for each in found
            if isinstance(each.match.holder, ModuleType) and not is_patched(each.match.raw)
        }
        for module, name in _bindings(originals) if originals else ():
            target = originals[id(vars(module)[name])]
            note(
                "plan-note",
                f"plan {self.plan.name!r}: {module.__name__}.{name} is the original of {target}, bound by "
                f"`from … import` before it was patched; calls by that name are not seen: make it a target instead, as "
                f"{module.__name__}:{name}",
            )


def _absent(name: str) -> str | None:
    """Return the first part of a module's name that no finder has; no package is loaded to look further into it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        part = ".".join(parts[:count])
        if part in sys.modules:
            continue
        try:
            return None if find_spec(part) else part
        except Exception:  # noqa: BLE001  # a finder may raise anything: then it is not known
            return None
    return None


def _in(module: ModuleType, target: str) -> bool:
    return target.partition(":")[0] == module.__name__


def _names(pattern: str, target: str) -> bool:
    """Say whether a target, perhaps with wildcards, names another one; no wildcard goes over a dot."""
    parts, names = pattern.replace(":", ".").split("."), target.replace(":", ".").split(".")
    return len(parts) == len(names) and all(map(fnmatchcase, names, parts))


def _bindings(objects: Container[int]) -> list[tuple[ModuleType, str]]:
    """Return where loaded modules hold objects, told by identity, under any name."""
    modules: list[Any] = list(sys.modules.values())
    return [
        (module, name)
        for module in modules
        if isinstance(module, ModuleType)
        for name, value in list(vars(module).items())
        if id(value) in objects
    ]


def _exported(module: ModuleType, match: Match) -> bool:
    """Say whether Ray has sent an actor's class away already, which it does once a job."""
    for value in list(vars(module).values()):
        if actor_class(value) is match.holder:
            metadata = vars(value)["__ray_metadata__"]
            return getattr(metadata, "last_export_cluster_and_job", None) is not None
    return False
