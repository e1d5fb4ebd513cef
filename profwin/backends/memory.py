"""The ``memory`` backend: snapshots of torch's caching allocator, one a recording, and one more when memory runs out.

What torch 2.13 and torch_npu 2.14 do, read in their sources (``torch/cuda/memory.py``, ``torch_npu/npu/memory.py``,
``c10/cuda/CUDACachingAllocator.cpp``), and what follows here. It was run on no GPU and on no NPU.

- Turning the history off clears it, so the snapshot is taken right before. It is pickled later, at the export, when the
  device locks are given back: pickling and the disk take longer than the copy does.
- A snapshot resolves the stacks that it holds, and frames of C++ by far the slowest, so ``stacks`` is ``"python"`` here
  where torch's default is ``"all"``. The history is a ring: what is over ``max_entries`` replaces the oldest.
- The history is one for the whole process, is a switch and not a counter, and takes the options of the last call. So
  one that is on already is left as it is, and its owner's snapshot is what there is: with events from before.
- It is read and written by any thread, and there is no CUPTI in it, so no other process and no other profiler is
  disturbed, and no device lock is needed.
- Asking for it initialises CUDA, after which forked children cannot use CUDA. So it is not asked for where nothing here
  has used the device yet.
- torch_npu's ``_dump_snapshot`` starts and stops a raw NPU profiler where it cannot write its table of usage, which is
  what must never happen beside another recording. So ``_snapshot`` is called and pickled here.
- pytorch.org/memory_viz reads pickles of the protocols 2 to 4, while Python 3.14 writes 5 by default.
- An observer of out-of-memory cannot be taken off again, is called without the allocator's lock, and what it raises
  replaces the error that the training would see. So there is one a process, and it raises nothing.
"""

from __future__ import annotations

import os
import threading

from profwin.backends.memory_allocator import Allocator, look
from profwin.errors import BackendError
from profwin.options import MEMORY_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import Request
    from profwin.settings import Settings

__all__ = ["BACKEND"]

_PROTOCOL = 4
_open: list[MemoryRecording] = []
_said: set[str] = set()


class MemoryRecording:
    """The history of one kind of allocator, from entry to exit.

    Args:
        request: where the snapshots go and what they must say.
        options: of :data:`profwin.options.MEMORY_OPTIONS`, each with a value.
    """

    def __init__(self, request: Request, options: dict[str, Any]) -> None:
        self._request, self._options = request, options
        self._allocator: Allocator | None = None
        self._process = os.getpid()
        self._shared = False
        self._lost: str | None = None
        self._snapshot: dict[str, Any] | None = None
        self._first = threading.Lock()  # taken by the first that runs out of memory, for good
        self._files: list[str] = []

    def __enter__(self) -> MemoryRecording:
        kind, problem = look(self._options["device"])
        if problem is not None:
            raise BackendError("memory", "open", problem)
        allocator = Allocator(kind)
        if not allocator.initialised():
            self._lost = f"nothing in this process had used {kind} when it began, so there was no allocator to look at"
            return self
        self._shared = allocator.recording()
        if self._shared:
            _say("memory: another part of this process records the history already: snapshots are of that one")
        try:
            if self._options["on_oom"]:
                allocator.observe(_out_of_memory)
            if not self._shared:
                allocator.record(**{name: self._options[name] for name in ("context", "stacks", "max_entries")})
            _open.append(self)
            self._allocator = allocator
        except BaseException:  # also Ctrl-C: what nobody leaves must not go on
            self._forget()
            if not self._shared and allocator.recording():
                allocator.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._forget()
        allocator, self._allocator = self._allocator, None
        if allocator is None or os.getpid() != self._process:  # a forked child has no allocator any more
            return
        if not allocator.recording():
            self._lost = "another part of this process turned the history off, which clears it"
            return
        try:
            self._snapshot = allocator.snapshot()
        finally:
            if not self._shared:
                allocator.stop()
        most = self._options["max_entries"]
        if not self._shared and any(len(trace) >= most for trace in self._snapshot.get("device_traces") or ()):
            _say(f"memory: the history came to max_entries, {most}: older events are gone from the snapshot")

    def _forget(self) -> None:
        if self in _open:
            _open.remove(self)

    def span(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002  # part of the protocol
        """Return a context manager that does nothing: a history has no ranges."""
        from contextlib import nullcontext

        return nullcontext()

    def step(self) -> None:
        """Do nothing: a history has no steps."""

    def out_of_memory(self) -> None:
        """Write a snapshot of the moment, the first time; called in the thread that asked for more. Raises nothing."""
        allocator = self._allocator
        if allocator is None or not self._first.acquire(blocking=False):
            return
        try:
            self._files.append(self._write("oom", allocator.snapshot()))
        except Exception as error:  # noqa: BLE001  # the training must see its own error, which this would replace
            _say(f"memory: the snapshot of the moment when memory ran out is lost: {type(error).__name__}: {error}")

    def export(self) -> list[str]:
        """Write the snapshot that was taken at the exit."""
        if self._lost is None and self._snapshot is None:
            self._lost = "no snapshot was taken"
        if self._lost is not None:
            raise BackendError("memory", "export", self._lost)
        snapshot, self._snapshot = self._snapshot, None
        return [self._write("memory", snapshot or {}), *self._files]

    def _write(self, kind: str, snapshot: dict[str, Any]) -> str:
        """Write a snapshot beside its final name and rename it there."""
        import pickle

        directory, name = os.path.split(self._request.stem)
        os.makedirs(directory, exist_ok=True)
        part = os.path.join(directory, f".{name}.{kind}.tmp")
        final = f"{self._request.stem}.{kind}.pickle"
        try:
            with open(part, "wb") as file:
                # Last, for what tells a snapshot by its beginning.
                pickle.dump({**snapshot, "profwin": self._request.metadata}, file, _PROTOCOL)
            os.rename(part, final)
        except BaseException:
            try:
                os.unlink(part)
            except FileNotFoundError:
                pass
            raise
        return final


class MemoryBackend:
    """Record what torch's caching allocator does, on all devices of one kind that this process uses."""

    name = "memory"
    exclusive = False  # the allocator is the process's own, and no profiler of the device is involved
    ranges = False  # the allocator knows of none
    thread_bound = False  # the history is the process's
    revocable = True  # a snapshot is whole at any time

    def __init__(self, settings: Settings) -> None:
        defaults = {name: default for name, (_check, default) in MEMORY_OPTIONS.items()}
        self._options = {**defaults, **(settings.memory_options or {})}

    @classmethod
    def unusable(cls) -> str | None:
        """Say why there is no allocator to look at; imports torch, and asks it whether there is a device."""
        kind, problem = look(None)
        if problem is None and kind == "cuda":
            import torch

            if not torch.cuda.is_available():
                return "torch finds no CUDA device here"
        return problem

    def foreign(self) -> None:
        """Nothing is in the way: a history that is on is shared."""
        return

    def open(self, request: Request) -> MemoryRecording:
        """Return a new recording; its entry turns the history on, its exit takes the snapshot and turns it off."""
        return MemoryRecording(request, self._options)


def _out_of_memory(*_numbers: int) -> None:
    """Tell every open recording. torch says: the device, the bytes asked for, those of the device, those free."""
    for recording in _open.copy():
        recording.out_of_memory()


def _say(message: str) -> None:
    if message not in _said:
        import logging

        _said.add(message)
        logging.getLogger("profwin").warning("profwin: %s", message)


BACKEND = MemoryBackend
