"""Where a server of this machine writes its traces: its command line and its variables say it."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["can_write_here", "sglang_directory", "vllm_directory", "vllm_profiler"]

_CONFIG = "--profiler-config"
_DIRECTORY, _PROFILER = "torch_profiler_dir", "profiler"
_VARIABLE = "VLLM_TORCH_PROFILER_DIR"
_SGLANG_VARIABLE, _SGLANG_DEFAULT = "SGLANG_TORCH_PROFILER_DIR", "/tmp"


def vllm_directory(pids: Iterable[int]) -> str | None:
    """Return where a vLLM server writes, as its command line says it; None where that cannot be seen from here.

    It is the option ``--profiler-config``, as JSON or with a field's name after a dot; of versions before 0.16 the
    variable ``VLLM_TORCH_PROFILER_DIR``.

    Args:
        pids: the server's processes.
    """
    from profwin.engines.processes import environment_of, server_arguments

    pids = list(pids)
    for pid, line in zip(pids, server_arguments(pids), strict=True):
        found = _configured(line, _DIRECTORY) or ((environment_of(pid) or {}).get(_VARIABLE) if line else None)
        if found:
            return _seen_from_here(pid, found)
    return None


def vllm_profiler(pids: Iterable[int]) -> str | None:
    """Return which profiler a vLLM server has (``torch``, ``cuda``), as its command line says it; None: not known.

    Args:
        pids: the server's processes.
    """
    from profwin.engines.processes import server_arguments

    return next((found for line in server_arguments(list(pids)) if (found := _configured(line, _PROFILER))), None)


def sglang_directory(pids: Iterable[int]) -> str | None:
    """Return where an SGLang server writes when it is not told; None where that cannot be seen from here.

    Args:
        pids: the server's processes.
    """
    from profwin.engines.processes import environment_of

    for pid in pids:
        variables = environment_of(pid)
        return None if variables is None else _seen_from_here(pid, variables.get(_SGLANG_VARIABLE, _SGLANG_DEFAULT))
    return None


def can_write_here(pids: Iterable[int]) -> bool:
    """Say whether processes see this process's files, as this process's user or as root: they can write beside it.

    Args:
        pids: the processes; none of them: nothing is known.
    """
    pids = list(pids)
    return bool(pids) and all(_same_files(pid) and _user(pid) in (os.geteuid(), 0) for pid in pids)


def _configured(line: list[str], wanted: str) -> str | None:
    """Return a field of the profiler's configuration that a command line names."""
    found = None
    for part, following in zip(line, [*line, ""][1:], strict=True):
        option, equals, value = part.partition("=")
        option, _, field = option.replace("_", "-").partition(".")
        if option != _CONFIG:
            continue
        text = value if equals else following
        if not field:
            found = _of_json(text, wanted) or found
        elif field == wanted.replace("_", "-"):
            found = text or found
    return found


def _of_json(text: str, wanted: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = value.get(wanted) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _seen_from_here(pid: int, path: str) -> str | None:
    """Return a path of another process as this one would write it; None where files have other names there."""
    if "://" in path or "\0" in path:
        return path  # of a store that is no file system
    if not _same_files(pid):
        return None
    try:
        return os.path.normpath(os.path.join(os.readlink(f"/proc/{pid}/cwd"), os.path.expanduser(path)))
    except OSError:
        return os.path.expanduser(path) if os.path.isabs(os.path.expanduser(path)) else None


def _same_files(pid: int) -> bool:
    try:
        there, here = os.stat(f"/proc/{pid}/ns/mnt"), os.stat("/proc/self/ns/mnt")
        roots = os.stat(f"/proc/{pid}/root"), os.stat("/")
    except OSError:
        return False
    return there.st_ino == here.st_ino and roots[0].st_ino == roots[1].st_ino and roots[0].st_dev == roots[1].st_dev


def _user(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
