"""Several engines that record at the same time, as a context manager."""

from __future__ import annotations

from functools import partial

from profwin.backends import Request
from profwin.engines.recording import EngineRecording, Unmarked
from profwin.errors import BackendError, EngineError, EngineRefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.engines.marks import Marks
    from profwin.engines.several import Member, Several
    from profwin.engines.together import Asking
    from profwin.session import Session

__all__ = ["Ensemble"]

_PATIENCE = 1.0
"""Seconds that a stop beside the caller's thread may take, whatever is left of the wait budget."""


class Ensemble(Unmarked):
    """Several engines that record, as a context manager: each with its own mark, outcome and traces.

    The name of an engine's traces ends with its place in the list.

    Args:
        session: whose journal is written.
        several: the engines.
        marks: on the devices of all of them.
        request: where traces go, and what they must say.
    """

    def __init__(self, session: Session, several: Several, marks: Marks, request: Request) -> None:
        self._session, self._several, self._marks, self._request = session, several, marks, request
        self._told: dict[Member, EngineRecording] = {}
        self._begun: list[Member] = []

    def __enter__(self) -> Ensemble:
        stem, metadata = self._request.stem, self._request.metadata  # here, not in several threads at once
        works = {member: partial(self._begin, member, stem, metadata) for member in self._several.members}
        outcomes, interrupt = self._several.each(works, lambda member: self._told[member].__exit__())
        if interrupt is not None:
            # What has failed has been stopped, and what has not answered yet is when it has.
            told = [member for member in self._told if not isinstance(outcomes[member], Exception)]
            self._several.each({member: partial(self._end, member) for member in told})
            raise interrupt
        self._begun = [member for member, failure in outcomes.items() if failure is None]
        failures = {member: failure for member, failure in outcomes.items() if failure is not None}
        if not self._begun:
            raise self._all_failed(list(failures.values()))
        for name, why in self._several.left_out:
            self._session.finding("engine-failed", f"{name} did not record: {why}")
        for member, failure in failures.items():
            self._session.finding("engine-failed", f"{member.name} did not record: {_said(failure)}")
        return self

    def __exit__(self, *exception: object) -> None:
        patience = None
        if not self._several.detached:
            # The caller waits here, and what is late may not keep it for ever.
            metadata = self._request.metadata
            patience = max(self._session.budget.left(self._several.keys, metadata["step"]), _PATIENCE)
        works = {member: partial(self._end, member) for member in self._begun}
        outcomes, interrupt = self._several.each(works, patience=patience)
        if interrupt is not None:
            raise interrupt
        failures = {member.name: failure for member, failure in outcomes.items() if failure is not None}
        if failures:
            raise EngineError(", ".join(failures), "stop", _list(failures))

    def telling(self) -> list[Any]:
        """Return those that record."""
        return [member.engine for member in self._begun]

    def _begin(self, member: Member, stem: str, metadata: dict[str, Any]) -> Asking:
        own = {**metadata, "devices": list(member.keys)}
        request = Request(lambda: f"{stem}_e{member.number}", lambda: own)
        recording = EngineRecording(self._session, member.engine, self._marks, member.keys, request, member.name)
        self._told[member] = recording  # before, or Ctrl-C could come in between
        yield from recording.entering()

    def _end(self, member: Member) -> Asking:
        return self._told[member].leaving()

    def export(self) -> list[str]:
        """Bring the traces of all to where they belong; return the paths of the finished files.

        Raises:
            Exception: none of them has any.
        """
        paths: list[str] = []
        failures: dict[str, Exception] = {}
        for member in self._begun:
            try:
                paths += self._told[member].export()
            except Exception as error:  # noqa: BLE001  # of whichever engine: the others have traces all the same
                failures[member.name] = error
        if failures and len(failures) == len(self._begun):
            raise BackendError(f"engine {', '.join(failures)}", "export", _list(failures))
        for name, failure in failures.items():
            if not isinstance(failure, (FileNotFoundError, EngineError)):  # those have been said
                self._session.finding("engine-failed", f"{name} has no traces: {_said(failure)}")
        return paths

    def _all_failed(self, errors: list[BaseException]) -> EngineError:
        names = ", ".join(member.name for member in self._several.members)
        said = {member.name: error for member, error in zip(self._several.members, errors, strict=True)}
        problem = "; ".join([_list(said), *(f"{name}: {why}" for name, why in self._several.left_out)])
        if all(isinstance(error, EngineRefusedError) for error in errors):
            foreign = all(getattr(error, "foreign", False) for error in errors)
            return EngineRefusedError(names, problem, foreign=foreign)
        return EngineError(names, "start", problem)


def _list(failures: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {_said(failure)}" for name, failure in failures.items())


def _said(error: BaseException) -> str:
    problem = getattr(error, "problem", None)
    return problem if isinstance(problem, str) else f"{type(error).__name__}: {error}"
