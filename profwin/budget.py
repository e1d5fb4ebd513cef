"""The wait budget: how long one process may still wait for a device in a step."""

from __future__ import annotations

__all__ = ["WaitBudget"]


class WaitBudget:
    """Count the seconds that were waited in vain for each device in each step.

    Once a wait has used the budget up, what comes later in the step tries once and does not wait again.
    """

    def __init__(self) -> None:
        self._spent: dict[tuple[str, int], float] = {}

    def left(self, keys: tuple[str, ...], step: int, budget: float) -> float:
        """Return the seconds that may be waited for all of these devices together; 0 if one of them has none left."""
        return max(0.0, budget - max(self._spent.get((key, step), 0.0) for key in keys))

    def spend(self, device: str, step: int, seconds: float) -> None:
        """Count a wait that ended without the device."""
        self._spent[device, step] = self._spent.get((device, step), 0.0) + seconds

    def forget(self, step: int) -> None:
        """Drop what was counted in steps before the given one."""
        for part in [part for part in list(self._spent) if part[1] < step]:
            self._spent.pop(part, None)
