"""Whether Nsight Systems launched this process: only then can it record here, and only one may use CUPTI.

nsys wraps a process where it is started; nothing can call it in afterwards. What it leaves in a process that it
launched, of which none is documented by NVIDIA:

- ``NSYS_PROFILING_SESSION_ID``: the usual sign; GROMACS, CUDA.jl and NVTX.jl, lightning-thunder (pull request 2715) and
  others go by it. Where collection is delayed it was seen to be missing at first.
- ``LD_PRELOAD``, ``CUDA_INJECTION64_PATH``, ``NVTX_INJECTION64_PATH`` and ``NSYSDK_INJECTION64_PATH`` with one of its
  libraries, ``libToolsInjection64.so`` or ``libToolsInjectionProxy64.so`` (public logs of 2024.6, 2026.2 and 2026.3).
- Such a library among those that are loaded, also where the environment was cleaned since.

nsys was not run here. A child keeps the variables when its parent's session is over: then this says yes, and nothing is
recorded; that cannot be seen from inside.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["launched"]

_SESSION = "NSYS_PROFILING_SESSION_ID"
_LIBRARY = "libToolsInjection"
_INJECTIONS = ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NSYSDK_INJECTION64_PATH")


def launched(environment: Mapping[str, str] = os.environ, loaded: str = "/proc/self/maps") -> str | None:
    """Say by which sign this process was launched under nsys; None if there is none.

    Args:
        environment: the process's variables.
        loaded: a file that names the libraries that are loaded.
    """
    if environment.get(_SESSION):
        return f"{_SESSION} is set"
    for name in _INJECTIONS:
        if _LIBRARY in environment.get(name, ""):
            return f"{name} names a library of nsys"
    try:
        with open(loaded, encoding="utf-8", errors="replace") as file:
            if any(_LIBRARY in line for line in file):
                return "a library of nsys is loaded"
    except OSError:
        pass
    return None
