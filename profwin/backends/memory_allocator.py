"""The caching allocator of torch or torch_npu, as far as the ``memory`` backend needs it.

Everything here is private to torch; the names, signatures and defaults were read in torch 2.13 and torch_npu 2.14.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

__all__ = ["Allocator", "look"]

_observed: set[str] = set()


class Allocator:
    """The allocator of one kind of device, in this process.

    Args:
        kind: ``"cuda"`` or ``"npu"``, one that :func:`look` found.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._device: Any
        self._functions: Any
        if kind == "npu":
            self._device, self._functions = sys.modules["torch_npu"].npu, sys.modules["torch_npu"]._C
        else:
            import torch

            self._device, self._functions = torch.cuda, torch._C

    def initialised(self) -> bool:
        """Say whether this process uses the device; a forked child of one that did does not."""
        return bool(self._device.is_initialized())

    def recording(self) -> bool:
        """Say whether the history is on. Only for an allocator that is initialised: else torch reads what is not there.

        Raises:
            RuntimeError: it is an allocator without a history, such as ``cudaMallocAsync``.
        """
        return bool(getattr(self._functions, f"_{self.kind}_isHistoryEnabled")())

    def record(self, *, context: str, stacks: str, max_entries: int) -> None:
        """Turn the history on; the options are those of ``memory_options``."""
        self._device.memory._record_memory_history(
            enabled="all", context=None if context == "none" else context, stacks=stacks, max_entries=max_entries
        )

    def stop(self) -> None:
        """Turn the history off, and clear it."""
        self._device.memory._record_memory_history(enabled=None)

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of the allocator's state and history."""
        found: dict[str, Any] = self._device.memory._snapshot()
        return found

    def observe(self, observer: Callable[..., None]) -> None:
        """Have a function called when memory runs out: the first one given for this kind, for the process's life.

        Args:
            observer: called in the thread that asked for more, with the numbers of the device, the bytes asked for, the
                bytes of the device and those that are free. It must raise nothing.
        """
        if self.kind not in _observed:
            getattr(self._functions, f"_{self.kind}_attach_out_of_memory_observer")(observer)
            _observed.add(self.kind)


def look(asked: str | None) -> tuple[str, str | None]:
    """Say whose allocator there is to look at; imports torch.

    Args:
        asked: the kind, or None for that of the NPU where torch_npu is imported, else of CUDA.

    Returns:
        The kind, and why it cannot be looked at, or None.
    """
    import torch

    # Never imported here: without CANN it would break torch, and what uses NPUs has imported it.
    torch_npu: ModuleType | None = sys.modules.get("torch_npu")
    kind = asked or ("npu" if torch_npu is not None else "cuda")
    if kind == "npu" and torch_npu is None:
        return kind, "torch_npu is not imported in this process"
    functions = torch._C if kind == "cuda" else getattr(torch_npu, "_C", None)
    if not hasattr(functions, f"_{kind}_record_memory_history"):
        owner = "this torch is a build without CUDA" if kind == "cuda" else "this torch_npu is too old"
        return kind, f"{owner}: there is no history of an allocator"
    return kind, None
