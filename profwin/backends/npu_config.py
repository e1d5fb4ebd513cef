"""The options of the ``torch_npu`` backend as arguments of torch_npu's ``_ExperimentalConfig``."""

from __future__ import annotations

from profwin.backends.npu_marks import DOMAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["experimental"]


def experimental(profiler: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``_ExperimentalConfig``. Older torch_npu lacks some, so defaults are left out."""
    level = options.get("level", "Level0")
    usual = "PipeUtilization" if level in ("Level1", "Level2") else "AiCoreNone"
    found: dict[str, Any] = {
        "profiler_level": getattr(profiler.ProfilerLevel, level),
        "aic_metrics": getattr(profiler.AiCMetrics, options.get("aic_metrics", usual)),
        "export_type": [getattr(profiler.ExportType, name) for name in options.get("export_type", ["Text"])],
        "mstx": True,
    }
    for name in (
        "l2_cache", "op_attr", "record_op_args", "gc_detect_threshold", "data_simplification", "sys_io",
        "sys_interconnection", "mstx_domain_exclude",
    ):  # fmt: skip
        if name in options:
            found[name] = options[name]
    if "host_sys" in options:
        found["host_sys"] = [getattr(profiler.HostSystem, name) for name in options["host_sys"]]
    if "mstx_domain_include" in options:
        found["mstx_domain_include"] = list(dict.fromkeys([*options["mstx_domain_include"], DOMAIN]))
    return found
