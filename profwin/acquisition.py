"""Acquiring the device locks of one interval: trying, waiting within the budget, and saying for whom."""

from __future__ import annotations

import time

from profwin.conflict import waits_for
from profwin.errors import RegistryError
from profwin.registry.lock import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from profwin.budget import WaitBudget
    from profwin.interval import Interval
    from profwin.registry.attempt import Attempt
    from profwin.registry.lock import Held
    from profwin.session import Session

__all__ = ["acquiring"]

_SLOW = 1.0
"""Seconds of waiting after which it is said for whom: a driver that waits inside its own window sees it there."""


def acquiring(
    session: Session, interval: Interval, budget: WaitBudget
) -> Generator[Callable[[float], None], None, Held | Busy | RegistryError]:
    """Take an interval's devices; a generator as :meth:`profwin.owner.Owner.entering` is one.

    Args:
        session: whose registry and settings are used.
        interval: what wants them; its keys are not empty.
        budget: what was waited already; a device whose share is used up gets one try.

    Returns:
        The devices held, or who keeps them, or why this host's registry cannot be used. Nothing is left behind when the
        generator is closed or interrupted.
    """
    on_busy = session.settings.on_busy
    try:
        # Nearly always the device is free; then there is no need for what a waiter needs.
        held = session.take(interval)
        if held is not None:
            return held
        attempt = session.attempt(interval, lambda holder: waits_for(interval, holder, on_busy))
    except RegistryError as error:
        return error
    began = time.monotonic()
    left = budget.left(interval.keys, interval.step, session.wait_budget())
    try:
        return (yield from _wait(session, interval, attempt, began, left))
    except RegistryError as error:
        return error
    finally:
        attempt.close()


def _wait(
    session: Session, interval: Interval, attempt: Attempt, began: float, budget: float
) -> Generator[Callable[[float], None], None, Held | Busy]:
    def wait(seconds: float) -> None:
        attempt.wait(max(0.0, min(seconds, began + budget - time.monotonic())))

    said = False
    while True:
        outcome = attempt.step()
        if outcome is not None:
            return outcome
        waited, busy = time.monotonic() - began, attempt.busy
        if busy is not None and waited >= budget:
            busy.waited = waited
            return busy
        if busy is not None and waited > _SLOW and not said:
            said = True
            what = f"{interval.what} {interval.name!r} of step {interval.step}"
            session.log(f"{what} has waited for {busy.device} for {waited:.1f} s: held by {busy.describe()}")
        yield wait
