"""Ray actors as the engines of a window: each records in its own process, and holds its devices there."""

from __future__ import annotations

import itertools
import os
import time
from functools import partial
from importlib import import_module

from profwin.configuration import current
from profwin.errors import EngineError, EngineRefusedError, SettingError
from profwin.ray.call import NOT_CONNECTED, Call
from profwin.ray.nodes import line
from profwin.ray.presence import needs_ray
from profwin.ray.recorder import begin, end
from profwin.step import checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    Sent: TypeAlias = Call

__all__ = ["ActorEngine", "actors"]

_START, _STOP = 30.0, 600.0
_UNDONE = 5.0
"""Seconds that the stop which follows a late start is waited for: what is late with that may be so with everything."""
_AGAIN = 0.5

_origin = os.urandom(8).hex()
_numbers = itertools.count(1)


class ActorEngine:
    """One actor as an engine; made by :func:`actors`.

    The window that it belongs to locks no devices on its account: the actor's own process does, by a window of its own
    (:mod:`profwin.ray.recorder`), with a journal and traces of its own. So the kernel frees the devices with the
    actor's process, and the death of the driver frees nothing.

    Attributes:
        name: the actor's class and id.
        revocable: whether it may be told to stop at any time.
        in_process: False.
        detached: True: it may be told from any thread.
        devices: none.
        process_ids: none: the mark is in the actor's process, too.
        elsewhere: the actor's id: windows over other actors have nothing to do with those over this one.
    """

    in_process = False
    detached = True
    devices: tuple[str, ...] = ()
    process_ids: tuple[int, ...] = ()

    def __init__(self, handle: Any, order: dict[str, Any], timeout: float | None) -> None:
        self._handle, self._order, self._timeout = handle, order, timeout
        self.revocable: bool = order["revocable"]
        self.name = str(handle)
        self.elsewhere = (handle._actor_id.hex(),)
        self._token = ""
        self._collection: int | None = None
        self._recorded = False
        self._died: str | None = None
        self._starting: Sent | None = None
        self._stopping: Sent | None = None

    def attach(self, loop: AbstractEventLoop) -> None:
        """Do nothing: its calls are made from any thread."""

    def obstacle(self) -> str | None:
        """Say that this process is not connected to a cluster, if it is not."""
        return None if import_module("ray").is_initialized() else NOT_CONNECTED

    def needs(self, thread: int) -> bool:  # noqa: ARG002  # see `attach`
        """Return False: it needs no event loop."""
        return False

    def locate(self, keys: Callable[[Any], tuple[str, ...]]) -> tuple[str, ...]:  # noqa: ARG002  # they are not ours
        """Return no keys, whatever devices this process has: see above."""
        return ()

    def send_start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> Sent:  # noqa: ARG002  # see `start`
        """Ask the actor's process to open a window, and do not wait: several are asked before any is waited for.

        Returns:
            The call, for whose answer :meth:`start` waits.
        """
        self._token = f"{_origin}-{os.getpid()}.{next(_numbers)}"
        self._recorded, self._died, self._stopping = False, None, None
        self._collection = metadata["collection"]
        order = {
            **self._order, "step": metadata["step"], "name": metadata["name"], "version": metadata["weight_version"],
        }  # fmt: skip
        self._starting = sent = self._send(partial(begin, token=self._token, order=order), self._limit(_START))
        return sent

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
        """Have the actor's process open a window, and wait until it records. The actor has traces of its own.

        Raises:
            EngineRefusedError: it does not: it is dead, its device cannot be had, or profwin is off there.
            Exception: nothing is known: it has not answered in time, or cannot be reached.
        """
        sent, self._starting = self._starting or self.send_start(directory, prefix, metadata), None
        try:
            answer = self._answered(sent)
        except BaseException as error:
            self._write("refused" if isinstance(error, EngineRefusedError) else "unknown")
            raise
        self._recorded = True
        who = zip(("pid", "start", "boot", "host", "run"), answer.get("process", ()), strict=False)
        self._write("recording", **dict(who))

    def _answered(self, sent: Sent) -> dict[str, Any]:
        try:
            answer = sent.result()
        except TimeoutError:
            self._stopping = self._send_end(min(self._limit(_STOP), _UNDONE))
            raise
        except import_module("ray.exceptions").ActorDiedError as error:
            raise EngineRefusedError(self.name, f"the actor has died: {line(error)}") from error
        except ModuleNotFoundError as error:
            raise EngineRefusedError(self.name, f"profwin cannot be imported in its process: {error}") from error
        if not answer["recorded"]:
            problem = f"{answer['reason']}: {answer['detail']}"
            raise EngineRefusedError(self.name, problem, foreign=answer["reason"] == "foreign")
        return answer

    def send_stop(self) -> Sent:
        """Ask the actor's process to close the window, and do not wait; see :meth:`send_start`.

        Returns:
            The call; once it is sent, the same until :meth:`stop` takes its answer.
        """
        self._starting = None
        if self._stopping is None:
            self._stopping = self._send_end(self._limit(_STOP))
        return self._stopping

    def stop(self) -> list[str]:
        """Have the actor's process close the window. An actor that has died meanwhile is a finding.

        Raises:
            Exception: it has not answered in time, or says that it failed.
        """
        exceptions = import_module("ray.exceptions")
        sent, self._stopping = self._stopping or self.send_stop(), None
        until = sent.until
        while True:
            try:
                answer = sent.result()
                break
            except exceptions.ActorDiedError as error:
                self._dead(line(error))
                return []
            except exceptions.ActorUnavailableError:
                if time.monotonic() > until:
                    raise
                time.sleep(_AGAIN)  # it is being started again, or the network is
                sent = self._send_end(max(0.0, until - time.monotonic()))
        self._stopped(answer)
        if self._died is None:
            self._write("stopped")
        return []

    def export(self, directory: str, prefix: str) -> list[str]:  # noqa: ARG002  # see `start`
        """Return nothing: the actor's own process writes its traces and lists them.

        Raises:
            EngineError: it died while it recorded.
        """
        if self._died is not None:
            raise EngineError(self.name, "stop", self._died)
        return []

    def _stopped(self, answer: dict[str, Any]) -> None:
        if not answer["known"] and self._recorded:
            self._dead("it has been started again since, or another driver has begun a window there")
        if answer["detail"]:
            raise RuntimeError(answer["detail"])

    def _dead(self, why: str) -> None:
        if self._recorded:
            self.note("engine-died", f"it died while it recorded ({why})")

    def _write(self, status: str, **who: Any) -> None:
        """Write down what the actor's process answered, so that its journal can be held against this one."""
        session = current()
        if session is not None:
            session.journal.write(
                "remote", collection=self._collection, token=self._token, engine=self.name, status=status, **who
            )

    def note(self, code: str, why: str) -> None:
        """Take note that what was recorded is lost, as a finding of that code."""
        self._died, session = why, current()
        self._write("died")
        if session is not None:
            session.finding(code, f"{self.name}: {why}")

    def _limit(self, least: float) -> float:
        if self._timeout is not None:
            return self._timeout
        session = current()
        return least + (0.0 if session is None else session.settings.wait_budget)

    def _send_end(self, seconds: float) -> Sent:
        return self._send(partial(end, token=self._token), seconds)

    def _send(self, work: partial[dict[str, Any]], seconds: float) -> Sent:
        return Call(self._handle, work, seconds)


def actors(
    handles: Any,
    start: str = "start_profile",
    stop: str = "stop_profile",
    *,
    devices: str | Iterable[str] | None = None,
    revocable: bool = False,
    timeout: float | None = None,
    max_seconds: float | None = None,
) -> list[ActorEngine]:
    """Return Ray actors as engines, for ``engine=`` of windows, weight syncs and loops.

    They are started and stopped side by side. In each actor's process an ordinary window records, with the rules of
    one: it waits for a device that another process holds, within the wait budget, and asks it to let go; it takes the
    lock, calls the actor's ``start`` method, and at the end ``stop``, and gives the lock back. One that is turned away,
    or fails, is undone and said (``engine-failed``), and keeps no other from recording. The processes must be
    configured: see :func:`profwin.ray.environment`.

    What an actor records on is said by ``devices``, else by the attribute ``devices`` of the actor, else by its
    process's setting, else by its contexts, else by Ray (``get_accelerator_ids()``). ``devices`` and ``process_ids`` of
    the actor mean what they mean on any engine, see :class:`profwin.engines.ObjectEngine`; so do the keywords that
    ``start`` may take. An engine whose workers are actors themselves is given by the handles of the workers.

    A driver that dies in a window leaves the actor recording, and its device held, until ``max_seconds`` are over,
    the actor's next window begins, or the actor ends.

    Args:
        handles: an actor's handle, or several.
        start: the method that begins to record. As a coroutine function it runs in the actor's event loop.
        stop: the method whose return confirms that nothing of the actor records any more.
        devices: names of devices as the actors' processes see them, the same for all.
        revocable: whether ``stop`` may be called in any thread of the actor's process while its other methods run.
            Another process can then have the device. A call through Ray waits for the running one unless the actor is
            concurrent (``max_concurrency``, or coroutine methods), so only say so of such actors.
        timeout: seconds that an actor gets to answer a start or a stop; default: those of the wait budget, and 30 more
            for a start and 600 for a stop. One that is late to start is told to stop, and gets 5 for that at most.
        max_seconds: for the windows in the actors, as of :func:`profwin.rollout_window`.

    Raises:
        SettingError: there is no actor, one is no actor of Python's, or one is there twice; or a number is wrong.
        ProfwinError: Ray is not installed.
    """
    needs_ray()
    given = list(handles) if isinstance(handles, (list, tuple, set, frozenset)) else [handles]
    for handle in given:
        if not hasattr(handle, "__ray_call__"):
            raise SettingError("actors", handle, "handles of Ray actors")
    if not given or len(set(given)) < len(given):
        raise SettingError("actors", handles, "one or several handles, each once")
    order = {
        "start": start, "stop": stop, "revocable": bool(revocable), "max_seconds": checked_seconds(max_seconds),
        "devices": None if devices is None else (devices,) if isinstance(devices, str) else tuple(devices),
    }  # fmt: skip
    return [ActorEngine(handle, order, checked_seconds(timeout, "timeout")) for handle in given]
