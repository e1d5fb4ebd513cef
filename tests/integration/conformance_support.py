"""What the conformance of each built-in backend needs: stand-ins for what is not on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "unit"))

import memory_support  # its folder is only now in the path

__all__ = ["compute", "memory_support"]


def compute() -> None:
    """Let torch do something on the CPU."""
    import torch

    torch.ones(16, 16).matmul(torch.ones(16, 16)).sin()
