"""The process group: the timeout of torch's default one, which the check needs to know what keeps other ranks too long.

torch is never imported for this: where nothing has set up a group, there is none.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["group_timeout"]

_LONGEST = 1e9
"""Seconds that still count as a timeout; what is longer means that there is none."""

_known: tuple[int, float | None] = (0, None)


def group_timeout() -> float | None:
    """Return after how many seconds a collective of the default process group gives up. Never raises.

    Of several backends, one for each kind of device, the shortest counts. It is looked up once for each group.

    Returns:
        None if there is no group, or if this version of torch does not say.
    """
    global _known
    module: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if module is None:
        return None
    try:
        group = module.GroupMember.WORLD
        if group is None:
            return None
        if _known[0] != id(group):
            _known = id(group), None
            _known = id(group), _shortest(group)
        return _known[1]
    except Exception:  # noqa: BLE001  # these are inner parts of torch, and other versions may have others
        return None


def _shortest(group: Any) -> float | None:
    seconds = []
    for device in group._device_types:
        options = getattr(group._get_backend(device), "options", None)
        timeout = getattr(options, "_timeout", None)
        if timeout is not None and 0 < timeout.total_seconds() < _LONGEST:
            seconds.append(float(timeout.total_seconds()))
    return min(seconds, default=None)
