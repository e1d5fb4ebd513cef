"""Training steps: a process says which step of the loop it trains."""

from __future__ import annotations

from profwin.configuration import current
from profwin.switch import SWITCH, compiling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.session import Session

__all__ = ["TrainingStep", "checked_step", "training_step"]


class TrainingStep:
    """What :func:`training_step` returns."""

    __slots__ = ("_before", "_session", "_step", "_version")

    def __init__(self, step: int, version: int | None) -> None:
        self._step, self._version = step, version
        self._session: Session | None = None
        self._before: int | None = None

    def __enter__(self) -> None:
        if SWITCH.on and not compiling():
            self._session = session = current()
            if session is not None:
                self._before = session.position.begin_training(self._step, self._version)

    def __exit__(self, *exception: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.position.end_training(self._step, self._before)


def training_step(step: int, *, weight_version: int | None = None) -> TrainingStep:
    """Say, for a block, which step this process trains.

    Needed where the loop runs ahead, or where no window of this process says it.
    Leaving the block ends the step: a recording made with ``collect="step"`` ends there. All threads of the process are
    in the same step. Other processes of the run on this host, that do not say so themselves, follow it.

    Args:
        step: the loop's step, from 0.
        weight_version: version of the weights that are trained, for the traces.

    Raises:
        SettingError: the step is not a whole number from 0.
    """
    return TrainingStep(checked_step(step), weight_version)


def checked_step(step: object) -> int:
    """Return a step as an int.

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

        raise SettingError("step", step, "a whole number from 0")
    return number
