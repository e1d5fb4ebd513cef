"""The wheel's own imports much that needs the library."""

import os

__path__.append(os.path.join(os.environ["TORCH_NPU_SOURCE"], "torch_npu", "utils"))
