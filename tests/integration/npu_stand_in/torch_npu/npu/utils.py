"""Imitates ``npu/utils.py``."""

import torch_npu
from torch_npu import _C


def synchronize(device=None):
    """Wait for the work of the device."""
    torch_npu.npu._lazy_init()
    _C.synchronize()


def current_device():
    """Return the number of the current NPU, as this process numbers them."""
    torch_npu.npu._lazy_init()
    return 0


def current_stream(device=None):
    """Return the current stream: there is none here."""
    return
