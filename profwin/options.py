"""Options of backends: the settings that are dictionaries, each with what it may hold, and their form in a variable."""

from __future__ import annotations

from profwin.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    Check: TypeAlias = Callable[[Any], Any]

__all__ = [
    "MEMORY_OPTIONS", "NPU_OPTIONS", "TORCH_OPTIONS", "memory_options", "npu_options", "options_text", "torch_options",
]  # fmt: skip

TORCH_OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
"""What ``torch_options`` may hold: the boolean switches of ``torch.profiler.profile`` that change what is recorded."""

_LEVELS = ("Level_none", "Level0", "Level1", "Level2")
_METRICS = (
    "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB", "ResourceConflictRatio", "L2Cache",
    "MemoryAccess", "AiCoreNone",
)  # fmt: skip
_EXPORTS = ("Text", "Db")
_HOST = ("CPU", "MEM", "DISK", "NETWORK", "OSRT", "NUMA")
_ANALYSES = ("off", "async", "sync")
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class _WrongError(Exception):
    """Says what is allowed."""


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _ON + _OFF:
        return value.lower() in _ON
    raise _WrongError("True or False (in a variable: 1 or 0)")


def _one_of(*allowed: str) -> Check:
    def check(value: Any) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        raise _WrongError("one of " + ", ".join(allowed))

    return check


def _some_of(*allowed: str) -> Check:
    """Take one or several, as a list or joined by ``+``; without a name that is allowed, any will do."""

    def check(value: Any) -> list[str]:
        parts = value.split("+") if isinstance(value, str) else value
        if isinstance(parts, (list, tuple)) and parts and all(isinstance(part, str) and part for part in parts):
            wrong = [part for part in parts if (part not in allowed if allowed else set(part) & set("+,="))]
            if not wrong:
                return list(dict.fromkeys(parts))
        names = f"one or several of {', '.join(allowed)}" if allowed else "names without '+', ',' and '='"
        raise _WrongError(f"{names}, as a list (in a variable: joined by +)")

    return check


def _milliseconds(value: Any) -> float:
    try:
        found = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = -1.0
    if 0 <= found < 1e9:
        return found
    raise _WrongError("milliseconds, from 0")


def _number(value: Any) -> int:
    try:
        found = 0 if isinstance(value, (bool, float)) else int(value)
    except (TypeError, ValueError):
        found = 0
    if found > 0:
        return found
    raise _WrongError("a whole number from 1")


NPU_OPTIONS: dict[str, tuple[Check, Any]] = {
    "level": (_one_of(*_LEVELS), "Level0"),
    "aic_metrics": (_one_of(*_METRICS), None),
    "export_type": (_some_of(*_EXPORTS), ["Text"]),
    "analysis": (_one_of(*_ANALYSES), "off"),
    "memory": (_flag, False),
    "shapes": (_flag, False),
    "stack": (_flag, False),
    "l2_cache": (_flag, False),
    "op_attr": (_flag, False),
    "record_op_args": (_flag, False),
    "gc_detect_threshold": (_milliseconds, None),
    "data_simplification": (_flag, True),
    "host_sys": (_some_of(*_HOST), None),
    "sys_io": (_flag, False),
    "sys_interconnection": (_flag, False),
    "mstx_domain_include": (_some_of(), None),
    "mstx_domain_exclude": (_some_of(), None),
}
"""What ``npu_options`` may hold: for each option what checks it, and its default. The names of values are torch_npu's.

``analysis`` is profwin's own: what torch_npu makes of the raw data while the recording stops. All others are arguments
of ``torch_npu.profiler.profile`` and of its ``_ExperimentalConfig``.
"""


MEMORY_OPTIONS: dict[str, tuple[Check, Any]] = {
    "max_entries": (_number, 100_000),
    "stacks": (_one_of("python", "all"), "python"),
    "context": (_one_of("none", "state", "alloc", "all"), "all"),
    "on_oom": (_flag, True),
    "device": (_one_of("cuda", "npu"), None),
}
"""What ``memory_options`` may hold: for each option what checks it, and its default.

``max_entries``, ``stacks`` and ``context`` are arguments of ``torch.cuda.memory._record_memory_history``.
"""


def torch_options(setting: str, value: Any) -> dict[str, bool]:
    """Parse ``torch_options``.

    Raises:
        SettingError: what is not allowed, and what is.
    """
    if isinstance(value, str):
        value = {name: True for name in value.split(",") if name}
    allowed = f"a dict with keys among {', '.join(TORCH_OPTIONS)} and values True or False"
    if not isinstance(value, dict) or not all(isinstance(flag, bool) for flag in value.values()):
        raise SettingError(setting, value, allowed)
    if unknown := [name for name in value if name not in TORCH_OPTIONS]:
        raise SettingError(setting, unknown[0], allowed)
    return dict(value)


def npu_options(setting: str, value: Any) -> dict[str, Any]:
    """Parse ``npu_options``.

    Raises:
        SettingError: what is not allowed, and what is.
    """
    found = _checked(setting, value, NPU_OPTIONS)
    level, metrics = found.get("level", "Level0"), found.get("aic_metrics", "AiCoreNone")
    if metrics != "AiCoreNone" and level not in ("Level1", "Level2"):
        raise SettingError(f"{setting}: aic_metrics", metrics, "it together with level=Level1 or Level2")
    if "mstx_domain_include" in found and "mstx_domain_exclude" in found:
        raise SettingError(
            f"{setting}: mstx_domain_exclude", found["mstx_domain_exclude"], "it, or mstx_domain_include, but not both"
        )
    return found


def memory_options(setting: str, value: Any) -> dict[str, Any]:
    """Parse ``memory_options``.

    Raises:
        SettingError: what is not allowed, and what is.
    """
    return _checked(setting, value, MEMORY_OPTIONS)


def options_text(value: Mapping[str, Any]) -> str:
    """Return options in the form that a variable has: ``name`` for what is on, else ``name=value``."""
    parts = []
    for name, option in value.items():
        if isinstance(option, bool):
            if option or name not in TORCH_OPTIONS:  # those are off where they are not named
                parts.append(name if option else f"{name}=0")
        elif isinstance(option, (list, tuple)):
            parts.append(f"{name}={'+'.join(option)}")
        else:
            parts.append(f"{name}={option}")
    return ",".join(parts)


def _checked(setting: str, value: Any, table: Mapping[str, tuple[Check, Any]]) -> dict[str, Any]:
    """Check a dictionary of options, or its text, ``name=value,name``, against a table; None stands for the default."""
    if isinstance(value, str):
        pairs = [part.strip().partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): text.strip() if equals else True for name, equals, text in pairs}
    allowed = f"a dict with keys among {', '.join(table)}"
    if not isinstance(value, dict):
        raise SettingError(setting, value, allowed)
    found = {}
    for name, option in value.items():
        if name not in table:
            raise SettingError(setting, name, allowed)
        if option is None:
            continue
        try:
            found[name] = table[name][0](option)
        except _WrongError as wrong:
            raise SettingError(f"{setting}: {name}", option, str(wrong)) from None
    return found
