"""The part of ``npu`` that the profiler needs; ``mstx.py`` is the wheel's."""

import os

from torch_npu import _C

__path__.append(os.path.join(os.environ["TORCH_NPU_SOURCE"], "torch_npu", "npu"))
_initialized = False
_original_pid = 0


class Event:
    """Its methods are wrapped while the profiler is on."""

    def record(self):
        """Do nothing."""

    wait = query = elapsed_time = synchronize = record


def is_initialized():
    """Say whether this process uses NPUs."""
    return _initialized


def device_count():
    """Count the NPUs."""
    return 8


def _lazy_init():
    global _initialized, _original_pid
    if _initialized and _original_pid != os.getpid():
        raise RuntimeError("Cannot re-initialize NPU in forked subprocess.")
    _initialized, _original_pid = True, os.getpid()


def current_device():
    """Return the current NPU."""
    _lazy_init()
    return 0


def current_stream(device=None):
    """Return no stream."""
    return


def synchronize(device=None):
    """Wait for the device."""
    _lazy_init()
    _C.stand_in.synchronize()


from .mstx import mstx  # noqa: E402  # it needs what is above

__all__ = ["Event", "current_device", "current_stream", "device_count", "is_initialized", "mstx", "synchronize"]
