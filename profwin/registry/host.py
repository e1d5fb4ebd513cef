"""The host that this process is on: its name, and this boot of it.

``PROFWIN_PRETEND_HOST=NAME`` makes a process, and those it starts, one of another host: with a boot id, a host name and
a lock directory of its own. It is for demonstrations and tests of several hosts on one machine: what records on real
devices must never be told apart so. It is not handed on to Ray's workers, which have their node's.
"""

from __future__ import annotations

import os

__all__ = ["VARIABLE", "boot_id", "host_name", "known_boot_id", "pretended"]

VARIABLE = "PROFWIN_PRETEND_HOST"


def pretended() -> str | None:
    """Return the name of the host that this process takes part in as a pretence, if it does."""
    return os.environ.get(VARIABLE) or None


def host_name() -> str:
    """Return the host's name, which is for reading alone: containers rename hosts."""
    return pretended() or os.uname().nodename


def boot_id() -> str:
    """Return this boot's random id.

    Raises:
        OSError: the kernel does not tell.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        found = file.read().strip()
    name = pretended()
    if name is None:
        return found
    from uuid import UUID, uuid5

    return str(uuid5(UUID(found), name))


def known_boot_id() -> str:
    """Return :func:`boot_id`, or ``""`` where the kernel does not tell."""
    try:
        return boot_id()
    except OSError:
        return ""
