"""Ray's own nsys: workers that Ray starts under ``nsys profile``, with capture ranges for windows and stages."""

from __future__ import annotations

from profwin.ray.environment import environment, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["nsight"]


def nsight(
    windows: int | None = None,
    *,
    output: str | None = None,
    gpu_metrics: str | None = None,
    mode: str | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return a runtime environment in which Ray starts workers under nsys, and windows and stages are capture ranges.

    For the ``runtime_env=`` of actors that record. Ray 2.60 changes the dictionary, so each actor needs one of its own.
    The workers' backend is ``nsys``, unless their settings name it together with others. What becomes of the reports,
    and how to keep them: ``docs/how-to/nsys.md``. nsys was not run here.

    Args:
        windows: after how many capture ranges of a worker nsys is done; None for as long as the worker lives. This and
            the next three: see :func:`profwin.backends.nsys_options.options`.
        output: the reports' name; Ray chooses the folder.
        gpu_metrics: devices whose counters are sampled.
        mode: when a report is written.
        runtime_env: see :func:`environment`. Options of nsys that it has itself stay, but those that capture ranges
            need are ours.
        **settings: see :func:`environment`.

    Raises:
        SettingError: an option or a setting is wrong.
        ProfwinError: Ray is not installed.
    """
    from profwin.backends import nsys_options

    chosen = nsys_options.options(windows, output=output, gpu_metrics=gpu_metrics, mode=mode)
    if settings.get("backend") is None and "nsys" not in variables(settings).get("PROFWIN_BACKEND", "").split(","):
        settings["backend"] = "nsys"
    found = environment(runtime_env, **settings)
    kind: Any = type(found)
    ours = nsys_options.environment(chosen)["nsight"]
    theirs = found.get("nsight", found.get("_nsight"))
    rest = {name: value for name, value in found.items() if name not in ("nsight", "_nsight")}
    made: dict[str, Any] = kind(**{**rest, "nsight": {**(theirs if isinstance(theirs, dict) else {}), **ours}})
    return made
