"""Imitates ``npu/__init__.py``: the lazy start, which a forked child of a process that uses NPUs must not make."""

import os

from torch_npu import _C

from .mstx import mstx
from .utils import current_device, current_stream, synchronize

_initialized = False
_original_pid = 0


def is_initialized():
    """Say whether this process uses NPUs."""
    return _initialized


def device_count() -> int:
    """Count the NPUs that this process sees."""
    if _C.fails("none"):
        return 0
    mask = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    return 8 if mask is None else len(mask.split(","))


def _lazy_init():
    global _initialized, _original_pid
    if _initialized and _original_pid != os.getpid():
        raise RuntimeError(
            "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' "
            "start method"
        )
    _initialized, _original_pid = True, os.getpid()


__all__ = ["current_device", "current_stream", "device_count", "is_initialized", "mstx", "synchronize"]
