"""An engine that records, as a context manager."""

from __future__ import annotations

import os
import sys
import time

from profwin.engines.marks import Marks
from profwin.engines.together import answered
from profwin.errors import EngineError, EngineRefusedError, RegistryError
from profwin.registry.holder import Mark, gone
from profwin.registry.process import identities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import Recording, Request
    from profwin.engines import Engine
    from profwin.engines.together import Asking
    from profwin.registry.lock import Held
    from profwin.session import Session

__all__ = ["DIED", "EngineRecording", "Unmarked", "catch_up", "recording_of"]

DIED = "it died while it recorded"
"""What the problem of a stop begins with, where that is a proof that nothing records any more."""

_LOOKED_AT = 5.0
"""Seconds that taking off a mark is tried, while others look whether its device is free."""
_DYING = 0.25
"""Seconds that a killed process gets to be gone: its connections break a moment before."""


def occupied() -> str | None:
    """Say, in words, which profiler records in this process, so that an engine cannot record here too; None if none.

    torch 2.13 lets a second profiler start, and the first one loses all that it has (measured); so it is looked for.
    """
    if "torch" not in sys.modules:
        return None
    from profwin.backends.torch import foreign

    return foreign()


def recording_of(
    session: Session, engine: Engine, held: Held | None, keys: tuple[str, ...], request: Request
) -> AbstractContextManager[Recording]:
    """Return what records a window, not yet begun: one engine, or several at the same time.

    Args:
        session: whose journal is written.
        engine: what records.
        held: the locks of its devices; None where no device is known.
        keys: its devices.
        request: where traces go, and what they must say.
    """
    marks = Marks(held)
    if hasattr(engine, "parts"):
        from profwin.engines.ensemble import Ensemble
        from profwin.engines.several import Several

        if isinstance(engine, Several):
            return Ensemble(session, engine, marks, request)
    return EngineRecording(session, engine, marks, keys, request)


def catch_up(session: Session, engine: Engine, held: Held, keys: tuple[str, ...]) -> bool:
    """Stop what a window of another process has left an engine recording; see :meth:`EngineRecording.catch_up`.

    Args:
        session: whose journal is written.
        engine: what may record.
        held: the locks of its devices.
        keys: its devices.
    """
    from profwin.backends import Request

    return EngineRecording(session, engine, Marks(held), keys, Request(lambda: "", dict)).catch_up()


class Unmarked:
    """What engines record: this process puts nothing into it."""

    def span(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002  # their traces take no ranges
        """Return a context manager that does nothing."""
        from contextlib import nullcontext

        return nullcontext()

    def step(self) -> None:
        """Do nothing: engines do not know the loop's steps."""

    def answered(self, seconds: float) -> bool:
        """Ask the engines to stop, and wait so long for their answers; say whether all confirm it.

        False, and nothing was asked, where one of them takes no requests. To be left afterwards in any case.
        """
        engines = self.telling()
        return all(hasattr(each, "send_stop") for each in engines) and answered(
            [each.send_stop() for each in engines], seconds
        )

    def telling(self) -> Sequence[Any]:
        """Return the engines that are to be told to stop."""
        raise NotImplementedError


class EngineRecording(Unmarked):
    """An engine that records, as a context manager: a mark on its devices, start; stop, and the mark taken off.

    The mark stays when the stop is not confirmed and the engine's processes are not proven gone: the devices are
    unknown then. An engine that refuses to start is not stopped, and its mark is taken off: what it records, it records
    for somebody else.
    """

    def __init__(
        self, session: Session, engine: Engine, marks: Marks, keys: tuple[str, ...], request: Request, name: str = ""
    ) -> None:
        self.name = name or engine.name
        self._session, self._engine, self._marks, self._keys, self._request = session, engine, marks, keys, request
        self._processes = identities(engine.process_ids)
        self._mark: Mark | None = None
        self._died: str | None = None

    def __enter__(self) -> EngineRecording:
        for _ in self.entering():
            pass
        return self

    def entering(self) -> Asking:
        """Begin; where the engine sends a request to start, yield that, to be resumed in any case.

        Closing it instead stops the engine.
        """
        metadata, engine = self._request.metadata, self._engine
        problem = engine.obstacle()
        if problem is not None:
            # Before the mark, which only a confirmed stop takes off: nothing was started.
            raise EngineError(self.name, "start", problem)
        self.catch_up()
        if engine.in_process and (problem := occupied()) is not None:
            raise EngineRefusedError(self.name, problem, foreign=True)
        self._mark = Mark(self._processes, str(metadata["run"]), str(metadata["name"]), int(metadata["step"]))
        self._marks.add(self._keys, self._mark)
        self._write("mark")
        order = *os.path.split(self._request.stem), metadata
        try:
            if hasattr(engine, "send_start"):
                yield engine.send_start(*order)
            engine.start(*order)
        except EngineRefusedError as error:
            self._unmark()
            self._refused(error)
            raise
        except BaseException as error:
            try:
                self._stop()
            except EngineError:
                pass  # the mark stays; the failed start is what the caller hears of
            if not isinstance(error, Exception):
                raise
            raise EngineError(self.name, "start", f"{type(error).__name__}: {error}") from error

    def catch_up(self) -> bool:
        """Stop what an earlier window of the engine, whose stop was not confirmed, may have left recording.

        Returns:
            Whether a mark said so; it is taken off.

        Raises:
            EngineError: nothing confirms the stop now either.
        """
        left = self._marks.left_over(self._keys, self._processes)
        if left:
            self._stop()
        return left

    def __exit__(self, *exception: object) -> None:
        self._died = self._stop()
        if self._died is not None:
            raise EngineError(self.name, "stop", self._died)

    def telling(self) -> Sequence[Any]:
        """Return the engine."""
        return (self._engine,)

    def leaving(self) -> Asking:
        """End, in the same way as :meth:`entering`."""
        if hasattr(self._engine, "send_stop"):
            yield self._engine.send_stop()
        self.__exit__()

    def export(self) -> list[str]:
        """Bring the engine's traces to where they belong; return the paths of the finished files.

        Raises:
            EngineError: it died while it recorded.
            Exception: there is none, or they cannot be had.
        """
        if self._died is not None:
            raise EngineError(self.name, "stop", self._died)
        stem = self._request.stem
        try:
            return self._engine.export(os.path.dirname(stem), os.path.basename(stem))
        except FileNotFoundError as error:
            self._session.finding("engine-silent", f"{self.name}: {error}")
            raise

    def _refused(self, error: EngineRefusedError) -> None:
        if error.foreign:
            where = ", ".join(self._keys) or "its devices"
            detail = f"{self.name}: {error.problem}; what trains on {where} may be recorded beside that session"
            self._session.note("foreign-session", detail)  # the window's skip warns

    def _stop(self) -> str | None:
        """Stop the engine and take the mark off; return how it died, if it did."""
        died = None
        try:
            self._engine.stop()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if not self._all_gone():
                self._died = problem  # so there is nothing to export yet
                raise EngineError(self.name, "stop", problem) from error
            died = f"{DIED} ({problem})"
            self._session.finding("engine-died", f"{self.name}: {died}")
        self._unmark()
        return died

    def _unmark(self) -> None:
        self._marks.remove(self._keys, self._processes, self._mark)
        if self._marks.given_back and self._mark is not None:
            self._unmark_later(self._mark)
        self._write("confirmed")

    def _unmark_later(self, mark: Mark) -> None:
        """Take the mark off devices that were given back before the engine answered; its processes tell whose it is."""
        deadline, owner = time.monotonic() + _LOOKED_AT, frozenset(self._processes)
        take = self._session.registry().take
        try:
            while True:
                held = take(
                    self._keys, kind="rollout", run=mark.run, name=mark.name, step=mark.step, owner_of_mark=owner
                )
                if held is not None:
                    held.clear_mark()
                    held.release()
                if held is not None or time.monotonic() > deadline:
                    return
                time.sleep(0.001)  # whoever else wants the device holds it while he reads the mark
        except RegistryError:
            pass  # the mark stays until its processes are gone, or the engine's next window

    def _all_gone(self) -> bool:
        deadline = time.monotonic() + _DYING
        while self._processes:
            if all(gone(process) for process in self._processes):
                return True
            if time.monotonic() > deadline:
                break
            time.sleep(0.005)
        return False

    def _write(self, kind: str) -> None:
        pids = [process.pid for process in self._processes]
        if not self._keys and not pids:
            return  # it says nothing: an actor's own process writes of its devices, say
        self._session.journal.write(kind, devices=list(self._keys), processes=pids)
