"""Whether another one could have a device now."""

from __future__ import annotations

import time

from profwin.registry.device import keys_of
from profwin.registry.lock import Held, Registry


def taken(device: str) -> str | None:
    """Try to take a pretend device as another one would; return why not, or None."""
    found = Registry(None).acquire(keys_of((f"pretend:{device}",)), kind="training", run="probe", name="p", step=1)
    if isinstance(found, Held):
        found.release()
        return None
    return found.reason


def becomes(device: str, wanted: str | None, patience: float = 20.0) -> None:
    """Wait until the reason is the wanted one."""
    deadline = time.monotonic() + patience
    while (found := taken(device)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
