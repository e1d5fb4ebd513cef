"""A caching allocator as torch and torch_npu show it to Python: what is below the functions that the backend calls.

Of torch the real Python functions run, so their signatures are held; the functions of C that a CPU build lacks are
replaced. Of torch_npu, which is never installed, a module imitates what was read in its wheel.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from profwin.backends import memory, memory_allocator


class Allocator:
    """One history for the process: a switch, a ring of events, and observers that stay.

    Args:
        used: whether this process uses the device.
    """

    def __init__(self, *, used: bool = True) -> None:
        self._used, self.on, self.most = used, False, 0
        self._process = os.getpid()
        self.events: list[dict[str, Any]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.observers: list[Any] = []
        self.snapshots = 0

    @property
    def used(self) -> bool:
        """Whether this process uses the device; a forked child never does."""
        return self._used and os.getpid() == self._process

    def record(self, enabled: str | None, context: str | None, stacks: str, max_entries: int, *_more: object) -> None:
        """Do what ``recordHistory`` does; in a forked child of a process that uses the device that is refused."""
        if os.getpid() != self._process:
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")
        self._used = True
        self.calls.append((enabled, context, stacks, max_entries))
        self.on, self.most = enabled is not None, max_entries
        if not self.on:
            self.events.clear()

    def recording(self) -> bool:
        """Do what ``isHistoryEnabled`` does; the real one reads beyond an empty list where nothing is initialised."""
        if not self.used:
            os.abort()
        return self.on

    def snapshot(self, _pool: object = None) -> dict[str, Any]:
        """Return what the C function returns."""
        self.snapshots += 1
        segment = {"device": 0, "address": 1 << 46, "total_size": 1 << 21, "stream": 0, "segment_type": "small"}
        block = {"size": 512, "requested_size": 400, "address": 1 << 46, "state": "active_allocated", "frames": []}
        return {
            "segments": [{**segment, "blocks": [block]}],
            "device_traces": [[dict(event) for event in self.events]],
            "allocator_settings": {"garbage_collection_threshold": 0.0, "expandable_segments": False},
        }

    def allocate(self, name: str) -> None:
        """Note an event, where the history is on."""
        if self.on:
            frames = [{"filename": "train.py", "line": 3, "name": name}]
            self.events.append({"action": "alloc", "addr": 1 << 46, "size": 512, "stream": 0, "frames": frames})
            del self.events[: -self.most]

    def run_out(self) -> None:
        """Tell the observers as the allocator does, then raise as it does."""
        for observer in self.observers:
            observer(0, 1 << 34, 1 << 36, 1 << 20)
        raise MemoryError("CUDA out of memory. Tried to allocate 16.00 GiB.")


def _forget(monkeypatch: Any) -> None:
    monkeypatch.setattr(memory_allocator, "_observed", set())
    monkeypatch.setattr(memory, "_said", set())


def cuda(monkeypatch: Any, *, used: bool = True) -> Allocator:
    """Let this torch look as if it were built with CUDA."""
    import torch

    _forget(monkeypatch)
    allocator = Allocator(used=used)
    functions = {
        "_cuda_record_memory_history": allocator.record,
        "_cuda_isHistoryEnabled": allocator.recording,
        "_cuda_memorySnapshot": allocator.snapshot,
        "_cuda_attach_out_of_memory_observer": allocator.observers.append,
    }
    for name, function in functions.items():
        monkeypatch.setattr(torch._C, name, function, raising=False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: allocator.used)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return allocator


def npu(monkeypatch: Any, *, used: bool = True) -> Allocator:
    """Put a torch_npu in place that has what 2.14 has."""
    _forget(monkeypatch)
    allocator = Allocator(used=used)

    def record(enabled: str | None = "all", *args: Any, **kwargs: Any) -> None:
        implemented(enabled, *args, **kwargs)

    def implemented(
        enabled: str | None = "all", context: str | None = "all", stacks: str = "all", max_entries: int = sys.maxsize,
        device: object = None,
    ) -> None:  # fmt: skip
        allocator.record(enabled, context, stacks, max_entries)

    def dump(*_args: object) -> None:
        raise AssertionError("it may start an NPU profiler of its own")

    torch_npu = ModuleType("torch_npu")
    functions = SimpleNamespace(
        _npu_record_memory_history=allocator.record,
        _npu_isHistoryEnabled=allocator.recording,
        _npu_attach_out_of_memory_observer=allocator.observers.append,
    )
    history = SimpleNamespace(_record_memory_history=record, _snapshot=allocator.snapshot, _dump_snapshot=dump)
    torch_npu.npu = SimpleNamespace(memory=history, is_initialized=lambda: allocator.used)  # type: ignore[attr-defined]  # a module made here
    torch_npu._C = functions  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "torch_npu", torch_npu)
    return allocator
