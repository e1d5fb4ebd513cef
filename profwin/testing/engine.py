"""An engine that generates nothing and notes when it is told to record."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from profwin.testing.fault import Faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Call", "RecordingEngine"]


@dataclass(frozen=True)
class Call:
    """One thing that an engine was told, or did.

    Attributes:
        what: ``start`` and ``stop`` when it is told, ``started`` and ``stopped`` when it has done so, ``failed`` when
            it raised instead.
        name, step: of the window, as the engine knows them from the start.
        thread: identifier of the thread.
        time: nanoseconds, as in journals.
    """

    what: str
    name: str | None
    step: int | None
    thread: int
    time: int


class RecordingEngine(Faults):
    """An engine for ``rollout_window(engine=...)``, with the manners of real ones.

    A stop that fails leaves it recording, as real workers do; a second start is refused, as vLLM does with its answer
    409. :meth:`fail` and :meth:`delay` take the actions ``start`` and ``stop``: ``delay("stop", event)`` confirms the
    stop when the test sets the event, ``fail("stop")`` never does.

    Args:
        devices: names of the devices that it records on; None where it does not say.
        revocable: whether ``stop_profile`` may be called from another thread at any time.
        asynchronous: whether its two methods are coroutine functions.
        process_ids: the processes that record.
        refuse_second_start: whether a start while it records raises; else it counts as done.

    Attributes:
        calls: everything it was told, in order.
        recording: whether it records, as far as it knows itself.
    """

    def __init__(
        self,
        devices: str | Iterable[str] | None = None,
        *,
        revocable: bool = False,
        asynchronous: bool = False,
        process_ids: Iterable[int] = (),
        refuse_second_start: bool = True,
    ) -> None:
        super().__init__("start", "stop")
        self.devices = (devices,) if isinstance(devices, str) else None if devices is None else tuple(devices)
        self.revocable, self.process_ids = revocable, tuple(process_ids)
        self.refuse_second_start = refuse_second_start
        self.calls: list[Call] = []
        self.recording = False
        self._window: tuple[str | None, int | None] = (None, None)
        if asynchronous:
            self.__dict__.update(start_profile=self._start_later, stop_profile=self._stop_later)

    @property
    def starts(self) -> int:
        """How often it began to record."""
        return self._count("started")

    @property
    def stops(self) -> int:
        """How often it stopped recording."""
        return self._count("stopped")

    @property
    def order(self) -> list[str]:
        """What it was told and did, in order, as words alone."""
        return [call.what for call in self.calls]

    def start_profile(self, metadata: Mapping[str, object] | None = None, **_others: object) -> None:
        """Begin to record.

        Args:
            metadata: of the window; what else engines take is accepted.

        Raises:
            RuntimeError: it records already.
            BaseException: what it was told to raise.
        """
        self._told(metadata)
        self._try("start")
        self._started()

    def stop_profile(self) -> None:
        """Stop recording; returning confirms it. Stopping what does not record changes nothing.

        Raises:
            BaseException: what it was told to raise; it then goes on recording.
        """
        self._note("stop")
        self._try("stop")
        self._stopped()

    async def _start_later(self, metadata: Mapping[str, object] | None = None, **_others: object) -> None:
        self._told(metadata)
        try:
            await self.happen_later("start", self._window[0])
        except BaseException:
            self._note("failed")
            raise
        self._started()

    async def _stop_later(self) -> None:
        self._note("stop")
        try:
            await self.happen_later("stop", self._window[0])
        except BaseException:
            self._note("failed")
            raise
        self._stopped()

    def _told(self, metadata: Mapping[str, object] | None) -> None:
        told = metadata or {}
        name, step = told.get("name"), told.get("step")
        if self.recording and self.refuse_second_start:
            self._note("start")
            self._note("failed")
            raise RuntimeError("409: a profiling session is already active; stop it before starting another one")
        self._window = (name if isinstance(name, str) else None, step if isinstance(step, int) else None)
        self._note("start")

    def _try(self, action: str) -> None:
        try:
            self.happen(action, self._window[0])
        except BaseException:
            self._note("failed")
            raise

    def _started(self) -> None:
        self.recording = True
        self._note("started")

    def _stopped(self) -> None:
        if self.recording:
            self.recording = False
            self._note("stopped")

    def _note(self, what: str) -> None:
        self.calls.append(Call(what, *self._window, threading.get_ident(), time.monotonic_ns()))

    def _count(self, what: str) -> int:
        return sum(call.what == what for call in self.calls)
