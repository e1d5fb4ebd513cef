"""Installation: plans are put into this process, and taken out of it again.

What is loaded is patched at once, what is loaded later when its body has run. All targets of a module are looked up
before any of them is replaced. Outside ``strict`` no error reaches the program: where a plan does not fit, all of it is
taken back and profwin is off.
"""

from __future__ import annotations

import os
import sys
import threading
from types import ModuleType

from profwin.errors import PlanError
from profwin.patch import notes, owners, preparation
from profwin.patch.installed import Installed
from profwin.patch.retreat import retreat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from profwin.patch.plan import Plan

__all__ = ["function_defined", "install", "module_loaded", "uninstall"]

_lock = threading.RLock()
_installed: list[Installed] = []
_read: str | None = None


def install(plan: Plan | str | os.PathLike[str], *, strict: bool = False) -> None:
    """Patch what a plan names, in the modules that are loaded and in those that will be.

    A plan that is installed already is left as it is. It counts in this process and its forks; ``profwin run`` takes
    it to all children. It may be installed and taken back at any time, by any thread; calls under way are finished as
    they began.

    Args:
        plan: a plan, the name of a shipped one, or the path of a TOML file.
        strict: raise where the plan does not fit the code, here, when a module is loaded, and in a call.

    Raises:
        PlanError: it is no plan, or has a target that an installed one has; under ``strict`` also where it does not
            fit; nothing is patched then.
    """
    from profwin.patch.finder import FINDER
    from profwin.patch.parsing import check_together
    from profwin.patch.plan import Plan as Parsed
    from profwin.patch.reading import read_plan

    parsed = plan if isinstance(plan, Parsed) else read_plan(plan)
    with _lock:
        if any(each.plan == parsed for each in _installed):
            return
        check_together([*(each.plan for each in _installed), parsed])
        added = Installed(parsed, strict=strict)
        _installed.append(added)
        modules = [sys.modules.get(name) for name in parsed.modules()]
        _patch(added, [module for module in modules if isinstance(module, ModuleType)])
        if added in _installed:
            FINDER.watch(parsed.modules(), module_loaded)


def uninstall() -> None:
    """Take all plans back: what they replaced is there again, the very same objects, in every module.

    Wrappers that somebody holds elsewhere call through from now on. Loops are forgotten; what they opened is closed
    when the session ends.
    """
    from profwin.patch.finder import FINDER

    with _lock:
        FINDER.unwatch(module_loaded)
        while _installed:
            _installed.pop().undo()
        owners.forget()
        preparation.forget()
        notes.forget()


def module_loaded(module: ModuleType) -> None:
    """Patch what the plans of this process name in a module that was just loaded, or loaded again.

    The plans of ``PROFWIN_PATCH_PLAN`` are read when this is first called.

    Raises:
        PlanError: under ``strict``, if a plan does not fit.
    """
    with _lock:
        _read_environment()
        for each in tuple(_installed):
            if each.concerns(module.__name__):
                _patch(each, [module])


def function_defined(module: str, qualname: str, function: Any) -> Any:
    """Return what the plans of this process make of a function of ``__main__``, right after its ``def``.

    Args:
        module: as the plans name it: ``__main__``, or what runs as such.
        qualname: of the function.
        function: the outcome of its ``def``; in a class it may be a static or class method.

    Raises:
        PlanError: under ``strict``, if it cannot be patched.
    """
    with _lock:
        _read_environment()
        for each in tuple(_installed):
            try:
                function = each.defined(module, qualname, function)
            except Exception as error:  # noqa: BLE001  # said, or raised where that is asked for
                _give_up(each, error)
        return function


def _read_environment() -> None:
    global _read
    text = os.environ.get("PROFWIN_PATCH_PLAN")
    if not text or text == _read:
        return
    from profwin.patch.plan import load_plans

    _read = text
    strict = os.environ.get("PROFWIN_STRICT", "").lower() in ("1", "true", "yes", "on")
    try:
        plans = load_plans(text)
    except PlanError as error:
        if strict:
            raise
        retreat(str(error))
        return
    known = [each.plan for each in _installed]
    _installed.extend(Installed(plan, strict=strict) for plan in plans if plan not in known)


def _patch(plan: Installed, modules: Iterable[ModuleType]) -> None:
    try:
        found = [replacement for module in modules for replacement in plan.find(module)]
        plan.set(found)
    except Exception as error:  # noqa: BLE001  # said, or raised where that is asked for
        _give_up(plan, error)


def _give_up(plan: Installed, error: Exception) -> None:
    _installed.remove(plan)
    plan.undo()
    owners.forget(plan.plan.name)
    if plan.strict:
        raise error
    if not isinstance(error, PlanError):
        error = PlanError(plan.plan.name, "", "the plan", f"could not be installed: {error!r}", "report this")
    retreat(str(error))


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
