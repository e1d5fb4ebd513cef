"""Access to torch_npu: its import, which may fail in several ways, and what keeps its profiler from recording.

Read in the wheels of torch_npu 2.13.0 and 2.14.0, and in the documents that are named; nothing here was run on an NPU.
"""

from __future__ import annotations

import os
import sys
import threading

from profwin.errors import BackendError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["foreign", "forked", "load", "missing", "path_slot", "unfit", "why_not"]

_forked = False
_broken: str | None = None
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_MSPROF = ("PROFILER_SAMPLECONFIG", "PROFILING_MODE")
"""Variables of a process that msprof launched. With one of them the profiler does nothing, and says so on stdout alone:
``check_msprof_env`` in ``profiler/analysis/prof_common_func/_utils.py``."""


def missing() -> str | None:
    """Say why torch_npu is not to be imported here; None where it is, or may be. Imports nothing."""
    if sys.modules.get("torch_npu") is not None:
        return None
    from importlib.util import find_spec

    if find_spec("torch_npu") is None:
        return "torch_npu is not installed: install the one that fits your torch and CANN"
    if os.environ.get(_AUTOLOAD) == "0":
        return (
            f"torch_npu is installed, but {_AUTOLOAD}=0 keeps torch from loading it: unset that, or import torch_npu "
            "in the program"
        )
    return None


def load() -> Any:
    """Import torch_npu and return it. An import that failed is not tried again: it leaves parts of itself behind.

    Raises:
        BackendError: it cannot be imported; it says what to do.
    """
    global _broken
    if (problem := _broken or missing()) is not None:
        raise BackendError("torch_npu", "open", problem)
    before = os.environ.get(_AUTOLOAD)
    try:
        import torch_npu  # type: ignore[import-not-found,unused-ignore]  # never installed where types are checked
    except Exception as error:
        # Its import switches loading off, and a failed one leaves that to our children.
        if before is None:
            os.environ.pop(_AUTOLOAD, None)
        else:
            os.environ[_AUTOLOAD] = before
        lines = str(error).splitlines() or [""]
        said = f"{type(error).__name__}: {lines[0]}"
        if ".so" in said:
            _broken = f"CANN is not set up here ({said}): source CANN's set_env.sh before the program starts"
        else:
            _broken = f"torch_npu cannot be imported ({said})"
        raise BackendError("torch_npu", "open", _broken) from error
    return torch_npu


def path_slot() -> Any:
    """Return torch_npu's slot for where the next recording goes, which also knows whether one is on; None if unknown.

    ``ProfPathCreator`` of ``profiler/_profiler_path_creator.py``, a singleton of the process: ``get_prof_dir()`` is
    the folder of the last recording that began, ``is_prof_inited`` whether it has not been finalised.
    """
    module = sys.modules.get("torch_npu.profiler._profiler_path_creator")
    make = getattr(module, "ProfPathCreator", None)
    return None if make is None else make()


def forked() -> None:
    """Take note, in a forked child, that the parent uses NPUs: then the child cannot."""
    global _forked
    _forked = True


def unfit() -> str | None:
    """Say why this process or this thread may not record; None if it may.

    ``npu/__init__.py`` refuses to start in a child that was forked from a process that uses NPUs. torch_npu's profiler
    must be stopped in the thread that started it, and stopping it off the main thread with work in flight corrupts the
    heap and ends the process (vllm-ascend issues 14974, 15294, 16577, 16625).
    """
    if _forked:
        return (
            "the process was forked from one that uses NPUs, and cannot use any itself: start it with "
            "multiprocessing's spawn, or before the first use"
        )
    if threading.current_thread() is threading.main_thread():
        return None
    name = threading.current_thread().name
    return f"torch_npu records in the main thread alone, and this is {name!r}: open the window or stage there"


def foreign(*, beside_torch: bool) -> str | None:
    """Say which profiler that is not ours keeps torch_npu's from recording; None if none. Imports nothing.

    Args:
        beside_torch: whether the backend ``torch`` was asked for, too.
    """
    for name in _MSPROF:
        if os.environ.get(name):
            return (
                f"the process was launched under msprof ({name} is set), where torch_npu's profiler does nothing: "
                f"launch it without msprof, or unset {name}"
            )
    if beside_torch:
        return _beside_torch()
    return _dynamic() or _torch() or _torch_npu()


def _beside_torch() -> str:
    if "torch_npu.contrib.transfer_to_npu" in sys.modules:
        return (
            "transfer_to_npu is in force, so torch.profiler is torch_npu's, and the backends torch and torch_npu would "
            "be one profiler started twice: ask for torch_npu alone"
        )
    # Both keep their state in one slot of the thread, c10's PROFILER_STATE.
    return "the profilers of torch and torch_npu exclude each other in a thread: ask for one of the two backends"


def _dynamic() -> str | None:
    """Look for dynamic_profile, which may begin to record at any step of an optimizer.

    CANN's documents: the profiling methods "cannot be enabled at the same time" (Ascend PyTorch Profiler).
    """
    make = getattr(sys.modules.get("torch_npu.profiler.dynamic_profile"), "_DynamicProfile", None)
    state = None if make is None else make()
    if state is None or not (getattr(state, "repeat_init", False) or getattr(state, "prof", None) is not None):
        return None
    return (
        "torch_npu's dynamic_profile is on, and must not be together with another way to record: unset "
        "PROF_CONFIG_PATH, MSMONITOR_USE_DAEMON and KINETO_USE_DAEMON, and take its calls out of the program"
    )


def _torch() -> str | None:
    switchboard = sys.modules.get("torch.autograd.profiler")
    if switchboard is None:
        return None
    from torch.autograd import _profiler_enabled  # type: ignore[attr-defined]  # not in its __all__

    if getattr(switchboard, "_is_profiler_enabled", False) or _profiler_enabled():
        return (
            "torch's own profiler is on, which excludes torch_npu's in this thread: stop it before the window or stage"
        )
    return None


def _torch_npu() -> str | None:
    slot = path_slot()
    if slot is None or _forked or not getattr(slot, "is_prof_inited", False):
        return None  # a forked child has the parent's slot; what is said of that is another thing
    return (
        f"another torch_npu profiler is on in this process ({slot.get_prof_dir()}), or one did not finish: a second "
        "one would end its recording; stop it before the window or stage"
    )


def why_not() -> str | None:
    """Say why torch_npu cannot record on this machine; None if it can. Imports torch_npu where that is possible."""
    for name in _MSPROF:
        if os.environ.get(name):
            return f"launched under msprof ({name} is set), where torch_npu's profiler does nothing"
    try:
        count = int(load().npu.device_count())
    except BackendError as error:
        return error.problem
    except Exception as error:  # noqa: BLE001  # whatever a driver says
        return f"torch_npu cannot count the NPUs ({type(error).__name__}: {error})"
    return None if count else "torch_npu finds no NPU here"
