"""Imitates ``contrib/transfer_to_npu.py``: from its import on ``torch.profiler`` is torch_npu's."""

import sys

import torch_npu


def _patch_profiler():
    torch = sys.modules.get("torch")
    if torch is not None:
        for name in ("profile", "schedule", "tensorboard_trace_handler", "ProfilerAction"):
            setattr(torch.profiler, name, getattr(torch_npu.profiler, name))


_patch_profiler()
