"""The ``torch`` backend: ``torch.profiler`` (Kineto), which records this process, on the CPU and its accelerators.

What torch 2.13 does, measured on its CPU build, and what follows here:

- A second start silently takes the first one's session over. So a profiler that is already on is looked for before
  ours is started; and since a foreign start puts ``True`` where we left ``1``, one that came later is seen before ours
  is stopped.
- A second stop wipes what was recorded, and exporting the result ends the interpreter. So a recording is stopped once,
  and not exported when its start time reads 0.
- By default a profiler sees its own thread and must be stopped there. With ``profile_all_threads`` it sees all threads
  and may be stopped from any, at no measurable cost, so that is always on where torch has it.
- A range of ``record_function`` that begins in one recording and ends in a later one crashes the interpreter, so those
  that are open are ended right before the stop: ``torch_ranges.py``.
- An export to a full disk leaves Kineto's own temporary file and raises nothing; one that fails in the last kilobytes
  even leaves a file that looks finished. So the end is read before the file gets its name.
- A forked child of a process that ever profiled aborts in torch's own clean-up when it ends through C's ``exit()``;
  children of ``multiprocessing`` do not end so.
- A recording exports once, and torch's own ``.json.gz`` is four times as slow as its plain ``.json`` compressed
  afterwards.
- ``acc_events`` parses all events at stop (2.5 s for 50,000) and stays off; a profiler object is used once.

A profiler with a schedule that is waiting or warming up cannot be seen from outside; starting ours ends it.
On a GPU this backend has not been run; what it calls is the same there.
"""

from __future__ import annotations

import os

from profwin.errors import BackendError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import Request
    from profwin.backends.torch_ranges import OpenRanges
    from profwin.settings import Settings

__all__ = ["BACKEND", "foreign"]

_OURS = 1
_BLOCK = 1 << 20
_LEVEL = 6
_TAIL = 8192


class TorchRecording:
    """One ``torch.profiler.profile``, from entry to exit, and its trace.

    Args:
        request: where the trace goes and what it must say.
        options: switches for ``torch.profiler.profile``.
        compress: whether the file is ``.pt.trace.json.gz``, else ``.pt.trace.json``.
    """

    def __init__(self, request: Request, options: dict[str, Any], *, compress: bool) -> None:
        self._request, self._options, self._compress = request, options, compress
        self._profile: Any = None
        self._lost: str | None = None
        self._ranges: OpenRanges | None = None

    def __enter__(self) -> TorchRecording:
        import json

        from torch.autograd import profiler as switchboard
        from torch.profiler import profile

        from profwin.backends.torch_ranges import watch

        if (problem := foreign()) is not None:
            raise BackendError("torch", "open", problem)
        self._profile = profile(**self._options, **_all_threads())
        self._ranges = watch()
        try:
            self._profile.start()
            switchboard._is_profiler_enabled = _OURS  # type: ignore[assignment]  # a bool to all others: see above
            self._profile.add_metadata_json("profwin", json.dumps(self._request.metadata))
        except BaseException:
            # Ctrl-C may come at any point; an interpreter that ends with a profiler on crashes.
            try:
                if switchboard._is_profiler_enabled:
                    self._stop()
            finally:
                self._unwatch()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        from torch.autograd import profiler as switchboard

        try:
            state = switchboard._is_profiler_enabled
            if state is not _OURS:
                self._lost = "another profiler in this process took the recording over" + (
                    " and is still on" if state else ""
                )
                return
            self._stop()
        finally:
            self._unwatch()
        if self._profile.profiler.kineto_results.trace_start_ns() == 0:
            self._lost = "the profiler returned nothing"

    def _stop(self) -> None:
        try:
            if self._ranges is not None:
                self._ranges.end_all()
        finally:
            self._profile.stop()

    def _unwatch(self) -> None:
        if self._ranges is not None:
            self._ranges.close()
            self._ranges = None

    def span(self, name: str) -> AbstractContextManager[object]:
        """Return a ``record_function`` range."""
        from torch.profiler import record_function

        return record_function(name)

    def step(self) -> None:
        """Do nothing: a profiler without a schedule has no steps, and marks them for itself alone."""

    def export(self) -> list[str]:
        """Write the trace beside its final name and rename it there."""
        if self._lost is not None:
            raise BackendError("torch", "export", self._lost)
        stem = self._request.stem
        directory, name = os.path.split(stem)
        os.makedirs(directory, exist_ok=True)
        plain = os.path.join(directory, f".{name}.tmp.json")
        packed = os.path.join(directory, f".{name}.tmp.gz")
        final = stem + (".pt.trace.json.gz" if self._compress else ".pt.trace.json")
        try:
            self._profile.export_chrome_trace(plain)
            if not _whole(plain):
                raise OSError("the disk is full, or the file could not be written for another reason")
            if self._compress:
                _compress(plain, packed)
            os.rename(packed if self._compress else plain, final)
        finally:
            self._profile = None  # frees the events; a second export would fail anyway
            for leftover in (plain, plain + ".tmp", packed):  # the second is Kineto's own
                try:
                    os.unlink(leftover)
                except FileNotFoundError:
                    pass
        return [final]


class TorchBackend:
    """Record with ``torch.profiler``: the whole process, every thread, all activities that the build supports."""

    name = "torch"
    exclusive = True  # Kineto on NPUs loses data, and CUPTI's metrics conflict, when two processes record one device
    ranges = True  # record_function
    revocable = True  # a stop from any thread keeps what was recorded so far

    def __init__(self, settings: Settings) -> None:
        self._options = dict(settings.torch_options or {})
        self._compress = settings.trace_format == "json.gz"

    @classmethod
    def stand_in(cls) -> tuple[str, str] | None:
        """Say which backend marks what happens where Nsight Systems launched this process, and why this one cannot.

        CUPTI has one subscriber in a process (its error 39, ``CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED``); beside
        nsys Kineto logs that and leaves out all of the device, without an error (NVIDIA/TensorRT-LLM issue 9073). A
        torch without a CUDA device has nothing to lose and records as ever.
        """
        from importlib.util import find_spec

        from profwin.backends.nsys_launch import launched

        sign = launched()
        if sign is None:
            return None
        import torch

        if torch.version.cuda is None or not torch.cuda.is_available():
            return None
        marks = find_spec("nvtx") is not None
        shown = "its windows and stages are NVTX ranges in nsys" if marks else "pip install 'profwin[nvtx]' marks them"
        why = f"nsys launched this process ({sign}) and has CUPTI, so torch.profiler would miss the device; {shown}"
        return "nvtx" if marks else "record", why

    @property
    def thread_bound(self) -> bool:
        """Whether this torch cannot record all threads; its recordings must then be left where they were entered."""
        return not _all_threads()

    def foreign(self) -> str | None:
        """Look for a profiler that is on; imports torch."""
        return foreign()

    def open(self, request: Request) -> TorchRecording:
        """Return a new recording; its entry starts the profiler and its exit stops it."""
        return TorchRecording(request, self._options, compress=self._compress)


def foreign() -> str | None:
    """Say, in words, that a torch profiler is on in this process; None if none is. Imports torch."""
    from torch.autograd import _profiler_enabled, profiler  # type: ignore[attr-defined]  # not in its __all__

    # The first is seen from every thread, the second also sees a profiler that was started through another interface.
    if profiler._is_profiler_enabled or _profiler_enabled():
        return "another torch profiler is already on in this process"
    return None


def _all_threads() -> dict[str, Any]:
    from torch._C._profiler import _ExperimentalConfig

    try:
        return {"experimental_config": _ExperimentalConfig(profile_all_threads=True)}
    except TypeError:
        return {}


def _whole(path: str) -> bool:
    """Say whether a plain trace was written to its end: Kineto does not report a failure in the last kilobytes."""
    import json

    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            end = json.loads(b"{" + file.read().rpartition(b"],")[2])
            if "traceName" in end:
                return True
    except FileNotFoundError:
        return False
    except ValueError:
        pass
    try:
        # Cut short, or of a torch that ends its traces in another way: then only reading all of it tells.
        with open(path, "rb") as file:
            json.load(file)
    except ValueError:
        return False
    return True


def _compress(source: str, target: str) -> None:
    import zlib

    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    with open(source, "rb") as reader, open(target, "wb") as writer:
        while block := reader.read(_BLOCK):
            writer.write(packer.compress(block))
        writer.write(packer.flush())


BACKEND = TorchBackend
