"""The NVIDIA cards of this host, in the order of their PCI addresses, whatever this process's masks say.

Read through NVML, or from what the driver shows in ``/proc`` where NVML's Python module is missing. Neither
makes a CUDA context. No card was at hand when this was written: the calls are held against the module's own
functions by a test, their answers on a real card are not.
"""

from __future__ import annotations

import functools
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NVML_FUNCTIONS", "Card", "inventory"]

NVML_FUNCTIONS = (
    "nvmlInit",
    "nvmlShutdown",
    "nvmlDeviceGetCount",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetPciInfo",
    "nvmlDeviceGetNumGpuCores",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
)
"""What is called of ``pynvml``; every call takes only what its name says it needs."""


class Card:
    """One physical card.

    Attributes:
        uuid: such as ``GPU-…``.
        name: the model.
        bus: PCI address as the driver writes it; cards sort by it.
        speed: a figure to compare models by: cores times highest clock; 0 where unknown.
        slices: UUIDs (``MIG-…``) of the card's MIG devices, in their order; empty where MIG is off.
    """

    __slots__ = ("bus", "name", "slices", "speed", "uuid")

    def __init__(
        self, uuid: str, name: str = "", bus: str = "", speed: float = 0.0, slices: tuple[str, ...] = ()
    ) -> None:
        self.uuid, self.name, self.bus, self.speed, self.slices = uuid, name, bus, speed, slices


@functools.cache
def inventory() -> tuple[Card, ...]:
    """List this host's cards, read once per process; empty where there is no driver."""
    try:
        with warnings.catch_warnings():
            # An old package of the same name warns that it is the old one.
            warnings.simplefilter("ignore")
            import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]  # may be missing
    except ImportError:
        return listed()
    return measured(pynvml) or listed()


def measured(nvml: Any) -> tuple[Card, ...]:
    """List the cards that NVML knows.

    Args:
        nvml: the module ``pynvml``.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        cards = [_card(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:
        return ()
    finally:
        nvml.nvmlShutdown()
    return tuple(sorted(cards, key=lambda card: card.bus))


def _card(nvml: Any, handle: Any) -> Card:
    speed = 0.0
    try:
        speed = float(
            nvml.nvmlDeviceGetNumGpuCores(handle) * nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
        )
    except nvml.NVMLError:
        pass  # an old driver; only the order of unlike cards needs it
    try:
        mig = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if mig else 0
    except nvml.NVMLError:
        most = 0
    slices = [uuid for uuid in (_slice(nvml, handle, index) for index in range(most)) if uuid]
    bus = _text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower()
    return Card(
        _text(nvml.nvmlDeviceGetUUID(handle)),
        _text(nvml.nvmlDeviceGetName(handle)),
        bus,
        speed,
        tuple(slices),
    )


def _slice(nvml: Any, handle: Any, index: int) -> str | None:
    try:
        return _text(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)))
    except nvml.NVMLError:
        return None  # this place holds no slice


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def listed(pattern: str = "/proc/driver/nvidia/gpus/*/information") -> tuple[Card, ...]:
    """List the cards that the driver shows in ``/proc``: no slices, no speed."""
    import glob

    cards = []
    for path in sorted(glob.glob(pattern)):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                pairs = [line.split(":", 1) for line in file if ":" in line]
        except OSError:
            continue
        fields = {name.strip(): value.strip() for name, value in pairs}
        if fields.get("GPU UUID", "").startswith("GPU-"):
            cards.append(Card(fields["GPU UUID"], fields.get("Model", ""), fields.get("Bus Location", "").lower()))
    return tuple(sorted(cards, key=lambda card: card.bus))
