"""A stand-in for torch's CUDA runtime and for a tool that NVTX knows: both write down what is asked of them."""

from __future__ import annotations

from typing import Any

EVENTS: list[str] = []
"""What happened, in order."""


class Status(int):
    """An error code of the runtime."""

    success = 0


class Runtime:
    """The two calls of the CUDA runtime, as ``torch.cuda.cudart()`` has them.

    Attributes:
        failing: the call that answers with an error, if one does.
    """

    cudaError = Status

    def __init__(self) -> None:
        self.failing = ""

    def cudaProfilerStart(self) -> int:
        """Begin a capture range."""
        return self._answer("start")

    def cudaProfilerStop(self) -> int:
        """End it."""
        return self._answer("stop")

    def cudaGetErrorString(self, code: int) -> str:
        """Name an error."""
        return f"error {code} of earlier work"

    def _answer(self, call: str) -> int:
        EVENTS.append(call)
        return 700 if call == self.failing else 0


class Domain:
    """What ``nvtx.get_domain`` returns where a tool listens."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._started: list[str] = []

    def get_event_attributes(self, message: str = "", **others: object) -> str:
        """Return the name alone."""
        return message

    def push_range(self, name: str) -> None:
        """Begin a range of the thread."""
        EVENTS.append(f"push {name}")
        self._stack.append(name)

    def pop_range(self) -> None:
        """End the last one."""
        EVENTS.append(f"pop {self._stack.pop()}")

    def start_range(self, name: str) -> int:
        """Begin a range of the process."""
        EVENTS.append(f"start {name}")
        self._started.append(name)
        return len(self._started)

    def end_range(self, number: int) -> None:
        """End it."""
        EVENTS.append(f"end {self._started[number - 1]}")


class Device:
    """What ``torch.cuda.device`` does."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        EVENTS.append(f"device {self._index}")

    def __exit__(self, *_: object) -> None:
        pass


def pretend_cuda(monkeypatch: Any) -> Runtime:
    """Let torch's CPU build look like a CUDA build; its own ``torch.cuda.profiler`` calls the one returned."""
    import torch
    import torch.cuda.profiler

    EVENTS.clear()
    runtime = Runtime()
    changes = {
        "is_available": lambda: True,
        "current_device": lambda: 3,
        "device": Device,
        "synchronize": lambda: EVENTS.append("synchronize"),
        "_cudart": runtime,
        "cudart": lambda: runtime,
    }
    for name, change in changes.items():
        monkeypatch.setattr(torch.cuda, name, change)
    monkeypatch.setattr(torch.cuda.profiler, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    return runtime


def pretend_listener(monkeypatch: Any) -> None:
    """Let a tool listen to the ranges of both backends."""
    from profwin.backends import nsys, nvtx

    domain = Domain()
    for module in (nsys, nvtx):
        monkeypatch.setattr(module, "listener", lambda: domain)


def taken() -> list[str]:
    """Return what happened since the last time."""
    happened, EVENTS[:] = list(EVENTS), []
    return happened
