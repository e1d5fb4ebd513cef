"""A stand-in for torch_npu, for child processes whose PYTHONPATH names the folder above; never importable elsewhere.

It imitates what was read in the wheels of torch_npu 2.13.0 and 2.14.0, which are alike there; each module says which
files of theirs it imitates. What is C++ in torch_npu is made up in ``_C.py``, after its source and its messages.

Imitated of ``torch_npu/__init__.py``: the import switches ``TORCH_DEVICE_BACKEND_AUTOLOAD`` off, and back at its end;
without CANN it raises ImportError before that. Of ``_init/core/runtime_lifecycle.py``: at exit the NPUs are shut down.
Not imitated: it does not import torch; where torch is there, ``torch.npu`` is its module, as in torch_npu.

``NPU_STAND_IN`` has words, separated by commas, for what goes wrong: see ``_C.py``.
"""

import atexit
import os
import sys

_BEFORE = os.getenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

from torch_npu import _C  # noqa: E402  # as torch_npu does

if _C.fails("cann"):
    raise ImportError("libhccl.so: cannot open shared object file: No such file or directory")
if _C.fails("cuda"):
    raise RuntimeError("Two accelerators cannot be used at the same time in PyTorch: npu and cuda.\nMore lines.")

from torch_npu import npu, profiler  # noqa: E402  # as torch_npu does

if "torch" in sys.modules:
    sys.modules["torch"].npu = npu
profiler._NonIntrusiveProfile.init()
atexit.register(_C.shut_down)


def _autoload():
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = _BEFORE


_autoload()

__all__ = ["npu", "profiler"]
