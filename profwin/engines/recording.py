"""An engine that records, as a context manager."""

from __future__ import annotations

import os
import time

from profwin.errors import EngineError, EngineRefusedError
from profwin.registry.holder import Mark, gone, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from profwin.backends import Request
    from profwin.engines import Engine
    from profwin.registry.lock import Held
    from profwin.session import Session

__all__ = ["EngineRecording"]

_DYING = 0.25
"""Seconds that a killed process gets to be gone: its connections break a moment before."""


class EngineRecording:
    """An engine that records, as a context manager: a mark on its devices, start; stop, and the mark taken off.

    The mark stays when the stop is not confirmed and the engine's processes are not proven gone: the devices are
    unknown then.
    """

    def __init__(
        self, session: Session, engine: Engine, held: Held | None, keys: tuple[str, ...], request: Request
    ) -> None:
        self._session, self._engine, self._held, self._keys, self._request = (
            session,
            engine,
            held,
            keys,
            request,
        )
        self._processes = [identity(pid) for pid in engine.process_ids]
        self._traces: list[str] = []
        self._died: str | None = None

    def __enter__(self) -> EngineRecording:
        metadata, engine = self._request.metadata, self._engine
        problem = engine.obstacle()
        if problem is not None:
            # Before the mark, which only a confirmed stop takes off: nothing was started.
            raise EngineError(engine.name, "start", problem)
        if self._held is not None:
            if self._held.mark is not None:
                # Ours, of an earlier stop that was not confirmed: the engine may still record.
                self._stop()
            mark = Mark(self._processes, str(metadata["run"]), str(metadata["name"]), int(metadata["step"]))
            self._held.set_mark(mark)
        self._write("mark")
        try:
            engine.start(os.path.dirname(self._request.stem), os.path.basename(self._request.stem), metadata)
        except BaseException as error:
            try:
                self._stop()
            except EngineError:
                pass  # the mark stays; the failed start is what the caller hears of
            if not isinstance(error, Exception):
                raise
            raise EngineError(engine.name, "start", f"{type(error).__name__}: {error}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        self._died = self._stop()
        if self._died is not None:
            raise EngineError(self._engine.name, "stop", self._died)

    def span(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002  # its trace takes no ranges
        """Return a context manager that does nothing."""
        from contextlib import nullcontext

        return nullcontext()

    def step(self) -> None:
        """Do nothing: the engine does not know the loop's steps."""

    def export(self) -> list[str]:
        """Return the traces that the engine named; it writes them itself.

        Raises:
            EngineError: it died while it recorded.
        """
        if self._died is not None:
            raise EngineError(self._engine.name, "stop", self._died)
        return self._traces

    def _stop(self) -> str | None:
        """Stop the engine and take the mark off; return how it died, if it did."""
        died = None
        try:
            self._traces = self._engine.stop()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if not self._all_gone():
                raise EngineError(self._engine.name, "stop", problem) from error
            died = f"it died while it recorded ({problem})"
            self._session.finding("engine-died", f"{self._engine.name}: {died}")
        if self._held is not None:
            self._held.clear_mark()
        self._write("confirmed")
        return died

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
        self._session.journal.write(kind, devices=list(self._keys), processes=pids)
