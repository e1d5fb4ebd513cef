"""Acquiring the device locks of one interval: trying, waiting within the budget, and saying for whom."""

from __future__ import annotations

from profwin import clock
from profwin.conflict import waits_for
from profwin.errors import RegistryError
from profwin.registry.holder import shortened
from profwin.registry.lock import Busy
from profwin.waits import LockWait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from profwin.interval import Interval
    from profwin.registry.attempt import Attempt
    from profwin.registry.lock import Held
    from profwin.session import Session

__all__ = ["acquiring"]

_SLOW = 1.0
"""Seconds of waiting after which it is said for whom: a driver that waits inside its own window sees it there."""


def acquiring(session: Session, interval: Interval) -> Generator[LockWait, None, Held | Busy | RegistryError]:
    """Take an interval's devices; a generator as :meth:`profwin.entrance.Entrance.entering` is one.

    Args:
        session: whose registry and settings are used.
        interval: what wants them; its keys are not empty.

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
        attempt = session.attempt(interval, lambda holder: waits_for(interval, holder, on_busy, session.fellow))
    except RegistryError as error:
        return error
    left = session.budget.left(interval.keys, interval.step)
    try:
        return (yield from _wait(session, interval, attempt, left))
    except RegistryError as error:
        return error
    finally:
        attempt.close()


def _wait(
    session: Session, interval: Interval, attempt: Attempt, budget: float
) -> Generator[LockWait, None, Held | Busy]:
    began = clock.now()
    wait = LockWait(attempt, began + budget)
    said, asked = False, None
    while True:
        outcome = attempt.step()
        if outcome is not None:
            return outcome
        waited, busy = clock.now() - began, attempt.busy
        if busy is not None and waited >= budget:
            busy.waited = waited
            return busy
        if busy is not None and busy.holder is not None and (busy.device, busy.holder.lease) != asked:
            asked = busy.device, busy.holder.lease
            _ask(session, interval, busy)
        if busy is not None and waited > _SLOW and not said:
            said = True
            what = f"{interval.what} {interval.name!r} of step {interval.step}"
            session.log(f"{what} has waited for {busy.device} for {waited:.1f} s: held by {busy.describe()}")
        yield wait


def _ask(session: Session, interval: Interval, busy: Busy) -> None:
    """Ask the holder of a device to let go of it, once for each time that it holds it; another run is not asked."""
    if busy.holder is None or busy.holder.run != shortened(session.run.name):
        return
    sent = session.registry().ask(
        busy, run=session.run.name, purpose=interval.purpose, name=interval.name, step=interval.step
    )
    session.journal.write(
        "ask", id=interval.identifier, device=busy.device, holder=busy.describe(), answer="sent" if sent else "refused"
    )
