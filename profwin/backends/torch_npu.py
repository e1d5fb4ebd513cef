"""The ``torch_npu`` backend: ``torch_npu.profiler``, which records this process and its Ascend NPU.

Never run on an NPU by us. What torch_npu 2.13.0 and 2.14.0 do was read in their wheels, and what follows here was tried
on the Python source in them, with the C++ below it replaced, and on a stand-in that imitates it:

- Every public method swallows its errors and prints them. So that the profiler is on is seen by what its ``start``
  leaves behind at its very end, and that it recorded by the folder that it leaves.
- ``tensorboard_trace_handler`` puts the folder's place into one slot of the process when it is *called*. So it is
  called right before the profiler is made and started.
- Under ``schedule`` a profiler is one-shot, so each recording gets a new one. ``schedule`` takes ``wait, active,
  warmup``, torch's ``wait, warmup, active``, so it is called by keywords alone. ``active=1`` and one ``step`` right
  before the stop is what its documentation shows; without that ``stop`` says that the data may be incomplete.
- A second profiler does not start, says so in CANN's log alone, and its stop stops the first. So one that is on is
  looked for before ours starts, and when ours stops it is seen whether another one was started meanwhile.
- A stop waits for the device, and fails where that does, after which the profiler would still be on. So the device is
  waited for before, where the failure can be seen.
- Analysing the data takes minutes. It is off, or in a process of its own, or after the device lock has been released.
- Stopping off the main thread with work in flight corrupts the heap, and with call stacks an export under load crashes
  (vllm-ascend issues 15697, 16642). So all is in the main thread, and ``stack`` is off unless asked for.
- Of a process that forks, the child would finish the recording into the parent's folder when it drops the profiler. So
  it is told there that it has stopped.
- torch_npu shuts the NPUs down at exit. So what is on then is stopped before.

One recording is of one NPU, the thread's current one. CANN's documents want "the profiling processes ... in serial
sequence" where several processes share a device, which the device lock sees to: ``docs/how-to/ascend.md``.
"""

from __future__ import annotations

from profwin.backends import npu_access
from profwin.backends.npu_recording import NpuRecording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.backends import Request
    from profwin.settings import Settings

__all__ = ["BACKEND"]


class TorchNpuBackend:
    """Record with ``torch_npu.profiler``: the host's operators and one NPU, from the main thread."""

    name = "torch_npu"
    exclusive = True  # CANN wants the recordings of a device one after another
    thread_bound = True  # stopped in another thread it corrupts the heap
    ranges = True  # mstx
    revocable = False  # only its own thread may end it, and that may be in the middle of something

    def __init__(self, settings: Settings) -> None:
        self._options = dict(settings.npu_options or {})
        self._beside_torch = "torch" in settings.backend

    @classmethod
    def unusable(cls) -> str | None:
        """Say why torch_npu cannot record on this machine; imports it where that is possible."""
        return npu_access.why_not()

    def foreign(self) -> str | None:
        """Look for msprof, dynamic_profile, torch's profiler, and one of torch_npu's that is not ours."""
        return npu_access.foreign(beside_torch=self._beside_torch)

    def open(self, request: Request) -> NpuRecording:
        """Return a new recording; its entry starts a new profiler and its exit stops it, both in the main thread."""
        return NpuRecording(request, self._options, beside_torch=self._beside_torch)


BACKEND = TorchNpuBackend
