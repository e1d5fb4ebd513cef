"""torch_npu's real Python source, straight out of the wheel that ``TORCH_NPU_SOURCE`` names, above replaced C++.

What is here hides what is in the wheel under the same name: the library ``_C``, the import of all parts, and
``npu/__init__.py``, which needs the library. The profiler and mstx are the wheel's.
"""

import atexit
import os
import sys

__path__.append(os.path.join(os.environ["TORCH_NPU_SOURCE"], "torch_npu"))

import torch  # noqa: F401, E402  # as torch_npu does

from torch_npu import _C, npu  # noqa: E402  # as torch_npu does

sys.modules["torch"].npu = npu

from torch_npu import profiler  # noqa: E402  # as torch_npu does

atexit.register(_C.stand_in.shut_down)

__all__ = ["npu", "profiler"]
