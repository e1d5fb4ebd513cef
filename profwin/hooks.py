"""`Loop`: what a trainer's hooks call, so that windows and steps follow from what the loop does."""

from __future__ import annotations

import threading
from functools import partial

from profwin.errors import ProfwinError
from profwin.loop import BeginStep, CloseWindow, EndStep, LoopMachine, OpenWindow, Pause, Resume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from typing_extensions import Self

    from profwin.loop import Action

__all__ = ["Loop"]


class Loop:
    """A post-training loop that tells profwin where it is; it opens and closes windows, steps and pauses.

    ::

        with Loop("sync", engine=engine) as loop:
            for step in range(1, 101):
                loop.step_begins(step)
                batch = engine.generate(prompts)
                loop.samples_in_hand()
                update_actor(batch)
                loop.step_ends()

    Events may come in any order, twice, or not at all: no window is opened twice or left open. In each mode a
    window opens when a step begins, and again at each `devices_to_generation` of that step. It closes

    - "sync": when samples are in hand (the engine is idle then);
    - "colocate": when the devices go to training (until then unfinished requests are in flight).

    As ``with``, an exception counts as `loop_fails`, the end as `loop_ends`; the body's exception passes
    unchanged. A failure of one action never keeps another from being done. Outside ``strict`` events raise
    nothing but ValueError for a wrong step, and StateError; with ``strict``, what windows raise then. Events
    may come from different threads, one after the other: each waits for the one before.

    Args:
        mode: "sync" or "colocate".
        engine: what records the rollout if that is another process; as in `rollout_window`.
        devices: the devices of the rollout; as in `rollout_window`.
        name: the name of the windows.
        perform: called with each action (`profwin.loop`) instead of acting here; for adapters.

    Raises:
        ValueError: the mode is unknown, or comes later.
    """

    def __init__(
        self,
        mode: str,
        *,
        engine: object | None = None,
        devices: Sequence[str] | None = None,
        name: str = "rollout",
        perform: Callable[[Action], None] | None = None,
    ) -> None:
        self._machine = LoopMachine(mode)
        self._hands = _Hands(engine, devices, name)
        self._perform = perform or self._hands
        self._lock = threading.RLock()

    def step_begins(self, step: int, *, weight_version: int | None = None) -> None:
        """Say that a step begins and its devices generate; ends a step that is under way.

        For the step under way: that it generates once more, as when it is retried.

        Args:
            step: the loop's step, from 0.
            weight_version: version of the weights that generate it, for the traces.

        Raises:
            ValueError: `step` is no integer of 0 or more; nothing changed.
        """
        self._hands.version = weight_version
        self._take("step_begins", step)

    def samples_in_hand(self) -> None:
        """Say that the samples are in hand and, in "sync", that the engine is idle or asleep."""
        self._take("samples_in_hand")

    def devices_to_training(self) -> None:
        """Say that the devices go to training: no request is in flight any more."""
        self._take("devices_to_training")

    def devices_to_generation(self) -> None:
        """Say that more is generated within this step (dynamic sampling, several parameter syncs).

        Not for an engine that is only woken to take new weights: that would record a window in which nothing
        is generated. Outside a step it means nothing.
        """
        self._take("devices_to_generation")

    def validation_begins(self) -> None:
        """Say that a validation begins: until its end nothing is recorded."""
        self._take("validation_begins")

    def validation_ends(self) -> None:
        """Say that the validation is over; so do the begin of a step and the end of the loop."""
        self._take("validation_ends")

    def step_ends(self) -> None:
        """Say that the step is over; a window that is still open closes."""
        self._take("step_ends")

    def loop_fails(self) -> None:
        """Say that an exception ends the loop, or a step: what is open closes. `step_begins` may follow."""
        self._take("loop_fails")

    def loop_ends(self) -> None:
        """Say that the loop is over: whatever is open closes. `step_begins` may follow."""
        self._take("loop_ends")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.loop_ends()
            return
        try:
            self.loop_fails()
        except ProfwinError as other:
            _log("loop_fails", other)

    def _take(self, event: str, step: int | None = None) -> None:
        with self._lock:
            tasks: list[Callable[[], None]] = [
                partial(self._perform, action) for action in self._machine.feed(event, step)
            ]
            if event in ("loop_fails", "loop_ends"):  # whatever an interrupted closing left behind
                tasks += [partial(self._hands.release, what) for what in ("window", "step", "pause")]
            errors = [error for task in tasks if (error := _failure(task)) is not None]
        # What passes: a Ctrl-C first, then what profwin raises on purpose (misuse; more only with strict).
        passing = [error for error in errors if not isinstance(error, Exception)]
        passing += [error for error in errors if isinstance(error, ProfwinError)]
        for error in errors:
            if error not in passing[:1]:
                _log(event, error)
        if passing:
            raise passing[0]


class _Hands:
    """Performs actions on this process; keeps what it opened until its closing has returned."""

    def __init__(self, engine: object | None, devices: Sequence[str] | None, name: str) -> None:
        self._engine, self._devices, self._name = engine, devices, name
        self.version: int | None = None
        self._held: dict[str, Callable[[], object]] = {}

    def __call__(self, action: Action) -> None:
        if isinstance(action, OpenWindow):
            from profwin.window import rollout_window

            self.release("window")
            window = rollout_window(
                action.step,
                engine=self._engine,
                devices=self._devices,
                name=self._name,
                weight_version=self.version,
            )
            self._held["window"] = window.close
            window.open()
        elif isinstance(action, BeginStep):
            from profwin.step import training_step

            self._enter("step", training_step(action.step, weight_version=self.version))
        elif isinstance(action, Pause):
            from profwin.pause import paused

            self._enter("pause", paused())
        else:
            self.release({CloseWindow: "window", EndStep: "step", Resume: "pause"}[type(action)])

    def _enter(self, what: str, block: AbstractContextManager[object]) -> None:
        self.release(what)
        block.__enter__()
        self._held[what] = partial(block.__exit__, None, None, None)

    def release(self, what: str) -> None:
        """Close `what` if it is held; it is no longer held then, unless the closing was interrupted."""
        close = self._held.pop(what, None)
        if close is None:
            return
        try:
            close()
        except Exception:
            raise
        except BaseException:  # interrupted, so it may be open yet: tried again when the loop fails or ends
            self._held[what] = close
            raise


def _failure(task: Callable[[], None]) -> BaseException | None:
    try:
        task()
    except BaseException as error:  # noqa: BLE001  # the other actions must be done first, even on a Ctrl-C
        return error
    return None


def _log(event: str, error: BaseException) -> None:
    import logging

    logging.getLogger("profwin").warning("%s: part of it failed with %r; the loop goes on", event, error)
