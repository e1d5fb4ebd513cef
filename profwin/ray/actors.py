"""Ray actors as the engines of a window: each records in its own process, and holds its devices there."""

from __future__ import annotations

import os
import time
from importlib import import_module

from profwin.errors import EngineError, EngineRefusedError, SettingError
from profwin.ray.presence import needs_ray
from profwin.step import checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["ActorEngine", "actors"]

_START, _STOP = 30.0, 600.0
_AGAIN = 0.5


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
    """

    in_process = False
    detached = True
    devices: tuple[str, ...] = ()
    process_ids: tuple[int, ...] = ()

    def __init__(self, handle: Any, order: dict[str, Any], timeout: float | None) -> None:
        self._handle, self._order, self._timeout = handle, order, timeout
        self.revocable: bool = order["revocable"]
        self.name = str(handle)
        self._token = ""
        self._recorded = False
        self._died: str | None = None

    def attach(self, loop: AbstractEventLoop) -> None:
        """Do nothing: its calls are made from any thread."""

    def obstacle(self) -> str | None:
        """Say that this process is not connected to a cluster, if it is not."""
        return None if import_module("ray").is_initialized() else "Ray is not initialized in this process"

    def needs(self, thread: int) -> bool:  # noqa: ARG002  # see `attach`
        """Return False: it needs no event loop."""
        return False

    def locate(self, keys: Callable[[Any], tuple[str, ...]]) -> tuple[str, ...]:  # noqa: ARG002  # they are not ours
        """Return no keys, whatever devices this process has: see above."""
        return ()

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:  # noqa: ARG002  # the actor has own
        """Have the actor's process open a window, and wait until it records.

        Raises:
            EngineRefusedError: it does not: it is dead, its device cannot be had, or profwin is off there.
            Exception: nothing is known: it has not answered in time, or cannot be reached.
        """
        from profwin.ray.recorder import begin

        self._token, self._recorded, self._died = os.urandom(8).hex(), False, None
        order = {
            **self._order, "step": metadata["step"], "name": metadata["name"], "version": metadata["weight_version"],
        }  # fmt: skip
        try:
            answer = self._call(begin, self._limit(_START), order)
        except import_module("ray.exceptions").ActorDiedError as error:
            raise EngineRefusedError(self.name, f"the actor has died: {_line(error)}") from error
        except ModuleNotFoundError as error:
            raise EngineRefusedError(self.name, f"profwin cannot be imported in its process: {error}") from error
        if not answer["recorded"]:
            problem = f"{answer['reason']}: {answer['detail']}"
            raise EngineRefusedError(self.name, problem, foreign=answer["reason"] == "foreign")
        self._recorded = True

    def stop(self) -> list[str]:
        """Have the actor's process close the window. An actor that has died meanwhile is a finding.

        Raises:
            Exception: it has not answered in time, or says that it failed.
        """
        from profwin.ray.recorder import end

        exceptions = import_module("ray.exceptions")
        deadline = time.monotonic() + self._limit(_STOP)
        while True:
            try:
                answer = self._call(end, max(0.0, deadline - time.monotonic()))
                break
            except exceptions.ActorDiedError as error:
                self._dead(_line(error))
                return []
            except exceptions.ActorUnavailableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_AGAIN)  # it is being started again, or the network is
        if not answer["known"] and self._recorded:
            self._dead("it has been started again since")
        if answer["detail"]:
            raise RuntimeError(answer["detail"])
        return []

    def export(self, directory: str, prefix: str) -> list[str]:  # noqa: ARG002  # see `start`
        """Return nothing: the actor's own process writes its traces and lists them.

        Raises:
            EngineError: it died while it recorded.
        """
        if self._died is not None:
            raise EngineError(self.name, "stop", self._died)
        return []

    def _dead(self, why: str) -> None:
        from profwin.configuration import current

        if not self._recorded:
            return
        self._died = f"it died while it recorded ({why})"
        session = current()
        if session is not None:
            session.finding("engine-died", f"{self.name}: {self._died}")

    def _limit(self, least: float) -> float:
        if self._timeout is not None:
            return self._timeout
        from profwin.configuration import current

        session = current()
        return least + (0.0 if session is None else session.settings.wait_budget)

    def _call(self, work: Callable[..., dict[str, Any]], seconds: float, *more: Any) -> dict[str, Any]:
        from concurrent.futures import TimeoutError as Late

        try:
            answer: dict[str, Any] = self._handle.__ray_call__.remote(work, self._token, *more).future().result(seconds)
        except (Late, TimeoutError):
            raise TimeoutError(f"it has not answered within {seconds:.3g} s") from None
        return answer


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
            for a start and 600 for a stop.
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
    if not given or any(given.count(handle) > 1 for handle in given):
        raise SettingError("actors", handles, "one or several handles, each once")
    order = {
        "start": start, "stop": stop, "revocable": bool(revocable), "max_seconds": checked_seconds(max_seconds),
        "devices": None if devices is None else (devices,) if isinstance(devices, str) else tuple(devices),
    }  # fmt: skip
    return [ActorEngine(handle, order, checked_seconds(timeout, "timeout")) for handle in given]


def _line(error: BaseException) -> str:
    """Return what Ray says of a death, in one line."""
    return " ".join(str(error).split())[:300]
