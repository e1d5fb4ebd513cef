"""Ray: profwin's variables for workers of a cluster that was started without them, and for actors with their own.

A raylet hands its workers its own environment, then the job's ``env_vars``, then the actor's, key by key. So the job
gets our variables when it is initialized, after Ray's own hooks and what ``ray job submit`` gave are merged; and an
actor gets what it would lose: our folder where it sets PYTHONPATH itself, and the session that has begun in the process
that creates it. Both wrap private functions of Ray (contract-tested with 2.60); where they are not as known, the log
says it.
"""

from __future__ import annotations

import functools
import os
from importlib import import_module

from profwin.patch.environment import FOLDER, python_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

__all__ = ["follow", "runtime_env", "with_variables"]

_PREFIX = "PROFWIN_"

_known: dict[str, str] = {}
"""What workers have without us: what this process had when Ray was imported, and what its job was given."""


def follow(ray: ModuleType) -> None:
    """Have jobs and actors that this process starts carry our variables.

    Args:
        ray: the module ``ray``, just loaded.
    """
    _known.update(os.environ)
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    actor_class: Any = getattr(getattr(ray, "actor", None), "ActorClass", None)
    modify = getattr(worker, "_maybe_modify_runtime_env", None)
    remote = getattr(actor_class, "_remote", None)
    if modify is None or remote is None:
        import logging

        logging.getLogger("profwin").warning(
            "profwin: this version of Ray is not known: workers of a cluster that was started elsewhere, and actors "
            "with a PYTHONPATH of their own, are not profiled"
        )
    if modify is not None and not hasattr(modify, "__wrapped__"):
        worker._maybe_modify_runtime_env = _around_init(modify)
    if remote is not None and not hasattr(remote, "_profwin"):
        actor_class._remote = _around_actor(remote)


def runtime_env(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's runtime environment with our variables in its ``env_vars``; what it sets itself stays.

    It can also be named in ``RAY_RUNTIME_ENV_HOOK``, where ``profwin run`` cannot reach the process that starts Ray.
    """
    variables = _variables()
    _known.update(variables)
    return with_variables(given, variables)


def with_variables(given: Mapping[str, Any] | None, ours: Mapping[str, str]) -> dict[str, Any]:
    """Return a runtime environment, of the kind that was given, with variables in its ``env_vars``; its own win."""
    kind: Any = dict if given is None else type(given)  # a RuntimeEnv stays one
    given = dict(given or {})
    found: dict[str, Any] = kind(**{**given, "env_vars": _merged(given.get("env_vars") or {}, ours)})
    return found


def _around_init(modify: Any) -> Any:
    @functools.wraps(modify)
    def _maybe_modify_runtime_env(*args: Any, **kwargs: Any) -> Any:
        found = modify(*args, **kwargs)
        try:
            return runtime_env(found)
        except Exception as error:  # noqa: BLE001  # Ray starts, whatever is wrong with us
            _said(error)
            return found

    return _maybe_modify_runtime_env


def _around_actor(remote: Any) -> Any:
    @functools.wraps(remote)
    def _remote(self: Any, args: Any = None, kwargs: Any = None, **actor_options: Any) -> Any:
        try:
            given = actor_options.get("runtime_env")
            own = dict((given or {}).get("env_vars") or {})
            merged = _merged(own, _begun(), always_path=False)
            if merged != own:
                make = import_module("ray.runtime_env").RuntimeEnv
                actor_options["runtime_env"] = make(**{**dict(given or {}), "env_vars": merged})
        except Exception as error:  # noqa: BLE001  # as above
            _said(error)
        return remote(self, args, kwargs, **actor_options)

    vars(_remote)["_profwin"] = True
    return _remote


def _variables() -> dict[str, str]:
    """Return all our variables in this process.

    A session that this process inherits settings for begins now, so that all workers of the job are of one run.
    """
    from profwin.configuration import environment

    session = environment()
    return {**{name: value for name, value in os.environ.items() if name.startswith(_PREFIX)}, **session}


def _begun() -> dict[str, str]:
    """Return the variables of this process's session that workers lack, if it has begun; it may still be set up.

    An actor with variables of its own cannot have a worker that waits already: it takes a second longer to start.
    """
    from profwin import configuration

    session = {} if configuration._session is None else configuration.environment()
    return {name: value for name, value in session.items() if _known.get(name) != value}


def _merged(own: Mapping[str, str], ours: Mapping[str, str], *, always_path: bool = True) -> dict[str, str]:
    """Return variables with ours added.

    Args:
        own: what the user set; it wins.
        ours: to add.
        always_path: whether PYTHONPATH is added where the user set none, too.
    """
    merged = {**ours, **own}
    path = own.get("PYTHONPATH")
    if path is not None or (always_path and FOLDER in os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        merged["PYTHONPATH"] = python_path(os.environ.get("PYTHONPATH", "") if path is None else path)
    return merged


def _said(error: Exception) -> None:
    import logging

    logging.getLogger("profwin").warning("profwin: Ray's workers may not be profiled: %s", error)
