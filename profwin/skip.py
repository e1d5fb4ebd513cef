"""Skips: intervals that run unrecorded, and say why."""

from __future__ import annotations

from profwin.errors import DeviceBusyError, RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.errors import ProfwinError
    from profwin.interval import Interval
    from profwin.registry.lock import Busy
    from profwin.session import Session

__all__ = ["failed", "skip", "turn_away"]


def skip(
    session: Session,
    interval: Interval,
    reason: str,
    detail: str | None = None,
    error: ProfwinError | None = None,
    *,
    device: str | None = None,
    holder: str | None = None,
    waited: float = 0.0,
) -> None:
    """Write down that an interval runs unrecorded.

    Args:
        session: whose journal is written.
        interval: what runs.
        reason: ``busy``, ``peer``, ``unknown``, ``self``, ``foreign``, ``thread``, ``registry``, ``backend``,
            ``engine``, ``paused`` or ``ended``.
        detail: what else there is to say.
        error: what is raised for it under ``strict``, else warned of once; None where it is nobody's fault.
        device: which device is kept from it.
        holder: who keeps it, in words.
        waited: seconds waited for it.

    Raises:
        ProfwinError: the given one, under ``strict``.
    """
    interval.skipped = reason, detail or holder or ""
    session.journal.write(
        "skip",
        id=interval.identifier,
        reason=reason,
        device=device,
        holder=holder,
        waited=round(waited, 6),
        detail=detail,
    )
    if error is not None:
        session.complain(error, raising=True)


def failed(interval: Interval, error: ProfwinError) -> str:
    """Return the reason of a skip where a profiler or an engine could not start."""
    if getattr(error, "foreign", False):
        return "foreign"
    return "backend" if interval.engine is None else "engine"


def turn_away(session: Session, interval: Interval, why: str | Busy | RegistryError, waited: float = 0.0) -> None:
    """Write down that an interval runs unrecorded, for whichever reason; training elsewhere is no fault.

    Args:
        session: whose journal is written.
        interval: what runs.
        why: a reason that is nobody's fault; or who keeps a device; or why this host's registry cannot be used.
        waited: seconds waited for a device.

    Raises:
        DeviceBusyError: under ``strict``, unless the device is held for training.
        RegistryError: under ``strict``.
    """
    if isinstance(why, str):
        skip(session, interval, why)
    elif isinstance(why, RegistryError):
        skip(session, interval, "registry", str(why), why)
    else:
        _refuse(session, interval, why, waited)


def _refuse(session: Session, interval: Interval, busy: Busy, waited: float) -> None:
    holder = busy.describe()
    error = None if busy.reason == "peer" else DeviceBusyError(busy.device, holder, waited)
    skip(session, interval, busy.reason, None, error, device=busy.device, holder=holder, waited=waited)
