"""Engines that are plain objects with ``start_profile`` and ``stop_profile``."""

from __future__ import annotations

import os

from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ObjectEngine"]

_OFFERED = ("directory", "profile_prefix", "metadata")


class ObjectEngine:
    """Adapt an object.

    ``start_profile`` is called with those of the keywords ``directory``, ``profile_prefix`` and ``metadata`` that its
    signature accepts (vLLM's ``LLM`` takes the prefix); ``stop_profile`` without arguments, and its return confirms
    that nothing records any more. If it returns a path or a list of paths, those are listed as the window's traces. Two
    attributes are read where they exist: ``devices``, names as :func:`profwin.configure` takes them, and
    ``process_ids``, the processes that record, by whose death an engine that cannot be asked any more is known to have
    stopped.

    Args:
        engine: the object.

    Raises:
        SettingError: one of the two methods is missing.
    """

    def __init__(self, engine: object) -> None:
        for method in ("start_profile", "stop_profile"):
            if not callable(getattr(engine, method, None)):
                raise SettingError("engine", engine, "an object with the methods start_profile and stop_profile")
        self.target: Any = engine
        self.name = type(engine).__name__

    @property
    def devices(self) -> tuple[str, ...] | None:
        """The engine's own ``devices``, or None."""
        found = getattr(self.target, "devices", None)
        return None if found is None else (found,) if isinstance(found, str) else tuple(found)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The engine's own ``process_ids``; empty where it has none."""
        return tuple(getattr(self.target, "process_ids", None) or ())

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
        """Call ``start_profile``; whatever it raises passes."""
        values = dict(zip(_OFFERED, (directory, prefix, metadata), strict=True))
        self.target.start_profile(**{name: values[name] for name in self._accepted()})

    def stop(self) -> list[str]:
        """Call ``stop_profile``; whatever it raises passes, and means that the stop is not confirmed."""
        answer = self.target.stop_profile()
        if isinstance(answer, (str, os.PathLike)):
            return [os.fspath(answer)]
        if isinstance(answer, (list, tuple)):
            return [os.fspath(path) for path in answer if isinstance(path, (str, os.PathLike))]
        return []

    def _accepted(self) -> list[str]:
        from inspect import Parameter, signature

        try:
            parameters = signature(self.target.start_profile).parameters
        except (TypeError, ValueError):
            return []
        takes_all = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
        return [name for name in _OFFERED if takes_all or name in parameters]
