"""Preparation: the session is set up from the program's own configuration, before the first call of a target."""

from __future__ import annotations

import os
import threading

from profwin import configuration
from profwin.errors import PlanError
from profwin.patch.retreat import retreat
from profwin.patch.setting import Setting
from profwin.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.patch.plan import Configure
    from profwin.patch.value import Arguments, Keywords, Parameters

__all__ = ["Preparation", "forget"]

_lock = threading.Lock()
_done: set[str] = set()
_exported: dict[str, str | None] = {}


class Preparation:
    """What makes the calls of the target of ``[configure]``.

    Before the first call in this process, ``profwin.configure`` is called with what the paths lead to. What is None or
    empty there is not given, what a ``PROFWIN_*`` variable gives is left to it, and without steps nothing is done. The
    settings are then put into the environment, for the processes that this one starts. A session that the program made
    itself is left as it is.

    Args:
        plan: the name of the plan.
        configure: what the plan says.
        parameters: of the target.
        strict: whether a wrong setting raises.

    Attributes:
        active: False when the patch is taken back.

    Raises:
        PathError: the target lacks a parameter at which a path begins.
    """

    def __init__(self, plan: str, configure: Configure, parameters: Parameters, *, strict: bool = False) -> None:
        self.plan, self.target, self.strict, self.active = plan, configure.target, strict, True
        self._settings = [Setting(name, places, parameters) for name, places in configure.settings]
        self._settings.sort(key=lambda setting: setting.name != "steps")

    def call(self, target: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        """Make a call, prepared."""
        self._prepare(args, kwargs)
        return target(*args, **kwargs)

    async def acall(self, target: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        """Make a call of a coroutine function, prepared."""
        self._prepare(args, kwargs)
        return await target(*args, **kwargs)

    def _prepare(self, args: Arguments, kwargs: Keywords) -> None:
        if self.plan in _done or not self.active:
            return
        with _lock:
            if self.plan in _done:
                return
            _done.add(self.plan)
            name = "steps"
            try:
                given: dict[str, Any] = {}
                for setting in self._settings:
                    name = setting.name
                    if os.environ.get(_variable(name)):
                        continue
                    value = setting(args, kwargs)
                    if value is not None:
                        given[name] = value
                    elif name == "steps":
                        return  # profwin is off: nothing else of the configuration need be there
                if "steps" in given or os.environ.get("PROFWIN_STEPS"):
                    self._configure(given)
            except Exception as error:
                place = f"configure.settings.{getattr(error, 'setting', name)}"
                problem = PlanError(self.plan, place, self.target, f"had a call where {error}", "correct it")
                if self.strict or os.environ.get("PROFWIN_STRICT") in ("1", "true", "yes", "on"):
                    raise problem from error
                retreat(str(problem))

    def _configure(self, given: dict[str, Any]) -> None:
        inherited = {name: value for name, value in os.environ.items() if name.startswith("PROFWIN_")}
        session = configuration._session
        if session is not None and session.settings.steps is not None:
            before = _described(session.settings)
            if before != _described(Settings({}, inherited)) or before == _described(Settings(given, inherited)):
                return  # the program made it, or there is nothing to change
        configuration.configure(**given)
        session = configuration.current()
        for name, text in session.settings.variables().items() if session is not None else ():
            _exported.setdefault(name, os.environ.get(name))
            os.environ[name] = text


def forget() -> None:
    """Let the next call prepare again, and take back what was put into the environment."""
    with _lock:
        _done.clear()
        for name, text in _exported.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text
        _exported.clear()


def _described(settings: Settings) -> dict[str, object]:
    described = settings.describe()
    del described["run"]  # a session puts its name into the environment
    return described


def _variable(setting: str) -> str:
    return f"PROFWIN_{setting.upper()}"


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
