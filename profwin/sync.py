"""Weight syncs: where new weights reach the engines, one window ends and the next begins."""

from __future__ import annotations

import threading
from contextlib import contextmanager

from profwin.configuration import current
from profwin.errors import SettingError, StateError
from profwin.gate import Gate
from profwin.step import checked_step, training_step
from profwin.switch import SWITCH, compiling
from profwin.transfer import begin_transfer
from profwin.window import rollout_window
from profwin.wrap import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    from profwin.session import Session
    from profwin.step import TrainingStep
    from profwin.transfer import Transfer
    from profwin.window import Window

    Target = TypeVar("Target", bound=Callable[..., Any])

__all__ = ["Boundary", "WeightSync", "weight_sync"]


class Boundary:
    """What a session keeps between the syncs of one name.

    Attributes:
        gate: held while something is closed or opened, never during a body.
        training: what says which step is trained, where this process only trains.
        window: that which the last sync opened, until it is closed.
    """

    __slots__ = ("_inside", "_mutex", "_version", "gate", "training", "window")

    def __init__(self) -> None:
        self.gate = Gate()
        self.training: TrainingStep | None = None
        self.window: Window | None = None
        self._mutex = threading.Lock()
        self._inside = 0
        self._version: int | None = None

    def enter(self) -> None:
        """Let a body begin, or what comes right before it."""
        with self._mutex:
            if not self._inside:
                self._version = None
            self._inside += 1

    def leave(self, version: int | None = None) -> None:
        """Let a body end that brought a version; or None where it failed."""
        with self._mutex:
            self._inside -= 1
            if version is not None:
                self._version = version if self._version is None else max(version, self._version)

    def ready(self) -> int | None:
        """Return the version to go on with, once: the highest that was brought, when no body runs any more."""
        with self._mutex:
            if self._inside:
                return None
            version, self._version = self._version, None
            return version

    def forget(self, window: Window | None) -> None:
        """Take note that a window is closed; another one may have been opened meanwhile."""
        if self.window is window:
            self.window = None


class WeightSync:
    """What :func:`weight_sync` returns: a context manager, sync and async, and a decorator."""

    __slots__ = ("_devices", "_engine", "_entered", "_name", "_transfer", "_version", "_window")

    def __init__(
        self,
        version: int | Callable[..., int],
        engine: object,
        devices: tuple[str, ...] | None,
        name: str,
        window: bool,
    ) -> None:
        self._version, self._engine, self._devices, self._name, self._window = version, engine, devices, name, window
        self._entered: tuple[Session, Boundary] | None = None
        self._transfer: Transfer | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return WeightSync, (self._version, *self._rest())

    def __enter__(self) -> WeightSync:
        if SWITCH.on and not compiling():
            with self._entering() as entered:
                if entered is not None:
                    with entered[1].gate.lock, self._closing(entered[1]) as window:
                        if window is not None:
                            window.close()
                    entered[0].position.settle()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._entered is not None:
            entered = self._leave(error)
            if entered is not None:
                with entered[1].gate.lock:
                    window = self._next(entered[1])
                    if window is not None:
                        window.open()
                entered[0].position.settle()

    async def __aenter__(self) -> WeightSync:
        if SWITCH.on:
            with self._entering() as entered:
                if entered is not None:
                    async with entered[1].gate:
                        with self._closing(entered[1]) as window:
                            if window is not None:
                                await window.aclose()
                    await entered[0].position.settled()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._entered is not None:
            entered = self._leave(error)
            if entered is not None:
                async with entered[1].gate:
                    window = self._next(entered[1])
                    if window is not None:
                        await window.aopen()
                        if entered[1].window is not window:
                            # A plain sync in this thread came in between; it could not wait for this one.
                            await window.aclose()
                await entered[0].position.settled()

    def __call__(self, target: Target) -> Target:
        """Decorate a callable of any kind: each call is a weight sync."""
        wrapped: Target = wrap(target, self, always=True)
        return wrapped

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> WeightSync:
        """Return the weight sync of one call."""
        version = self._version(*args, **kwargs) if callable(self._version) else self._version
        return WeightSync(checked_step(version, "version"), *self._rest())

    aenter = enter

    def _rest(self) -> tuple[Any, ...]:
        return self._engine, self._devices, self._name, self._window

    @contextmanager
    def _entering(self) -> Iterator[tuple[Session, Boundary] | None]:
        if self._entered is not None:
            raise StateError(f"weight sync of version {self._version} is already entered", "call weight_sync() anew")
        if callable(self._version):
            raise SettingError("version", self._version, "a number here: a callable is for the decorator")
        session = current()
        if session is None:
            yield None
            return
        boundary = session.syncs.setdefault((self._name, self._window), Boundary())
        boundary.enter()
        self._entered = session, boundary
        try:
            yield self._entered
            side, places = "rollout" if self._window else "training", [(self._engine, self._devices)]
            self._transfer = begin_transfer(session, self._version, self._name, side, places)
        except BaseException:
            self._entered = None
            boundary.leave()
            raise

    @contextmanager
    def _closing(self, boundary: Boundary) -> Iterator[Window | None]:
        window = boundary.window
        try:
            yield window
        except BaseException as error:
            # Not where it was interrupted: it may be open yet, and the next sync tries again.
            if isinstance(error, Exception):
                boundary.forget(window)
            raise
        boundary.forget(window)
        training, boundary.training = boundary.training, None
        if training is not None:
            training.end()

    def _leave(self, error: BaseException | None) -> tuple[Session, Boundary] | None:
        """Let the body end; return where something is to be opened now, if this was no failure."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.end(None if error is None else type(error).__name__)
        entered, self._entered = self._entered, None
        if entered is None:
            return None
        session, boundary = entered
        boundary.leave(self._version if error is None and not callable(self._version) else None)
        # Another session, or that of a forked child, has other syncs.
        known = session.syncs.get((self._name, self._window)) is boundary
        return entered if error is None and known and current() is session else None

    def _next(self, boundary: Boundary) -> Window | None:
        """Begin what the new version is for: return the window that is to be opened, or say which step is trained."""
        version = boundary.ready()
        if version is None:
            return None
        if not self._window:
            boundary.training = training_step(version + 1, weight_version=version)
            boundary.training.begin()
            return None
        boundary.window = rollout_window(
            version + 1, engine=self._engine, devices=self._devices, name=self._name, weight_version=version
        )
        return boundary.window


def weight_sync(
    version: int | Callable[..., int],
    engine: object = None,
    *,
    devices: str | Iterable[str] | None = None,
    name: str = "rollout",
    window: bool = True,
) -> WeightSync:
    """Mark a weight sync of a loop in which rollout never stops: ``with``, ``async with``, or decorator.

    ::

        with weight_sync(version, engine):
            engine.load_weights(...)

    A step is what is generated and trained between two weight syncs (verl's pull request 6461): entering the sync of
    version `n` closes the rollout window of step `n`, which is confirmed then, and leaving it opens that of step
    `n + 1`, with this weight version, if the step is selected. The first sync, with which the engine gets the initial
    weights, is ``weight_sync(0)`` and begins step 1; a resumed run passes the restored version. The end of the run
    closes what is open.

    Every process calls it around its own part of the sync, no matter how early or late the others do: the rollout side
    with its engine, the training side with ``window=False``. A version that comes again, which is a retried sync,
    closes its window and opens another one of the same step; a lower one, which is a restart, opens its own step. If
    the body raises, nothing is opened. An engine that fails to stop, or never confirms it, keeps no body from running
    (outside ``strict``), and the next window tries again.

    Syncs of one name may come from several threads and tasks: their windows are closed and opened one after the other,
    bodies run as they come, and the last one that is left opens the window of the highest version that they brought.
    Beside steps that are recorded, the journal has when each body began and ended.
    In an event loop ``async with`` does not block while an engine starts or stops. Off, it keeps no state.

    Args:
        version: version of the weights that are synced, from 0; as a decorator also a callable that is given the call's
            arguments and returns it.
        engine: what generates, if that is another process; as in :func:`rollout_window`.
        devices: devices that are recorded, where the engine does not say; as in :func:`profwin.configure`.
        name: of the windows. Engines that are synced apart from each other need names of their own.
        window: False where this process generates nothing and only trains. It then has no window: entering ends the
            step that it trains, and leaving says that it trains step ``version + 1``, like :func:`training_step`, until
            its next sync.

    Raises:
        SettingError: the version is not a whole number from 0, the engine lacks a method, or there is an engine or a
            device for a process that only trains.
        StateError: the object is entered a second time before it is left.
        DeviceBusyError, BackendError, EngineError, RegistryError: under ``strict``, if a window cannot be recorded, or
            is lost; on entering, the body did not run.
    """
    if not callable(version):
        version = checked_step(version, "version")
    if not window and (engine is not None or devices is not None):
        raise SettingError("window", window, "True where an engine or devices are given")
    if isinstance(devices, str):
        devices = (devices,)
    return WeightSync(version, engine, None if devices is None else tuple(devices), name, window)
