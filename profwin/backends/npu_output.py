"""The folder that torch_npu's profiler leaves: its name, and whether what a recording must leave is there.

Every public method of the profiler swallows its errors and prints them, so that only the folder proves that it
recorded. Read in the wheels of torch_npu 2.13.0 and 2.14.0: ``profiler/_profiler_path_creator.py`` (name),
``profiler_interface.py`` (``_dump_profiler_info``), ``analysis/prof_common_func/_path_manager.py`` (``PROF_*``).
"""

from __future__ import annotations

import json
import os
import re

__all__ = ["lacking", "remove", "worker_name"]

_LONGEST = 200
"""Characters of a worker's name: torch_npu takes up to 225, but adds up to 36 and a file's name may have 255."""
_INFO = re.compile(r"^profiler_info(_\d+)?\.json$")
_RAW = re.compile(r"^PROF_\d+_\d+_[0-9a-zA-Z]+")


def worker_name(stem: str) -> str:
    """Return what torch_npu is to call the folder of a trace before it adds the pid, the time and ``_ascend_pt``."""
    name = os.path.basename(stem)
    if len(name) <= _LONGEST:
        return name
    from zlib import crc32

    return f"{name[: _LONGEST - 9]}~{crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def lacking(folder: str) -> list[str]:
    """Say, in words, what a folder lacks of what each finished recording leaves; nothing where it is whole."""
    try:
        with os.scandir(folder) as entries:
            there = {entry.name: entry.is_dir() for entry in entries}
    except OSError as error:
        return [f"the folder itself ({error.strerror})"]
    found = []
    told = next((name for name in sorted(there) if _INFO.match(name)), None)
    if told is None:
        found.append("profiler_info.json: it never finished its stop")
    elif not _ended(os.path.join(folder, told)):
        found.append(f"end_info in {told}: it never finished its stop")
    if not there.get("FRAMEWORK"):
        found.append("FRAMEWORK: nothing of the host was recorded")
    if not any(folder and _RAW.match(name) for name, folder in there.items()):
        found.append("PROF_*: nothing of CANN and the NPU was recorded")
    return found


def remove(folder: str, stem: str) -> None:
    """Remove the folder of a recording that did not start, if its name says that it is ours."""
    if os.path.basename(folder).startswith(worker_name(stem) + "_"):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _ended(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            told = json.load(file)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(told, dict) and bool(told.get("end_info"))
