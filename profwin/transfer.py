"""Transfers: the body of a weight sync, in which new weights reach the engines, as the journal has it."""

from __future__ import annotations

from profwin.interval import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from profwin.journal import Journal
    from profwin.session import Session

    Place: TypeAlias = tuple[object | None, Sequence[str] | None]  # engine, devices; as for `rollout_window`

__all__ = ["Transfer", "begin_transfer"]


class Transfer:
    """A body that is under way, and whose begin is in the journal."""

    __slots__ = ("_identifier", "_journal")

    def __init__(self, journal: Journal, identifier: int) -> None:
        # Not the session: that of a forked child has another journal, and this one is closed there.
        self._journal, self._identifier = journal, identifier

    def end(self, error: str | None = None) -> None:
        """Write that the body has ended, and what it failed with, if it did."""
        status = "ok" if error is None else "error"
        self._journal.write("synced", id=self._identifier, status=status, error=error)


def begin_transfer(session: Session, version: int, name: str, side: str, places: Iterable[Place]) -> Transfer | None:
    """Write that a body begins; return what ends it, or None where no step beside the sync is recorded here.

    Never raises but for what interrupts it.

    Args:
        session: whose journal it is.
        version: of the weights.
        name: of the windows.
        side: ``"rollout"``, or ``"training"`` where this process only sends the weights.
        places: what takes part in it.
    """
    if not session.position.beside_selected(version):
        return None
    identifier = number()
    keys = _keys(session, places)
    session.journal.write("sync", id=identifier, version=version, name=name, side=side, devices=keys)
    return Transfer(session.journal, identifier)


def _keys(session: Session, places: Iterable[Place]) -> tuple[str, ...]:
    from profwin.engines import adapt

    keys: dict[str, None] = {}
    try:
        for engine, devices in places:
            keys |= dict.fromkeys(session.keys(devices, None if engine is None else adapt(engine)))
    except Exception:  # noqa: BLE001  # what is wrong with them is said when the window opens
        return ()
    return tuple(keys)
