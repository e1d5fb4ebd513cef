"""The wait budget: how long one process may still wait for a device in a step."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from profwin.session import Session

__all__ = ["WaitBudget"]

_PROCESS = ("",)
"""Stands for the device where there is none: the process itself is one then."""


class WaitBudget:
    """Count the seconds that were waited for each device in each step.

    Once they have used the budget up, what comes later in the step tries once and does not wait again.

    Args:
        session: whose setting is the budget.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spent: dict[tuple[str, int], float] = {}

    def whole(self) -> float:
        """Return how many seconds may be spent waiting for one device in one step.

        At most a quarter of the process group's timeout: one rank that waits keeps all others in their next collective.
        """
        distributed = sys.modules.get("torch.distributed")
        budget = self._session.settings.wait_budget
        try:
            if distributed is not None and distributed.is_available() and distributed.is_initialized():
                group = distributed.distributed_c10d._get_default_group()
                timeout = group._get_backend(group._device_types[0]).options._timeout
                return min(budget, float(timeout.total_seconds()) / 4)
        except Exception as error:  # noqa: BLE001  # private names: without them the setting alone counts
            self._session.warn(
                "group-timeout", f"the process group's timeout cannot be read ({error}): wait_budget={budget} counts"
            )
        return budget

    def left(self, keys: Iterable[str], step: int) -> float:
        """Return the seconds that may be waited for all of these devices together; 0 if one of them has none left."""
        return max(0.0, self.whole() - max(self._spent.get((key, step), 0.0) for key in keys or _PROCESS))

    def spend(self, keys: Iterable[str], step: int, seconds: float) -> None:
        """Count a wait for devices."""
        for key in keys or _PROCESS:
            self._spent[key, step] = self._spent.get((key, step), 0.0) + seconds

    def forget(self, step: int) -> None:
        """Drop what was counted in steps before the given one."""
        for part in [part for part in list(self._spent) if part[1] < step]:
            self._spent.pop(part, None)
