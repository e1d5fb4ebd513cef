"""What the profiler takes from the library."""

import time

from torch_npu import _C
from torch_npu._C import stand_in

ProfilerActivity = stand_in.ProfilerActivity


class NpuProfilerConfig:
    """The first argument is the folder."""

    def __init__(self, folder, *rest):
        self.folder = folder


class _ExperimentalConfig:
    def __init__(self, **options):
        self.options = options


def _init_profiler(path, activities):
    _C.stand_in.init_profiler(path)


def _start_profiler(config, activities):
    _C.stand_in.start_profiler(config.folder)


def _stop_profiler():
    _C.stand_in.stop_profiler()


def _supported_npu_activities():
    return set(ProfilerActivity)


def _nothing(*values):
    return 0


_warmup_profiler = _finalize_profiler = _enable_profiler_in_child_thread = _disable_profiler_in_child_thread = _nothing
_get_freq = _get_syscnt = _get_syscnt_enable = _get_host_uid = _nothing
_get_monotonic = time.monotonic_ns
