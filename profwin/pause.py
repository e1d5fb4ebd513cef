"""Pauses: parts of a step that shall not be recorded."""

from __future__ import annotations

from profwin.configuration import current
from profwin.errors import ProfwinError
from profwin.passage import resume
from profwin.switch import SWITCH, compiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.session import Session

__all__ = ["Pause", "paused"]


class Pause:
    """What :func:`paused` returns."""

    __slots__ = ("_session",)

    def __init__(self) -> None:
        self._session: Session | None = None

    def __enter__(self) -> None:
        if not SWITCH.on or compiling():
            return
        self._session = session = current()
        if session is not None:
            session.journal.write("paused")
            session.owner.pauses.begin()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        session.journal.write("resumed")
        failure: ProfwinError | None = None
        for interval in session.owner.pauses.end():
            try:
                resume(session, interval)
            except ProfwinError as problem:
                failure = failure or problem
        if failure is not None and error is None:
            raise failure


def paused() -> Pause:
    """Record nothing of this process, and of the engines of its windows, inside the block: validation, checkpoints.

    What is recording is stopped and its devices are released; stages and windows that begin inside run unrecorded;
    those that go on after the block are recorded on, as a further segment. Pauses nest. All threads of the process are
    paused.

    Raises:
        ProfwinError: under ``strict``, when what was paused cannot be taken up again.
    """
    return Pause()
