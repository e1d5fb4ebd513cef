"""`Loop`: what a trainer's hooks call, so that windows and steps follow from what the loop does."""

from __future__ import annotations

from collections import deque

from profwin.errors import ProfwinError, SettingError
from profwin.gate import Gate
from profwin.loop import LoopMachine, parts_of
from profwin.performer import Performer, SyncBegins, SyncEnds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from profwin.loop import Action
    from profwin.performer import Task

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

    Events may come in any order, twice, or not at all: no window is opened twice or left open.

    "sync" and "colocate" have one part of devices, which generates and trains in turn. Its window opens when a step
    begins, and again at each `devices_to_generation` of that step. It closes

    - "sync": when samples are in hand (the engine is idle then);
    - "colocate": when the devices go to training (until then unfinished requests are in flight).

    "separate" and "fully_async" have two parts, each with windows of its own: "standalone" devices only generate, and
    "hybrid" devices train and are lent to generation now and then. The standalone window is open for as long as a step
    is under way; the hybrid one while a step is under way and the devices are lent, from `devices_to_generation` to
    `devices_to_training`, which may come in a step or between two. The loop begins with nothing lent. A step lasts

    - "separate": from `step_begins` to `step_ends`; weight syncs within it change no window;
    - "fully_async": from `weights_synced` of one version to `weights_about_to_sync` of the next; step `n` is what is
      generated and trained up to the sync of version `n`.

    As ``with`` or ``async with``, an exception counts as `loop_fails`, the end as `loop_ends`; the body's exception
    passes unchanged. A failure of one action, or in one part, never keeps another from being done. Outside ``strict``
    events raise nothing but ValueError for a wrong step or version, and StateError; with ``strict``, what windows raise
    then. Events may come from different threads, one after the other: each waits for the one before. In an event loop,
    `tell` says the same without blocking it.

    Args:
        mode: "sync", "colocate", "separate" or "fully_async".
        engine: what records the rollout if that is another process; as in `rollout_window`. With standalone devices, it
            is theirs.
        devices: the devices of the rollout; as in `rollout_window`. With standalone devices, it is these.
        hybrid_engine: for "separate" and "fully_async": what records on the hybrid devices. There is no hybrid part
            where neither this nor `hybrid_devices` is given, and no standalone one where only these are.
        hybrid_devices: likewise: the devices that also train.
        name: the name of the windows; those of hybrid devices beside standalone ones end in ``_hybrid``.
        perform: called with each action (`profwin.loop`) instead of acting here; for adapters. What it returns is
            awaited by `tell`, where it can be. The loop then has all parts of its mode, if no devices or engines
            are given.

    Raises:
        ValueError: the mode is unknown, or has no hybrid devices beside others.
    """

    def __init__(
        self,
        mode: str,
        *,
        engine: object | None = None,
        devices: Sequence[str] | None = None,
        hybrid_engine: object | None = None,
        hybrid_devices: Sequence[str] | None = None,
        name: str = "rollout",
        perform: Callable[[Action], object] | None = None,
    ) -> None:
        places = [(engine, devices, name), (hybrid_engine, hybrid_devices, f"{name}_hybrid")]
        known = parts_of(mode)
        if len(known) == 1 and places.pop()[:2] != (None, None):
            raise SettingError("mode", mode, "separate or fully_async where hybrid_engine or hybrid_devices are given")
        of_parts = dict(zip(known, places, strict=True))
        given = [part for part, place in of_parts.items() if place[:2] != (None, None)]
        self._machine = LoopMachine(mode, given or (known if perform is not None else known[:1]))
        self._performer = Performer({part: of_parts[part] for part in self._machine.parts}, perform)
        self._gate = Gate()
        self._pending: deque[Task] = deque()
        self._version: int | None = None

    def step_begins(self, step: int, *, weight_version: int | None = None) -> None:
        """Say that a step begins and its devices generate; ends a step that is under way.

        For the step under way: that it generates once more, as when it is retried. In "fully_async" it counts as
        `weights_synced` of the version before.

        Args:
            step: the loop's step, from 0.
            weight_version: version of the weights that generate it, for the traces; default: the one synced last.

        Raises:
            ValueError: `step` is no integer of 0 or more; nothing changed.
        """
        self._take("step_begins", step, weight_version)

    def samples_in_hand(self) -> None:
        """Say that the samples are in hand and, in "sync", that the engine is idle or asleep."""
        self._take("samples_in_hand")

    def devices_to_training(self) -> None:
        """Say that the devices go to training: no request is in flight any more. Where some are hybrid: those alone."""
        self._take("devices_to_training")

    def devices_to_generation(self) -> None:
        """Say that more is generated within this step (dynamic sampling, several parameter syncs), or on lent devices.

        Not for an engine that is only woken to take new weights: that would record a window in which nothing
        is generated. In "sync" and "colocate" it means nothing outside of a step; hybrid devices that are lent then
        have their window from the next step's begin on.
        """
        self._take("devices_to_generation")

    def weights_about_to_sync(self, version: int) -> None:
        """Say that weights of a version are about to reach the engines. In "fully_async" all windows and the step end.

        From here to `weights_synced` the journal has a weight sync.

        Args:
            version: of the new weights; where it is lower than the one in use this event is late and means nothing.

        Raises:
            ValueError: `version` is no integer of 0 or more; nothing changed.
        """
        self._take("weights_about_to_sync", version)

    def weights_synced(self, version: int) -> None:
        """Say that the engines have the weights of a version. In "fully_async" step ``version + 1`` begins.

        Windows that open from now on carry that version. The first sync, of the initial weights, is of version 0; a
        resumed run passes the restored one.

        Args:
            version: of the weights. In "fully_async" a lower one than that in use is a late answer and means nothing,
                until the loop fails or ends; the same one again, after `weights_about_to_sync`, is a retried sync.

        Raises:
            ValueError: `version` is no integer of 0 or more; nothing changed.
        """
        self._take("weights_synced", version)

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
        """Say that an exception ends the loop, or a step: what is open closes, nothing is lent. A step may follow."""
        self._take("loop_fails")

    def loop_ends(self) -> None:
        """Say that the loop is over: whatever is open closes, and nothing is lent. A step may follow."""
        self._take("loop_ends")

    async def tell(self, event: str, number: int | None = None, *, weight_version: int | None = None) -> None:
        """Say any event by its name, without blocking the event loop while engines start or stop.

        ::

            await loop.tell("weights_about_to_sync", version)

        It returns when all is done, so await each before the next: several at once come one after the other, in any
        order. A plain event that this thread raises while one is under way is done by that one, after its own actions.
        On cancellation everything is done first, but that an action which was waiting is given up; a window whose
        closing was interrupted is closed when the loop fails or ends.

        Args:
            event: the name of one of this object's events.
            number: the step of ``step_begins``; the version of ``weights_about_to_sync`` and ``weights_synced``.
            weight_version: as in `step_begins`.

        Raises:
            ValueError: there is no such event, or its number is wrong; nothing changed.
        """
        async with self._gate:
            self._pending += self._feed(event, number, weight_version)
            errors = []
            while self._pending:
                errors.append(await self._performer.attempt_async(self._pending.popleft()))
        _conclude(event, errors)

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self.tell("loop_ends")
            return
        try:
            await self.tell("loop_fails")
        except ProfwinError as other:
            _log("loop_fails", other)

    def _take(self, event: str, number: int | None = None, weight_version: int | None = None) -> None:
        with self._gate.lock:
            tasks = self._feed(event, number, weight_version)
            if self._gate.engaged:
                self._pending += tasks
                return
            errors = [self._performer.attempt(task) for task in tasks]
        _conclude(event, errors)

    def _feed(self, event: str, number: int | None, weight_version: int | None) -> list[Task]:
        machine = self._machine
        syncing = machine.syncing
        actions = machine.feed(event, number)
        if event == "weights_synced":
            self._version = machine.version
        elif event == "step_begins" and machine.step == number:  # else it was late
            self._version = machine.version if weight_version is None else weight_version
        tasks: list[Task] = [(action, self._version) for action in actions]
        if syncing != machine.syncing:
            if syncing is not None:
                arrived = event in ("weights_synced", "step_begins") and machine.version == syncing
                tasks.insert(0, (SyncEnds(None if arrived else event), None))
            if machine.syncing is not None:
                tasks.append((SyncBegins(machine.syncing), None))
        if event in ("loop_fails", "loop_ends"):  # whatever an interrupted closing left behind
            tasks += self._performer.leftovers
        return tasks


def _conclude(event: str, outcomes: Iterable[BaseException | None]) -> None:
    errors = [error for error in outcomes if error is not None]
    # What passes: a Ctrl-C first, then what profwin raises on purpose (misuse; more only with strict).
    passing = [error for error in errors if not isinstance(error, Exception)]
    passing += [error for error in errors if isinstance(error, ProfwinError)]
    for error in errors:
        if error not in passing[:1]:
            _log(event, error)
    if passing:
        raise passing[0]


def _log(event: str, error: BaseException) -> None:
    import logging

    logging.getLogger("profwin").warning("%s: part of it failed with %r; the loop goes on", event, error)
