"""Ray's own nsys: workers that Ray starts under ``nsys profile``, with capture ranges for windows and stages."""

from __future__ import annotations

import os
import sys

from profwin.ray.environment import environment, variables
from profwin.ray.reports import owe

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
    The workers' backend is ``nsys``, unless their settings name it together with others. nsys was not run here.

    nsys writes the reports when ``windows`` ranges are over, or with ``mode="async"`` or ``"sync"`` at the end of each;
    else when the worker has ended, where Ray 2.60 kills it: that is warned of.

    Ray starts such a worker as ``python``, whatever that is on its node (ray issue 66093): so the folder of this
    process's Python goes before the worker's ``PATH``, unless the environment sets that. The end of this process's
    session waits for the reports, for a minute at most: see :func:`profwin.ray.wait_for_reports`.

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
    from profwin.configuration import current

    chosen = nsys_options.options(windows, output=output, gpu_metrics=gpu_metrics, mode=mode)
    if settings.get("backend") is None and "nsys" not in variables(settings).get("PROFWIN_BACKEND", "").split(","):
        settings["backend"] = "nsys"
    found = environment(runtime_env, **settings)
    folder = os.path.dirname(sys.executable)
    if os.path.exists(os.path.join(folder, "python")):
        found["env_vars"] = {"PATH": f"{folder}{os.pathsep}${{PATH}}", **found.get("env_vars", {})}
    session = current()
    if session is not None and windows is None and mode in (None, "defer"):
        session.warn(
            "nsight",
            "nsys will write its reports when a worker has ended, and Ray 2.60 kills it then: use nsight(mode='async') "
            "or nsight(windows), or set RAY_process_group_cleanup_enabled=0 where the raylets are started",
        )
    owe(session, windows, "%p" in chosen["output"].rpartition("/")[2])
    kind: Any = type(found)
    ours = nsys_options.environment(chosen)["nsight"]
    theirs = found.get("nsight", found.get("_nsight"))
    rest = {name: value for name, value in found.items() if name not in ("nsight", "_nsight")}
    made: dict[str, Any] = kind(**{**rest, "nsight": {**(theirs if isinstance(theirs, dict) else {}), **ours}})
    return made
