"""The performer: does what a loop's state machine says, on this process's windows, steps and pauses."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from profwin.loop import BeginStep, CloseWindow, EndStep, OpenWindow, Pause
from profwin.switch import SWITCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    from profwin.loop import Action
    from profwin.step import TrainingStep
    from profwin.transfer import Transfer

    Place: TypeAlias = tuple[object | None, Sequence[str] | None, str]  # engine, devices, name of the windows

__all__ = ["Performer", "SyncBegins", "SyncEnds"]


@dataclass(frozen=True)
class SyncBegins:
    """New weights are on their way to the engines."""

    version: int


@dataclass(frozen=True)
class SyncEnds:
    """They have arrived; or an event says that they did not, or leaves it open."""

    failure: str | None


if TYPE_CHECKING:
    # An action, what a weight sync does, or what to release; the weight version in use.
    Task: TypeAlias = tuple[Action | SyncBegins | SyncEnds | str, int | None]


class Performer:
    """Performs actions; keeps what it opened until its closing has returned.

    Not for two threads or tasks at a time.

    Args:
        places: for each part, what `rollout_window` is given.
        perform: called with each action instead.

    Attributes:
        leftovers: tasks that release whatever is still held, to be added where a loop fails or ends.
    """

    def __init__(self, places: Mapping[str, Place], perform: Callable[[Action], object] | None) -> None:
        self._places, self._perform = places, perform
        self._held: dict[str, Any] = {}
        self._transfer: Transfer | None = None
        self.leftovers: list[Task] = [(what, None) for what in (*places, "step", "pause", "recording")]

    def attempt(self, task: Task) -> BaseException | None:
        """Do a task; return what it raised, since the others must be done first, even on a Ctrl-C."""
        what, version = task
        try:
            if isinstance(what, str):
                self._release(what)
            elif isinstance(what, (SyncBegins, SyncEnds)):
                self._sync(what)
            elif self._perform is not None:
                self._perform(what)
            elif isinstance(what, OpenWindow):
                self._release(what.part)
                self._window(what, version).open()
            else:
                self._act(what, version)
        except BaseException as error:  # noqa: BLE001  # as said above
            return error
        return None

    async def attempt_async(self, task: Task) -> BaseException | None:
        """Like :meth:`attempt`, without blocking the event loop while an engine starts or stops."""
        what, version = task
        try:
            if isinstance(what, (SyncBegins, SyncEnds)):
                self._sync(what)
            elif self._perform is not None and not isinstance(what, str):
                outcome: Any = self._perform(what)
                if hasattr(outcome, "__await__"):
                    await outcome
            elif isinstance(what, OpenWindow):
                await self._release_async(what.part)
                await self._window(what, version).aopen()
            elif isinstance(what, BeginStep):
                await self._release_async("step")
                block = self._training(what, version)
                await block.__aenter__()
                self._held["step"] = _Block(block)
            elif isinstance(what, EndStep):
                await self._release_async("step")
            elif isinstance(what, (str, CloseWindow)):
                await self._release_async(what if isinstance(what, str) else what.part)
            else:
                self._act(what, version)
        except BaseException as error:  # noqa: BLE001  # likewise; a cancellation too
            return error
        return None

    def _window(self, action: OpenWindow, version: int | None) -> Any:
        from profwin.window import rollout_window

        engine, devices, name = self._places[action.part]
        window = rollout_window(action.step, engine=engine, devices=devices, name=name, weight_version=version)
        self._held[action.part] = window
        return window

    def _sync(self, what: SyncBegins | SyncEnds) -> None:
        """Write it to the journal; unless what is done with the actions is not profwin's."""
        from profwin.configuration import current
        from profwin.transfer import begin_transfer

        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            transfer.end(what.failure if isinstance(what, SyncEnds) else "weights_about_to_sync")
        session = current() if SWITCH.on and self._perform is None else None
        if isinstance(what, SyncBegins) and session is not None:
            places = list(self._places.values())
            sides = [(engine, devices) for engine, devices, _ in places]
            self._transfer = begin_transfer(session, what.version, places[0][2], "rollout", sides)

    def _act(self, action: Action, version: int | None) -> None:
        if isinstance(action, CloseWindow):
            self._release(action.part)
        elif isinstance(action, BeginStep):
            self._enter("step", self._training(action, version))
        elif isinstance(action, Pause):
            from profwin.pause import paused

            self._enter("pause", paused())
        else:
            self._release("step" if isinstance(action, EndStep) else "pause")

    def _training(self, action: BeginStep, version: int | None) -> TrainingStep:
        from profwin.step import training_step

        return training_step(action.step, weight_version=version)

    def _enter(self, what: str, block: AbstractContextManager[object]) -> None:
        self._release(what)
        block.__enter__()
        self._held[what] = _Block(block)

    def _release(self, what: str) -> None:
        if what == "recording":
            self._end_recording()
        with self._releasing(what) as held:
            if held is not None:
                held.close()

    async def _release_async(self, what: str) -> None:
        if what == "recording":
            self._end_recording()
        with self._releasing(what) as held:
            if held is not None:
                await held.aclose()

    def _end_recording(self) -> None:
        """End what was to go on into the next step: that does not come."""
        from profwin.configuration import current

        session = current() if SWITCH.on and self._perform is None else None
        if session is not None:
            session.position.end_recording()

    @contextmanager
    def _releasing(self, what: str) -> Iterator[Any]:
        held = self._held.pop(what, None)
        try:
            yield held
        except Exception:
            raise
        except BaseException:  # interrupted, so it may be open yet: tried again when the loop fails or ends
            if held is not None:
                self._held[what] = held
            raise


class _Block:
    """A context manager that was entered, to be closed like a window."""

    __slots__ = ("_block",)

    def __init__(self, block: AbstractContextManager[object]) -> None:
        self._block = block

    def close(self) -> None:
        self._block.__exit__(None, None, None)

    async def aclose(self) -> None:
        leave = getattr(self._block, "__aexit__", None)
        if leave is None:
            self.close()
        else:
            await leave(None, None, None)
