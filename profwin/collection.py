"""A collection: profilers that are recording, the device locks they need, and the intervals of user code inside.

The only owner of a running profiler. It is started once and stopped once; order on the way in: locks, journal,
profilers; on the way out the reverse, each whatever the others do.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial

from profwin.backends import Request
from profwin.engines.recording import recording_of
from profwin.errors import BackendError, ProfwinError
from profwin.group import group_timeout
from profwin.interval import number
from profwin.ranges import Ranges
from profwin.registry.lock import Busy, Held
from profwin.terms import Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import Recording
    from profwin.interval import Interval
    from profwin.registry.holder import Mark
    from profwin.session import Session

__all__ = ["Collection"]


_NEVER = threading.Event()  # nobody waits for what is closed by its own thread, and making one takes a microsecond


_for_good: list[Held] = []
"""The locks of recordings that could not be stopped: their devices are free when the process has ended."""


class Collection:
    """Profilers that record one window, stage or step of this process, or an engine's window.

    State goes from ``"new"`` to ``"open"``, ``"closing"`` and ``"closed"``; the owner of the process's collections
    changes it under its mutex and sees to it that start and stop are called once.

    Args:
        session: whose settings, journal and backends are used.
        first: the interval that it is opened for.
        name, occurrence, segment: which collection of the step it is; its trace is named after them.
    """

    def __init__(self, session: Session, first: Interval, *, name: str, occurrence: int, segment: int) -> None:
        self._first_version = first.version
        self.identifier = number()
        self.session, self.engine, self.own = session, first.engine, first.own
        self.purpose, self.step, self.keys, self.site = first.purpose, first.step, first.keys, first.site
        self.elsewhere = first.elsewhere
        self.role, self.name, self.occurrence, self.segment = first.role, name, occurrence, segment
        # Whether its start and stop may run in any thread: they may take long, so nobody should wait for ever.
        self.detached = first.engine is not None and first.engine.detached
        self.members: list[Interval] = []
        self.through = first.step  # the latest step inside, where a recording goes on over several
        self.state = "new"
        self.thread = threading.get_ident()
        # Whether it must be stopped in that thread; of this process's backends known once they have started.
        self.thread_bound = first.engine is not None and first.own and not self.detached
        self.due: str | None = None  # why it is to be closed there, after another thread asked for that
        self.held: Held | None = None
        self.failure: ProfwinError | None = None  # of its stop
        self.late = False  # whether it was said that its stop is late
        self.closed = threading.Event() if first.engine is not None else _NEVER
        self.terms = Terms(self)
        self._begun = False
        self.ranges: Ranges | None = None
        self.recordings: list[tuple[str, Recording]] = []
        self._open: list[tuple[str, AbstractContextManager[Any]]] = []

    @property
    def engine_name(self) -> str:
        """The name of what records."""
        return self.engine.name if self.engine is not None else "profiler"

    def describe(self) -> str:
        """Name it in words."""
        kind = "rollout window" if self.purpose == "rollout" else "training stage"
        return f"{kind} {self.name!r} of step {self.step}"

    def spare(self) -> tuple[str, ...]:
        """Return the devices that nothing inside needs any more; none where something inside means the process."""
        needed = [member.keys for member in self.members]
        if not needed or not all(needed):
            return ()
        return tuple(key for key in self.keys if not any(key in keys for keys in needed))

    def shrink(self) -> None:
        """Release the devices that nothing inside needs any more."""
        spare = self.spare()
        if spare and self.held is not None:
            self.held.shrink(spare)
            self.keys = tuple(key for key in self.keys if key not in spare)

    def start(self, held: Held | None, waited: float) -> None:
        """Start every profiler, with the locks in hand.

        Raises:
            ProfwinError: one failed; the caller must stop the collection, which also releases the locks.
        """
        self.held, self._begun = held, True
        session = self.session
        version = self._first_version if self._first_version is not None else session.position.version(self.purpose)
        request = Request(self._stem, lambda: self._metadata(version))
        backends = session.backends() if self.engine is None else []
        names = [backend.name for backend in backends] if self.engine is None else ["engine"]
        fields: dict[str, Any] = {}
        if (self.engine is None and not session.exclusive) or (self.elsewhere and not self.keys):
            fields["unlocked"] = True
        if held is not None and (dead := held.dead()):
            self._note_dead(dead)
        if waited:
            fields["waited"] = round(waited, 6)
        if version is not None:
            fields["version"] = version
        session.journal.write(
            "open", collection=self.identifier, purpose=self.purpose, name=self.name, step=self.step,
            occurrence=self.occurrence, segment=self.segment, backends=names, devices=self.keys, **fields,
        )  # fmt: skip
        if self.engine is not None:
            engine = self.engine
            self._enter("engine", partial(recording_of, session, engine, held, self.keys, request))
            return
        marked = []
        for backend in backends:
            recording = self._enter(backend.name, partial(backend.open, request))
            if backend.ranges:
                marked.append(recording)
            self.thread_bound = self.thread_bound or backend.thread_bound
        if marked:
            self.ranges = Ranges(marked, lambda problem: session.warn("range", problem))

    def _note_dead(self, dead: dict[str, Mark]) -> None:
        """Write down that engines of others, which never confirmed their stop, are proven gone: it is free by that."""
        for key, mark in dead.items():
            pids = [process.pid for process in mark.processes]
            self.session.journal.write("confirmed", devices=[key], processes=pids)

    def _stem(self) -> str:
        make = self.session.run.trace_stem
        return make(self.purpose, self.step, self.name, self.role, self.occurrence, self.segment)

    def _metadata(self, version: int | None) -> dict[str, Any]:
        run = self.session.run
        return {
            "schema": 1, "run": run.name, "attempt": run.attempt, "purpose": self.purpose, "step": self.step,
            "name": self.name, "occurrence": self.occurrence, "segment": self.segment, "devices": list(self.keys),
            "role": self.role, "rank": run.rank, "weight_version": version, "collection": self.identifier,
        }  # fmt: skip

    def _enter(self, name: str, make: Callable[[], AbstractContextManager[Recording]]) -> Recording:
        try:
            manager = make()
            recording = manager.__enter__()
        except ProfwinError:
            raise
        except Exception as error:
            raise BackendError(name, "open", f"{type(error).__name__}: {error}") from error
        self._open.append((name, manager))
        self.recordings.append((name, recording))
        return recording

    def extend(self, keys: tuple[str, ...]) -> Busy | None:
        """Lock further devices, for what joins; return who keeps one of them.

        They get one try: where some devices are held, waiting for others could wait for ever.

        Raises:
            RegistryError: this host's registry cannot be used.
        """
        if self.held is not None:
            busy = self.held.extend(keys)
        else:
            outcome = self.session.registry().acquire(
                keys, kind=self.purpose, run=self.session.run.name, name=self.name, step=self.step
            )
            busy = outcome if isinstance(outcome, Busy) else None
            self.held = outcome if isinstance(outcome, Held) else None
        if busy is None:
            self.keys += keys
        return busy

    def answered(self, seconds: float) -> bool:
        """Ask what records to stop, where it takes requests, and wait so long for the answers; say whether all came.

        Then :meth:`stop` need not wait for them.
        """
        return bool(self._open) and all(getattr(each, "answered", _unasked)(seconds) for _, each in self._open)

    def stop(self, reason: str) -> ProfwinError | None:
        """Stop every profiler and release the locks, whatever fails; return the first failure. Idempotent.

        An exception that is not an error, such as KeyboardInterrupt, is raised again at the end.
        """
        if not self._begun:
            return None
        began = time.monotonic()
        failure: ProfwinError | None = None
        interrupt: BaseException | None = None
        try:
            if self.ranges is not None:
                self.ranges.end_all()
            while self._open:
                name, manager = self._open.pop()
                try:
                    manager.__exit__(None, None, None)
                except ProfwinError as error:
                    failure = failure or error
                except Exception as error:  # noqa: BLE001  # whatever a profiler raises
                    failure = failure or BackendError(name, "close", f"{type(error).__name__}: {error}")
                    failure.__cause__ = error
                except BaseException as error:  # noqa: BLE001  # raised again below, when all have stopped
                    interrupt = interrupt or error
        finally:
            self._release(reason, time.monotonic() - began, failure)
        if interrupt is not None:
            raise interrupt
        return failure

    def _release(self, reason: str, seconds: float, failure: ProfwinError | None) -> None:
        write, held = self.session.journal.write, self.held
        self.terms.withdraw()
        try:
            if held is not None and self.keys:
                for key in held.lost():
                    write("lost", device=key, collection=self.identifier)
            fields = {} if failure is None else {"error": str(failure)}
            write("close", collection=self.identifier, reason=reason, seconds=round(seconds, 6), **fields)
        finally:
            if held is not None:
                if failure is not None and any(getattr(each, "still_on", False) for _, each in self.recordings):
                    _for_good.append(held)
                else:
                    held.release()
                self.held = None
            self._begun = False

    def export(self) -> ProfwinError | None:
        """Write the traces; the locks are free already. Return the first failure. No half file is left."""
        failure: ProfwinError | None = None
        recordings, self.recordings = self.recordings, []
        for name, recording in recordings:
            began = time.monotonic()
            try:
                paths = recording.export()
            except Exception as error:  # noqa: BLE001  # whatever a profiler raises
                failure = failure or (
                    error if isinstance(error, ProfwinError) else BackendError(name, "export", str(error))
                )
                self._journal_export(name, None, time.monotonic() - began, str(error))
                continue
            for path in paths:
                self._journal_export(name, path, time.monotonic() - began, None)
        return failure

    def _journal_export(self, backend: str, path: str | None, seconds: float, error: str | None) -> None:
        size = None
        if path is not None:
            try:
                size = os.stat(path).st_size if not os.path.isdir(path) else None  # a folder's says nothing
            except OSError as missing:
                error = str(missing)
            path = os.path.relpath(path, self.session.run.directory)
        self.session.journal.write(
            "export",
            collection=self.identifier,
            backend=backend,
            path=path,
            bytes=size,
            seconds=round(seconds, 6),
            error=error,
            group_timeout=group_timeout() if self.purpose == "training" else None,
        )

    def abandon(self) -> list[AbstractContextManager[Any]]:
        """Forget everything without stopping it, in a forked child. Return what the child must still leave itself."""
        for interval in self.members:
            interval.left = True
        left = [] if self.engine is not None else [manager for _name, manager in self._open]
        self._open, self.recordings, self.held, self.state = [], [], None, "closed"
        return left


def _unasked(seconds: float) -> bool:  # noqa: ARG001  # see `Collection.answered`
    return False
