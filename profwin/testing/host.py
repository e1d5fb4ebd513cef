"""A pretend host for one test: devices by name, profwin set up in this process, and the record of all processes."""

from __future__ import annotations

import os

from profwin.testing.backend import Control, control
from profwin.testing.engine import RecordingEngine
from profwin.testing.reading import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from profwin.testing.record import Interval, Record

__all__ = ["Host"]

_FIRST = "pretend:0"


class Host:
    """Gives a loop pretend devices, and says afterwards what collected where.

    As a context manager: entering sets profwin up in this process for every step, with the backend ``testing``, on the
    device ``pretend:0``, with locks and output of its own. It ends a session that is on, and removes all
    ``PROFWIN_*`` variables; a loop that calls :func:`profwin.configure` itself keeps the host's backend, device, output
    and locks where it does not say otherwise. Leaving shuts profwin down and restores the variables.

    Args:
        directory: for its files; made if need be.

    Attributes:
        output: where runs go.
        lock_dir: where device locks are.
        backend: what the ``testing`` backend of this process did, and how to make it fail.
        may_leave_open: whether leaving the host with an open window or stage is fine, as when a process was killed.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.output = os.path.join(os.path.abspath(directory), "output")
        self.lock_dir = os.path.join(os.path.abspath(directory), "locks")
        self.backend: Control = control
        self.may_leave_open = False
        self._engines: list[RecordingEngine] = []
        self._variables: dict[str, str] = {}

    def configure(self, **settings: Any) -> None:
        """Set profwin up anew in this process, and begin a new run; what was recorded before stays in the record.

        Args:
            settings: as for :func:`profwin.configure`; those not given are ``steps="all"``, and the host's backend,
                output and locks, and the device ``pretend:0``. ``strict=True`` raises where a window or stage cannot be
                recorded.

        Raises:
            SettingError: a setting is wrong.
        """
        import profwin

        defaults = {"steps": "all", "backend": "testing", "devices": _FIRST}
        profwin.configure(**{**defaults, "output": self.output, "lock_dir": self.lock_dir, **settings})

    def device(self, name: str = "0") -> str:
        """Return a pretend device's name, for ``devices=`` of a window, a stage, an engine or of the settings."""
        return f"pretend:{name}"

    def devices(self, count: int) -> tuple[str, ...]:
        """Return the names of so many pretend devices; the first is the one that the host sets up."""
        return tuple(self.device(str(number)) for number in range(count))

    def engine(self, *devices: str, **options: Any) -> RecordingEngine:
        """Return an engine that records on these devices; its delays end with the host.

        Args:
            devices: their names; none: it does not say.
            options: as for :class:`RecordingEngine`.
        """
        engine = RecordingEngine(devices or None, **options)
        self._engines.append(engine)
        return engine

    def environment(self, **settings: str | int | Iterable[str]) -> dict[str, str]:
        """Return the variables with which a child process of the loop belongs to the run; its journal is in the record.

        Args:
            settings: the child's own, such as ``devices``, ``role`` or ``rank``.

        Raises:
            SettingError: the step selection is a callable, which cannot travel.
        """
        import profwin

        found = profwin.environment()
        for name, value in settings.items():
            if isinstance(value, (str, int)):
                text = str(int(value)) if isinstance(value, int) else value
            else:
                text = ",".join(value)
            found[f"PROFWIN_{name.upper()}"] = text
        return found

    @property
    def record(self) -> Record:
        """What happened up to now, in all processes and runs of this host."""
        return read_record(self.output)

    def __enter__(self) -> Host:
        import profwin

        profwin.shutdown()
        self._variables = _take_variables()
        self.backend.reset()
        os.makedirs(self.lock_dir, exist_ok=True)
        # For a loop that configures itself. Without steps, a child that inherits them stays off, as it would elsewhere.
        os.environ.update(
            PROFWIN_BACKEND="testing",
            PROFWIN_DEVICES=_FIRST,
            PROFWIN_OUTPUT=self.output,
            PROFWIN_LOCK_DIR=self.lock_dir,
        )
        try:
            self.configure()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        for engine in self._engines:
            engine.heal()
        self.backend.heal()
        try:
            record = self.record if error is None and not self.may_leave_open else None
        finally:
            self._restore()
        if record is not None:
            _refuse_open(record, [each for each in (*record.windows, *record.stages) if each.left is None])

    def _restore(self) -> None:
        import profwin
        from profwin.switch import SWITCH

        try:
            profwin.shutdown()
        finally:
            _take_variables()
            os.environ.update(self._variables)
            self.backend.reset()
            SWITCH.on = bool(os.environ.get("PROFWIN_STEPS"))  # as at import


def _take_variables() -> dict[str, str]:
    """Remove this process's variables of profwin's, and return them."""
    return {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PROFWIN_")}


def _refuse_open(record: Record, left: list[Interval]) -> None:
    __tracebackhide__ = True
    if left:
        from profwin.testing.timeline import draw

        lines = [f"  - {each}" for each in left]
        shown = draw(record, left[0].entered)
        raise AssertionError("\n".join(["left open at the end of the test:", *lines, "", shown]))
