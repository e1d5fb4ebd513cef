"""Which devices some processes use: what the driver says, else what they were allowed to see.

No accelerator was at hand when this was written: the calls are held against NVML's own module by a test, its answers on
a real card are not.
"""

from __future__ import annotations

import os

from profwin.engines import procfs
from profwin.engines.placement import granted
from profwin.registry.inventory import inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from profwin.registry.inventory import Card

__all__ = ["NVML_FUNCTIONS", "devices_of", "running"]

NVML_FUNCTIONS = (
    "nvmlInit",
    "nvmlShutdown",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetComputeInstanceId",
)
"""What is called of ``pynvml``, besides what :mod:`profwin.registry.inventory` calls."""

_FIRST_NAMESPACE = 0xEFFFFFFC  # inode of the kernel's first process namespace, the same on every Linux
_DRIVER = "/dev/nvidia"


def devices_of(pids: Iterable[int]) -> tuple[str, ...] | None:
    """Return the devices that processes use, as ``devices=`` takes them; nothing is asked of the processes.

    Where NVML lists some of them as users of a card, these are the devices: the UUIDs of cards or MIG slices. It does
    not where they have not begun to use one, and in a container whose process numbers are not the driver's.
    Else the devices are those that the processes may see (``CUDA_VISIBLE_DEVICES``, ``ASCEND_RT_VISIBLE_DEVICES``), and
    of these the first ones that vLLM's or SGLang's command line asks for; all of them where that cannot be told. These
    are rather too many than too few. See :func:`profwin.engines.placement.granted`.

    Args:
        pids: such as :func:`profwin.engines.processes.server_processes` returns.

    Returns:
        Sorted names; empty where they may see none; None where nobody can tell: such an engine is unguarded, never
        free of conflict. Never raises but for Ctrl-C.
    """
    pids = tuple(pids)
    if not pids:
        return None
    cards = inventory()
    users = running(cards) if cards else {}
    if users and _ours(users):
        found = {device for pid in pids for device in users.get(pid, ())}
        if found:
            return tuple(sorted(found))
    return granted(pids, cards)


def running(cards: Iterable[Card], nvml: Any = None) -> dict[int, set[str]]:
    """Return which processes use which cards or slices, by NVML; empty where it cannot be asked.

    Args:
        cards: whose users are wanted.
        nvml: the module ``pynvml``; None to import it.
    """
    if nvml is None:
        try:
            import pynvml as nvml  # type: ignore[import-not-found,import-untyped,no-redef,unused-ignore]  # may be missing
        except ImportError:
            return {}
    found: dict[int, set[str]] = {}
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return {}
    try:
        for card in cards:
            for pid, device in _users(nvml, card):
                found.setdefault(pid, set()).add(device)
    finally:
        nvml.nvmlShutdown()
    return found


def _users(nvml: Any, card: Card) -> Iterator[tuple[int, str]]:
    """Go through the users of a card. A slice's are those that say so; who does not say it uses all of them."""
    slices = {}
    for uuid in card.slices:
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
            place = nvml.nvmlDeviceGetGpuInstanceId(handle), nvml.nvmlDeviceGetComputeInstanceId(handle)
        except nvml.NVMLError:
            continue
        slices[place] = uuid
        for process in _listed(nvml, handle):
            yield process.pid, uuid
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(card.uuid)
    except nvml.NVMLError:
        return
    for process in _listed(nvml, handle):
        place = getattr(process, "gpuInstanceId", None), getattr(process, "computeInstanceId", None)
        for uuid in [slices[place]] if place in slices else card.slices or [card.uuid]:
            yield process.pid, uuid


def _listed(nvml: Any, handle: Any) -> list[Any]:
    """List the users of a card or slice: with a context of their own, and with one of CUDA's shared server (MPS)."""
    found: list[Any] = []
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses"):
        try:
            found += getattr(nvml, name)(handle)
        except (nvml.NVMLError, AttributeError):
            continue  # an old driver, or an old package
    return found


def _ours(users: Iterable[int]) -> bool:
    """Say whether NVML counts processes as this process does, so that one of its numbers is not taken for another's.

    In the first namespace it does. In a container it depends on the driver: there all that it lists must be processes
    that have the driver open.
    """
    try:
        if os.stat(f"{procfs.PROC}/self/ns/pid").st_ino == _FIRST_NAMESPACE:
            return True
    except OSError:
        return False
    return all(any(target.startswith(_DRIVER) for _, target in procfs.links(pid)) for pid in users)
