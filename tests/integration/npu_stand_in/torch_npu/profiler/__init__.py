"""Imitates ``profiler/__init__.py`` and ``profiler/_non_intrusive_profile.py``."""

import os

from torch_npu._C import ProfilerActivity

from . import dynamic_profile
from .experimental_config import AiCMetrics, ExportType, HostSystem, ProfilerLevel, _ExperimentalConfig
from .profiler import _KinetoProfile, profile, tensorboard_trace_handler
from .scheduler import ProfilerAction
from .scheduler import Schedule as schedule


class _NonIntrusiveProfile:
    @staticmethod
    def init():
        """Start dynamic_profile where a variable asks for it."""
        path = os.getenv("PROF_CONFIG_PATH", "")
        daemon = os.getenv("MSMONITOR_USE_DAEMON") or os.getenv("KINETO_USE_DAEMON") or "0"
        if path or daemon == "1":
            dynamic_profile.init(path)


__all__ = [
    "AiCMetrics", "ExportType", "HostSystem", "ProfilerAction", "ProfilerActivity", "ProfilerLevel",
    "_ExperimentalConfig", "_KinetoProfile", "_NonIntrusiveProfile", "profile", "schedule", "tensorboard_trace_handler",
]  # fmt: skip
