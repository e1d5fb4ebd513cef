"""What the adapters of HTTP servers share: starting, stopping, and what an answer of either means."""

from __future__ import annotations

import os
import threading
import time

from profwin.engines.asked import Asked, new_token
from profwin.engines.checks import checked_number, checked_timeout, checked_token, checked_url
from profwin.engines.http import Answer, Channel
from profwin.errors import EngineRefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Iterable
    from typing import Any

    from profwin.engines.http import Silence

__all__ = ["ProfilerServer", "successful"]

REDIRECT, CONFLICT, INTERNAL = 300, 409, 500
GIVEN_UP = 408
"""What stands between may answer so where the server has long begun."""
_START_AGAIN = (0.0, 0.1, 0.4)
"""Seconds before each try of a start that found no connection; of such a one nothing was sent."""
_STOP_AGAIN = (0.0, 0.2, 1.0)
"""Seconds before each try of a stop. A repeated stop does no harm, and its answer confirms as well as the first."""
_FRESH = 1.0
"""Seconds for which the server's processes need not be looked up again: a window asks several times."""
_MOST_ASKED = 64


class ProfilerServer:
    """Adapts an HTTP server to a window; what is common to vLLM and SGLang.

    Every method may be called from any thread. It can be pickled, with its token, for processes that open windows.

    Args:
        url: of the server: ``http://HOST:PORT``, or with ``https`` and a path. Only the user gives it.
        token: sent as bearer token; shown nowhere.
        devices: names of the devices that the server records on, as in :func:`profwin.configure`; None: those that its
            processes use, where they can be seen from here, else the window's.
        directory: where the server writes its traces, as this process would write it; None: as the server's own
            command line or variables say, where they can be seen from here.
        revocable: whether another process that needs the devices may have the recording stopped at any time.
        start_timeout: seconds that a start may take; what has not answered by then is told to stop.
        stop_timeout: seconds that a stop may take until it counts as not confirmed; None: as long as it takes.
        ranks: the global device ranks that this server spans.

    Raises:
        SettingError: one of them is wrong.
    """

    kind = "server"
    missing = "is this its address?"
    silence = "its log says why"
    in_process = False
    detached = True

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        devices: str | Iterable[str] | None = None,
        directory: str | os.PathLike[str] | None = None,
        revocable: bool = True,
        start_timeout: float = 30.0,
        stop_timeout: float | None = None,
        ranks: Iterable[int] | None = None,
    ) -> None:
        self.url = checked_url(url)
        self.name = f"{self.kind} at {self.url}"
        self.revocable = bool(revocable)
        self.ranks = None if ranks is None else tuple(checked_number("ranks", rank, 0) for rank in ranks)
        self.directory = None if directory is None else os.path.abspath(os.fspath(directory))
        self._devices = (devices,) if isinstance(devices, str) else None if devices is None else tuple(devices)
        self._start_timeout = checked_timeout("start_timeout", start_timeout)
        self._stop_timeout = None if stop_timeout is None else checked_timeout("stop_timeout", stop_timeout)
        self._channel = Channel(self.url, checked_token(token), self.name)
        self._mutex = threading.Lock()
        self._asked: dict[tuple[str, str], Asked] = {}
        self._open: Asked | None = None
        self._looked: tuple[float, tuple[int, ...]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_mutex": None, "_asked": {}, "_open": None, "_looked": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._mutex = threading.Lock()

    def attach(self, loop: AbstractEventLoop) -> None:
        """Do nothing: requests need no event loop."""

    def obstacle(self) -> str | None:
        """Return None: a server can always be asked."""
        return None

    def needs(self, thread: int) -> bool:  # noqa: ARG002  # as engines with coroutine methods have it
        """Return False: requests need no event loop."""
        return False

    @property
    def devices(self) -> tuple[str, ...] | None:
        """The devices that the user named, else those that the server's processes use, else None."""
        if self._devices is not None:
            return self._devices
        from profwin.engines.processes import devices_of

        found = self.process_ids
        return (devices_of(found) or None) if found else None

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The server's processes, looked up anew for each window; empty where they cannot be seen from here."""
        looked, now = self._looked, time.monotonic()
        if looked is None or now - looked[0] > _FRESH:
            from profwin.engines.processes import server_processes

            self._looked = looked = now, server_processes(self.url) or ()
        return looked[1]

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
        """Ask the server to record. That it has agreed does not prove that it does: :meth:`export` sees.

        A start is sent once. Only where there was no connection, so that nothing was sent, it is tried again.

        Raises:
            EngineRefusedError: it certainly does not record this window.
            RuntimeError, TimeoutError: whether it does is not known; it must be stopped.
        """
        asked = self._ask(metadata)
        body = self._start_request(asked, directory, prefix)
        with self._mutex:
            earlier, self._open = self._open, asked
            self._asked[directory, prefix] = asked
            while len(self._asked) > _MOST_ASKED:
                self._asked.pop(next(iter(self._asked)))
        try:
            self._check_start(self._send_start(body), earlier)
        except EngineRefusedError:
            with self._mutex:
                self._open = earlier
                self._asked.pop((directory, prefix), None)
            asked.tidy()
            raise

    def _send_start(self, body: dict[str, Any]) -> Answer:
        for pause in _START_AGAIN:
            _sleep(pause)
            outcome = self._channel.post("/start_profile", body, self._start_timeout)
            if isinstance(outcome, Answer):
                return outcome
            if outcome.sent:
                raise (TimeoutError if outcome.late else RuntimeError)(str(outcome))
            problem = str(outcome)
            if outcome.late:
                break
        raise EngineRefusedError(self.name, f"{problem}: is it up, and is this its address?")

    def stop(self) -> list[str]:
        """Ask the server to stop; returning confirms that it has.

        A stop that fails is sent again, twice: it does no harm where nothing records, and its answer confirms too.

        Raises:
            RuntimeError, TimeoutError: it may still record.
        """
        deadline = None if self._stop_timeout is None else time.monotonic() + self._stop_timeout
        outcome: Answer | Silence | None = None
        answers: list[Answer] = []
        for pause in _STOP_AGAIN:
            left = None if deadline is None else deadline - time.monotonic() - pause
            if left is not None and left <= 0:
                break
            _sleep(pause)
            outcome = self._channel.post("/stop_profile", None, left)
            if isinstance(outcome, Answer):
                answers.append(outcome)
                if self._stopped(answers):
                    self._confirm()
                    return []
                if outcome.status < INTERNAL:
                    break  # it will not like the same request better
        late = outcome is None or getattr(outcome, "late", False)
        raise (TimeoutError if late else RuntimeError)(f"its stop is not confirmed: {outcome or 'it had no time'}")

    def export(self, directory: str, prefix: str) -> list[str]:
        """Bring the files of one window into the step's folder; return them, or where they are if not to be seen here.

        None are looked for where the server's profiler is one for Nsight Systems, which writes a report of its own.

        Args:
            directory: as it was given to :meth:`start`.
            prefix: likewise.

        Raises:
            FileNotFoundError: it has left none, so it has not recorded although it agreed.
            RuntimeError: it is not known where it writes, or its stop was not confirmed.
            OSError: they cannot be read or moved.
        """
        from profwin.engines.traces import bring

        with self._mutex:
            asked = self._asked.pop((directory, prefix), None)
        if asked is None:
            raise RuntimeError("nothing was started for it")
        if not asked.leaves_files and asked.confirmed:
            return []
        place = asked.directory
        if place is None:
            raise RuntimeError(f"where it writes is not known: pass directory=; its files have {asked.token!r}")
        if not asked.confirmed:
            raise RuntimeError(f"its stop was not confirmed; what it writes is {place.rstrip('/')}/*{asked.token}*")
        if "://" in place or not (asked.processes or os.path.isdir(place)):
            # A store that is no file system, or another machine's directory.
            return [f"{place.rstrip('/')}/{asked.token}"]
        try:
            return bring(place, asked.token, directory, prefix, asked.confirmed, every=asked.alone)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}: {self.silence}") from None
        finally:
            asked.tidy()

    def _start_request(self, asked: Asked, directory: str, prefix: str) -> dict[str, Any]:
        """Return the body of a start, and set where the files will be."""
        raise NotImplementedError

    def _stopped(self, answers: list[Answer]) -> bool:
        """Say whether the last of the answers to a stop and its repetitions confirms it."""
        return successful(answers[-1])

    def _taken(self, answer: Answer) -> bool:
        """Say whether an answer to a start means that a session is open already."""
        said = answer.body.lower()
        return answer.status == CONFLICT or "already in progress" in said or "already active" in said

    def _check_start(self, answer: Answer, earlier: Asked | None) -> None:
        status = answer.status
        if successful(answer):
            return
        if self._taken(answer):
            if earlier is not None and self._same(earlier):
                raise RuntimeError(f"it still records {earlier.window}, whose stop it never confirmed ({answer})")
            whose = "a session that was not started by profwin here is open"
            raise EngineRefusedError(self.name, f"{whose}: {answer}", foreign=True)
        if status in (401, 403):
            raise EngineRefusedError(self.name, f"it wants another token: {answer}; pass token=")
        if status in (404, 405) or "not enabled" in answer.body:
            raise EngineRefusedError(self.name, f"it cannot profile: {answer}; {self.missing}")
        if REDIRECT <= status < INTERNAL and status != GIVEN_UP:
            raise EngineRefusedError(self.name, f"it does not take the request: {answer}")
        raise RuntimeError(f"it answered {answer}")

    def _same(self, earlier: Asked) -> bool:
        """Say whether the server can be the one that was asked earlier; not where all its processes are others."""
        now = self.process_ids
        return not now or not earlier.processes or bool({*now} & {*earlier.processes})

    def _ask(self, metadata: dict[str, Any]) -> Asked:
        window = f"window {metadata.get('name')!r} of step {metadata.get('step')} of run {metadata.get('run')}"
        return Asked(new_token(metadata), window, self.directory, self.process_ids)

    def _confirm(self) -> None:
        with self._mutex:
            self._open = None
            for asked in self._asked.values():
                asked.confirmed = asked.confirmed or time.time_ns()


def _sleep(pause: float) -> None:
    if pause:  # even a sleep of nothing lets others run first: 2.6 ms on a busy machine, measured
        time.sleep(pause)


def successful(answer: Answer) -> bool:
    """Say whether an answer is one of success."""
    return 200 <= answer.status < REDIRECT
