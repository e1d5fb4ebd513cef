"""The runtime environment by which Ray's workers are set up like this process."""

from __future__ import annotations

from profwin.ray.presence import needs_ray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["environment", "variables"]

_OWN = ("role", "rank", "run")
"""Settings that a process does not hand on unless it is told to."""


def environment(runtime_env: Mapping[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """Return a runtime environment in which workers configure themselves, so that windows and stages are recorded.

    For ``ray.init(runtime_env=...)``, and for the ``runtime_env=`` of actors and tasks that have one of their own or
    are to have other settings. A worker's session begins with its first window or stage; torch is not imported for it.
    Ray 2.60 gives an actor its job's variables and then its own, name by name.

    The workers are of this process's run. Its real devices are not handed on, since a worker's are others; pretend ones
    are.

    Args:
        runtime_env: what is added to: a dictionary, or Ray's ``RuntimeEnv``, which the result then is, too. A variable
            that it sets itself stays. It is not changed.
        **settings: those of :func:`profwin.configure`, instead of this process's, or where it has no session. ``role``,
            ``rank`` and ``run`` are of whoever they are given to alone.

    Raises:
        SettingError: a setting is wrong or unknown, or the step selection is a callable, which cannot travel.
        ProfwinError: Ray is not installed.
    """
    needs_ray()
    from profwin.patch.rayhook import with_variables

    return with_variables(runtime_env, variables(settings))


def variables(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of this process's session, with some settings in the place of its own.

    Args:
        given: the settings; one that is None is this process's.

    Raises:
        SettingError: see :func:`environment`.
    """
    from profwin import configuration
    from profwin.errors import SettingError
    from profwin.settings import Settings

    session = configuration.environment()
    devices = session.get("PROFWIN_DEVICES", "")
    if any(not name.strip().startswith("pretend:") for name in devices.split(",")):
        session.pop("PROFWIN_DEVICES", None)
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return session
    settings = Settings(given, session)
    for name in given:
        if name not in settings.describe():
            raise SettingError(name, given[name], "the settings of profwin.configure")
    found = {**session, **settings.variables()}
    for name in given:
        variable = f"PROFWIN_{name.upper()}"
        if name in _OWN:
            found[variable] = str(getattr(settings, name))
        elif variable not in settings.variables():
            found[variable] = ""  # the default, whatever the job's variables say
    return found
