"""Targets in ``__main__``: import hooks never see that module, so its source is decorated before it is compiled.

Each ``def`` that is a target gets one decorator, outermost, on its own line; nothing else changes, and no line moves. A
name that is bound otherwise (by assignment or import) is no target here.
"""

from __future__ import annotations

import ast
import os
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType
    from typing import Any

    from profwin.patch.plan import Configure, Patch, Plan

__all__ = ["Target", "decorate", "defined", "follow_spawn", "module_code", "names_of", "script_code"]

_MAIN = "__main__"


class Target:
    """One target of a plan.

    Args:
        plan: the plan.
        patch: the patch, or the plan's ``[configure]``.

    Attributes:
        module, qualname: the two parts of the target; the second may have wildcards.
        place: where it stands in the plan.
        optional: whether it may be missing.
    """

    def __init__(self, plan: Plan, patch: Patch | Configure) -> None:
        self.plan, self.patch = plan, patch
        self.module, _colon, self.qualname = patch.target.partition(":")
        self.place = str(getattr(patch, "place", "configure"))
        self.optional = bool(getattr(patch, "optional", False))

    def matches(self, qualname: str) -> bool:
        """Say whether a function of this name is meant; wildcards do not reach beyond a dot, nor to ``__names__``."""
        from profwin.patch.finder import boot

        patterns, names = self.qualname.split("."), qualname.split(".")
        hidden = names[-1].startswith("__") and names[-1].endswith("__") and not patterns[-1].startswith("__")
        return len(patterns) == len(names) and not hidden and all(map(boot.matches, patterns, names))


def script_code(source: bytes, path: str) -> CodeType:
    """Return the code of a script, with the targets in ``__main__`` decorated.

    Raises:
        SyntaxError: as ``compile`` does.
        PlanError: under ``strict``, if it defines some of a plan's targets and lacks another.
    """
    tree = ast.parse(source, path)
    _check(tree, _targets(_MAIN))
    decorate(tree, _targets(_MAIN))
    return compile(tree, path, "exec", dont_inherit=True)


def module_code(loader: Any, name: str) -> CodeType | None:
    """Return the code of a module that is to run as ``__main__``; None if no target is in it.

    Args:
        loader: of the module; one without source code has no targets.
        name: of the module, also the one by which targets may name it.

    Raises:
        PlanError: under ``strict``, if it lacks a target, as for a script or because the target names it.
    """
    targets = [*_targets(_MAIN), *_targets(name)]
    if not targets or not hasattr(loader, "get_data") or not hasattr(loader, "get_filename"):
        return None
    path = loader.get_filename(name)
    if not path.endswith(".py"):
        return None
    try:
        tree = ast.parse(loader.get_data(path), path)
    except SyntaxError:
        return None  # the loader says it
    _check(tree, targets)
    found = decorate(tree, [*_targets(_MAIN), *_targets(name)])
    return compile(tree, path, "exec", dont_inherit=True) if found else None


def names_of(source: bytes, path: str) -> list[str]:
    """Return the qualnames of the functions that a script defines in its module and classes.

    Raises:
        SyntaxError, ValueError: as ``compile`` does.
    """
    return [qualname for qualname, _node in _functions(ast.parse(source, path), "")]


def decorate(tree: ast.Module, targets: Iterable[Target]) -> list[str]:
    """Put a decorator on every function of a module that is a target.

    Args:
        tree: the module; it is changed.
        targets: of the plans.

    Returns:
        The qualnames that were decorated.
    """
    targets = list(targets)
    found = []
    for qualname, node in _functions(tree, ""):
        module = next((target.module for target in targets if target.matches(qualname)), None)
        if module is not None:
            node.decorator_list.insert(0, _decorator(module, qualname, node))
            found.append(qualname)
    return found


def defined(module: str, qualname: str) -> Callable[[Any], Any]:
    """Return the decorator of a target in ``__main__``: it gives what stands in the function's place.

    Outside ``strict`` it never raises: where the plan does not fit, profwin is off, and the function is as it was.

    Args:
        module: as the target names it.
        qualname: of the function.
    """

    def decorator(function: Any) -> Any:
        try:
            from profwin.patch.installation import function_defined

            return function_defined(module, qualname, function)
        except Exception as error:
            if type(error).__module__ == "profwin.errors":  # under strict only
                raise
            import logging

            logging.getLogger("profwin").warning("profwin: %s:%s is not patched: %r", module, qualname, error)
            return function

    return decorator


def follow_spawn(spawn: Any) -> None:
    """Have the main program decorated where ``multiprocessing`` runs it again, in children that it spawns.

    Args:
        spawn: ``multiprocessing.spawn``. Its functions that do so are private; where they are not as known, the
            children's ``__main__`` is left as it is.
    """
    from_path, from_name = (getattr(spawn, f"_fixup_main_from_{what}", None) for what in ("path", "name"))
    if from_path is None or from_name is None or hasattr(from_path, "__wrapped__"):
        return

    def fixup_path(main_path: str) -> object:
        runpy: Any = import_module("runpy")
        read = getattr(runpy, "_get_code_from_file", None)
        if read is None or not _names_target(main_path):
            return from_path(main_path)

        def code_from_file(*arguments: str) -> object:
            given = read(*arguments)
            if arguments[-1] != main_path:  # what the program itself runs by runpy meanwhile
                return given
            try:
                with open(main_path, "rb") as file:
                    code = script_code(file.read(), main_path)
            except (OSError, SyntaxError, ValueError):
                return given
            return (code, *given[1:]) if isinstance(given, tuple) else code

        runpy._get_code_from_file = code_from_file
        try:
            return from_path(main_path)
        finally:
            runpy._get_code_from_file = read

    def fixup_name(mod_name: str) -> object:
        from profwin.patch.finder import FINDER

        FINDER.watch([mod_name])
        return from_name(mod_name)

    vars(fixup_path)["__wrapped__"], vars(fixup_name)["__wrapped__"] = from_path, from_name
    spawn._fixup_main_from_path = fixup_path
    spawn._fixup_main_from_name = fixup_name


def _check(tree: ast.Module, targets: Iterable[Target]) -> None:
    """Retreat if a program lacks a target.

    It need not define any of those in ``__main__``, since a program that it starts may; but if it defines one of a
    plan's, it must have all.

    Raises:
        PlanError: that is so, under ``strict``.
    """
    from profwin.errors import PlanError
    from profwin.patch.nearest import nearest
    from profwin.patch.notes import note
    from profwin.patch.retreat import retreat

    names = [qualname for qualname, _node in _functions(tree, "")]
    missing = [target for target in targets if not any(map(target.matches, names))]
    concerned = {target.plan.name for target in targets if target.module == _MAIN and target not in missing}
    for target in missing:
        if target.module == _MAIN and target.plan.name not in concerned:
            continue
        error = PlanError(
            target.plan.name, f"{target.place}.target", target.patch.target, "is not defined in the program that runs",
            nearest(target.qualname, names), missing=True,
        )  # fmt: skip
        if target.optional:
            note("plan-note", str(error), quiet=True)
            continue
        if _strict():
            raise error
        retreat(str(error))
        return


def _strict() -> bool:
    return os.environ.get("PROFWIN_STRICT", "").lower() in ("1", "true", "yes", "on")


def _names_target(path: str) -> bool:
    from profwin.patch.finder import boot

    return bool(boot.mentions(path, [target.qualname for target in _targets(_MAIN)]))


def _targets(module: str) -> list[Target]:
    """Return the targets in a module, of the plans that this process has; ``[configure]`` last: it goes around."""
    from profwin.patch.plan import load_plans

    plans = load_plans(os.environ.get("PROFWIN_PATCH_PLAN") or "[]")
    pairs: list[tuple[Plan, Patch | Configure]] = [(plan, patch) for plan in plans for patch in plan.patches]
    pairs += [(plan, plan.configure) for plan in plans if plan.configure is not None]
    return [target for plan, patch in pairs if (target := Target(plan, patch)).module == module]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _functions(child, prefix)


def _decorator(module: str, qualname: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr:
    text = f"__import__({__name__!r}, None, None, ('defined',)).defined({module!r}, {qualname!r})"
    expression = ast.parse(text, mode="eval").body
    first = node.decorator_list[0] if node.decorator_list else node
    for part in ast.walk(expression):
        if isinstance(part, ast.expr | ast.keyword):
            part.lineno = part.end_lineno = first.lineno
            part.col_offset = part.end_col_offset = node.col_offset
    return expression
