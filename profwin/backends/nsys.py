"""The ``nsys`` backend: capture ranges of Nsight Systems, by ``cudaProfilerStart`` and ``cudaProfilerStop``.

nsys records, in the process that it launched; this says when. Launch the process with the options that ``profwin
nsys-options`` prints, or each capture range after the first is ignored. Inside a range windows, stages and spans are
ranges of NVTX, as with the backend ``nvtx``.

- The two calls are not counted (NVIDIA's documentation: a start while profiling is on has no effect, and so for a stop
  while it is off). So a process has one range of ours at a time, and a second is refused. Calls by others cannot be
  seen: one that stops inside our range ends it.
- Either call may report the error of earlier work on the device (same documentation); then the window or stage runs
  unrecorded, or its recording counts as failed.
- The device is waited for before the stop, or the last kernels fall out of the range; nsys writes out what it has at
  the stop (its option ``--flush-on-cudaprofilerstop``, on by default).
- It goes through torch's runtime, which initialises CUDA in this process where that has not happened. Stop and wait
  are for the device that was current at the start: they may run in a thread that has another one.
- ``--gpu-metrics-devices`` takes the device's counters for one owner alone (NVIDIA/DCGM, issues 56 and 62): so the
  device lock is held from start to stop. Metrics that nsys samples outside of capture ranges are beyond its reach.

nsys writes its report when the range or the process has ended, so there is nothing to export here. Neither nsys nor a
GPU was at hand: the calls were checked on a stand-in for torch's runtime, the ranges as in ``nvtx.py``.
"""

from __future__ import annotations

import os
import weakref

from profwin.backends.nsys_launch import launched
from profwin.backends.nvtx import NvtxRecording, listener
from profwin.errors import BackendError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.backends import Request
    from profwin.settings import Settings

__all__ = ["BACKEND"]

_current: weakref.ref[NsysRecording] | None = None
"""The capture range that is open in this process."""


class NsysRecording(NvtxRecording):
    """One capture range, from entry to exit.

    Args:
        domain: as for `NvtxRecording`.
    """

    ranges_outlast_it = False  # a range that is open at its end would have no end in nsys's report

    def __init__(self, domain: Any) -> None:
        super().__init__(domain)
        self._process = 0
        self._device = 0

    def __enter__(self) -> NsysRecording:
        global _current
        problem = NsysBackend.unusable()
        if problem is None and _current is not None and _current() is not None:
            problem = "a capture range of this process is open, and cudaProfilerStart does not count: end that first"
        if problem is not None:
            raise BackendError("nsys", "open", problem)
        import torch

        _current = weakref.ref(self)
        try:
            self._process = os.getpid()
            self._device = torch.cuda.current_device()
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]  # torch has no annotation there
        except BaseException:
            # It may have started all the same: with the error of earlier work, or before Ctrl-C. One stop too many
            # has no effect.
            try:
                self._stop()
            except Exception:  # noqa: BLE001  # what is said is the first error
                pass
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process != os.getpid():  # never entered, left before, or a forked child, where CUDA cannot be used
            return
        import torch

        try:
            with torch.cuda.device(self._device):
                try:
                    torch.cuda.synchronize()
                finally:
                    self._stop()
        finally:
            if self._process:  # the device could not be chosen, as after an error in a kernel
                self._stop()

    def _stop(self) -> None:
        global _current
        import torch

        try:
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]  # torch has no annotation there
        finally:
            self._process, _current = 0, None


class NsysBackend:
    """Open and close capture ranges of the nsys that launched this process."""

    name = "nsys"
    exclusive = True  # GPU metrics have one owner on a device
    ranges = True  # NVTX
    thread_bound = False  # both calls are the process's, from whichever thread
    revocable = True  # what was recorded until the stop is kept

    def __init__(self, settings: Settings) -> None:
        """Take no settings: what nsys records is said where it is started."""

    @classmethod
    def unusable(cls) -> str | None:
        """Say why no capture range can be opened here; imports torch, and asks for a CUDA device."""
        try:
            import torch
        except ImportError as error:
            return f"torch cannot be imported ({error}): install a CUDA build of it"
        if torch.version.cuda is None:
            return f"torch {torch.__version__} is built without CUDA: install a CUDA build of it"
        if not torch.cuda.is_available():
            return "torch finds no CUDA device: see nvidia-smi, and CUDA_VISIBLE_DEVICES"
        return None

    def caution(self, finding: Callable[[str, str], object]) -> None:
        """Say that nothing will be recorded where nsys did not launch this process."""
        if launched() is None:
            finding(
                "nsys-not-there",
                "nothing shows that nsys launched this process, so its capture ranges record nothing: start it with "
                "`nsys profile`; `profwin nsys-options` prints the options",
            )

    def foreign(self) -> None:
        """Find none: a range that somebody else opened cannot be seen."""
        return

    def open(self, request: Request) -> NsysRecording:  # noqa: ARG002  # part of the protocol
        """Return a new capture range; its entry starts it and its exit stops it."""
        return NsysRecording(listener())


def _forked() -> None:
    """Forget the parent's range in a child."""
    global _current
    _current = None


BACKEND = NsysBackend
os.register_at_fork(after_in_child=_forked)
