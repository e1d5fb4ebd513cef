"""Training steps: a process says which step of the loop it trains."""

from __future__ import annotations

from profwin.configuration import current
from profwin.passage import GUARD
from profwin.switch import SWITCH, compiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from profwin.position import Position, Trained
    from profwin.session import Session

__all__ = ["TrainingStep", "checked_step", "training_step"]


class TrainingStep:
    """What :func:`training_step` returns."""

    __slots__ = ("_before", "_generated_with", "_session", "_step", "_version")

    def __init__(self, step: int, version: int | None, generated_with: tuple[int, ...]) -> None:
        self._step, self._version, self._generated_with = step, version, generated_with
        self._session: Session | None = None
        self._before: Trained | None = None

    def begin(self) -> Position | None:
        """Begin the step, without waiting until other hosts know it; return what does so."""
        if not SWITCH.on:
            return None
        with GUARD:
            self._session = session = current()
            if session is not None:
                self._before = session.position.begin_training(self._step, self._version, self._generated_with)
                return session.position
        return None

    def end(self) -> Position | None:
        """End the step, likewise; nothing where it has not begun."""
        session, self._session = self._session, None
        if session is not None:
            with GUARD:
                session.position.end_training(self._step, self._before)
                return session.position
        return None

    def __enter__(self) -> None:
        if not SWITCH.on or compiling():
            return
        position = self.begin()
        try:
            if position is not None:
                position.settle()
        except BaseException:  # Ctrl-C
            self.end()
            raise

    def __exit__(self, *exception: object) -> None:
        position = self.end()
        if position is not None:
            position.settle()

    async def __aenter__(self) -> None:
        position = self.begin()
        try:
            if position is not None:
                await position.settled()
        except BaseException:  # it was cancelled
            if position is not None and self.end():
                await position.settled(wait=False)
            raise

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        position = self.end()
        if position is not None:
            # A coroutine that is being closed must not wait for anything any more.
            await position.settled(wait=not isinstance(error, GeneratorExit))


def training_step(
    step: int, *, weight_version: int | None = None, generated_with: int | Iterable[int] | None = None
) -> TrainingStep:
    """Say, for a block, ``with`` or ``async with``, which step this process trains.

    Needed where the loop runs ahead, or where no window of this process says it.
    Leaving the block ends the step: a recording made with ``collect="step"`` ends there. All threads of the process are
    in the same step. Other processes of the run on this host, that do not say so themselves, follow it, and those on
    other hosts of a Ray cluster with :func:`profwin.ray.agents`: entering and leaving then wait until these know it.

    Args:
        step: the loop's step, from 0.
        weight_version: version of the weights that are trained, for the traces and the manifest.
        generated_with: version, or versions, of the weights that generated the samples: the manifest's staleness of the
            step is counted from the oldest. Default: what the step's windows say.

    Raises:
        SettingError: the step or a version is not a whole number from 0.
    """
    if generated_with is None:
        versions: tuple[int, ...] = ()
    else:
        given = generated_with if hasattr(generated_with, "__iter__") else (generated_with,)
        versions = tuple(sorted({checked_step(version, "generated_with") for version in given}))
    if weight_version is not None:
        weight_version = checked_step(weight_version, "weight_version")
    return TrainingStep(checked_step(step), weight_version, versions)


def checked_seconds(value: object, setting: str = "max_seconds") -> float | None:
    """Return a time limit in seconds, or None for none.

    Args:
        value: what was given.
        setting: its name.

    Raises:
        SettingError: it is not a number above 0.
    """
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    from profwin.errors import SettingError

    raise SettingError(setting, value, "seconds, more than 0")


def checked_step(step: object, setting: str = "step") -> int:
    """Return a step, or what counts like one, as an int.

    Raises:
        SettingError: it is not a whole number from 0.
    """
    from operator import index

    try:
        number = index(step)  # type: ignore[arg-type]  # its TypeError is the answer
    except TypeError:
        number = -1
    if number < 0 or isinstance(step, bool):
        from profwin.errors import SettingError

        raise SettingError(setting, step, "a whole number from 0")
    return number
