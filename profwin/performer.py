"""The performer: does what a loop's state machine says, on this process's windows, steps and pauses."""

from __future__ import annotations

from contextlib import contextmanager

from profwin.loop import BeginStep, CloseWindow, EndStep, OpenWindow, Pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeAlias

    from profwin.loop import Action

    Task: TypeAlias = tuple[Action | str, int | None]  # an action, or what to release; the weight version in use
    Place: TypeAlias = tuple[object | None, Sequence[str] | None, str]  # engine, devices, name of the windows

__all__ = ["Performer"]


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
        self.leftovers: list[Task] = [(what, None) for what in (*places, "step", "pause")]

    def attempt(self, task: Task) -> BaseException | None:
        """Do a task; return what it raised, since the others must be done first, even on a Ctrl-C."""
        what, version = task
        try:
            if isinstance(what, str):
                self._release(what)
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
            if self._perform is not None and not isinstance(what, str):
                outcome: Any = self._perform(what)
                if hasattr(outcome, "__await__"):
                    await outcome
            elif isinstance(what, OpenWindow):
                await self._release_async(what.part)
                await self._window(what, version).aopen()
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

    def _act(self, action: Action, version: int | None) -> None:
        if isinstance(action, CloseWindow):
            self._release(action.part)
        elif isinstance(action, BeginStep):
            from profwin.step import training_step

            self._enter("step", training_step(action.step, weight_version=version))
        elif isinstance(action, Pause):
            from profwin.pause import paused

            self._enter("pause", paused())
        else:
            self._release("step" if isinstance(action, EndStep) else "pause")

    def _enter(self, what: str, block: AbstractContextManager[object]) -> None:
        self._release(what)
        block.__enter__()
        self._held[what] = _Block(block)

    def _release(self, what: str) -> None:
        with self._releasing(what) as held:
            if held is not None:
                held.close()

    async def _release_async(self, what: str) -> None:
        with self._releasing(what) as held:
            if held is not None:
                await held.aclose()

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
        self.close()
