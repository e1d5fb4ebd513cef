"""The options of ``nsys profile`` under which the backend ``nsys`` records: as a command line, and for Ray.

Names and meanings are those of NVIDIA's user guide (2026). nsys was not run here.
"""

from __future__ import annotations

from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MODES", "command", "environment", "options"]

MODES = ("defer", "sync", "async")
"""When nsys writes a range's report: after all ranges (nsys's default), or at once, the program waiting for it or not.

Older versions of nsys know none of the words and always defer.
"""
_NAME = "profwin_%h_%p"


def options(
    windows: int | None = None, *, output: str | None = None, gpu_metrics: str | None = None, mode: str | None = None
) -> dict[str, str]:
    """Return the long options, without their dashes, and what each is set to. The dictionary is the caller's own.

    Args:
        windows: after how many capture ranges of a process its nsys session is over, from 1: what comes later is not
            recorded. None for as long as the process lives. A process has a range for each recorded window and stage,
            or with ``collect="step"`` one for each window and each step; each part of one that is split counts.
        output: the report's path; nsys replaces ``%h`` by the host and ``%p`` by the process, and appends the range's
            number. Default: ``profwin_%h_%p`` in the current directory.
        gpu_metrics: devices whose counters are sampled: ``"all"``, ``"cuda-visible"`` or nsys's own numbers. Only one
            process on a host may sample a device.
        mode: one of `MODES`; None leaves it to nsys, also to one that does not know the word.

    Raises:
        SettingError: ``windows`` is no such number, or ``mode`` none of those.
    """
    if windows is not None and windows < 1:
        raise SettingError("windows", windows, "a whole number from 1, or None")
    if mode is not None and mode not in MODES:
        raise SettingError("mode", mode, f"one of {', '.join(MODES)}, or None")
    end = "repeat" if windows is None else f"repeat-shutdown:{windows}"
    found = {
        "trace": "cuda,nvtx",
        "capture-range": "cudaProfilerApi",
        "capture-range-end": end if mode is None else f"{end}:{mode}",
        "kill": "none",  # else nsys ends the program after the last range
        "output": output or _NAME,
    }
    if gpu_metrics is not None:
        found["gpu-metrics-devices"] = gpu_metrics
    return found


def command(given: Mapping[str, str]) -> list[str]:
    """Return `options` as the words of a command line, to which the program is appended."""
    return ["nsys", "profile", *(f"--{name}={value}" for name, value in given.items())]


def environment(given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return `options` as a Ray runtime environment, for ``runtime_env=`` of an actor or task.

    Ray 2.60 runs its worker under ``nsys profile`` with these options. It takes the report's name alone, under the key
    ``o``, and keeps the reports in ``logs/nsight`` of its session, on the node of the worker; it changes the
    dictionary, so each actor needs one of its own. How to keep its reports: ``docs/how-to/nsys.md``.
    """
    named = {name: value for name, value in given.items() if name != "output"}
    if "output" in given:
        named["o"] = given["output"].rpartition("/")[2]
    return {"nsight": named}
