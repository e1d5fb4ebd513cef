"""Stands in for NVIDIA's module: eight cards that are not there, for processes that have this folder on their path."""

from __future__ import annotations

NVML_CLOCK_SM = 1


class NVMLError(Exception):
    """What NVML raises."""


class _Address:
    def __init__(self, handle):
        self.busId = f"00000000:{handle:02x}:00.0"


def nvmlInit():
    """Do nothing."""


def nvmlShutdown():
    """Do nothing."""


def nvmlDeviceGetCount():
    """Return how many there are."""
    return 8


def nvmlDeviceGetHandleByIndex(index):
    """Return what stands for a card."""
    return index


def nvmlDeviceGetUUID(handle):
    """Return its UUID."""
    return f"GPU-{handle}"


def nvmlDeviceGetName(handle):
    """Return its model."""
    return "card"


def nvmlDeviceGetPciInfo(handle):
    """Return its address."""
    return _Address(handle)


def nvmlDeviceGetNumGpuCores(handle):
    """Return how many cores it has."""
    return 1


def nvmlDeviceGetMaxClockInfo(handle, kind):
    """Return its clock."""
    return 1


def nvmlDeviceGetMigMode(handle):
    """Say that it is not in slices."""
    return 0, 0
