"""The position: at which step of the loop this process is, and what decorated calls read of it."""

from __future__ import annotations

import ctypes
import itertools
import os

from profwin.board import Board
from profwin.errors import RegistryError
from profwin.run import start_time
from profwin.switch import SWITCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    from profwin.session import Session

    Trained: TypeAlias = tuple[int, int | None]  # a step, and the version of the weights

    class Relay(Protocol):
        """What takes this process's steps to other hosts."""

        def publish(self, side: str, step: int, selected: bool, version: int, declares: bool) -> None:
            """Take note of what is to be told; without waiting."""

        @property
        def due(self) -> bool:
            """Whether there is something to be told."""

        def settle(self) -> None:
            """Tell it, and wait until it is confirmed, within a limit; never raises."""

        def close(self) -> None:
            """Tell nothing any more."""


__all__ = ["Position"]

_KEPT_STEPS = 8


class Position:
    """Which step is generated and which is trained, as far as this process knows.

    A stage's step is that of this process's ``training_step``, else of its latest window, else the board's. A window
    publishes its step for both sides, unless a process has declared which step it trains: in loops that take turns that
    is the step that is trained next, and pipelined loops use ``training_step``. In a process that uses it, stages
    outside of it are not recorded: they belong to no step.

    Args:
        session: whose selection applies.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.board = Board(None)
        self._training: int | None = None
        self._window: int | None = None
        self._own = ctypes.c_int64(0)
        self._always = ctypes.c_int64(1)
        self._never = ctypes.c_int64(0)
        self._live = self.board.selected_word()
        self._numbers: dict[tuple[str, int, str], itertools.count[int]] = {}
        self._latest = {"rollout": -1, "training": -1}
        self._known = (-1, False)
        self._declares = False
        self._said: dict[str, bool] = {}
        self._version: int | None = None
        self.relay: Relay | None = None
        self._published: dict[str, tuple[int, bool, int, bool]] = {}

    def attach(self) -> None:
        """Map the run's board; where it cannot be shared, this process goes by its own steps alone."""
        session = self._session
        try:
            directory = session.registry().directory
            path = os.path.join(directory, f"{session.run.board}.{os.geteuid()}.board")
            self.board = Board(path, attempt=session.run.attempt, fresh=session.run.root)
        except RegistryError as error:
            session.journal.write(
                "finding", code="no-registry", detail=f"{error}; other processes do not learn the step"
            )
            session.complain(error, raising=False)
        except OSError as error:
            session.finding(
                "no-board", f"the step board cannot be shared: {error}; other processes do not learn the step"
            )
        self._live = self.board.selected_word()
        self.refresh()

    def selected(self, step: int) -> bool:
        """Say whether a step is to be recorded in this run."""
        known, selected = self._known
        if known != step:
            steps = self._session.settings.steps
            selected = steps is not None and step in steps
            self._known = (step, selected)
        return selected

    def continues(self, step: int, following: int) -> bool:
        """Say whether a step's recording goes on into the next one."""
        return self._session.settings.continuous and following == step + 1 and self.selected(following)

    def rank_selected(self) -> bool:
        """Say whether this process's rank is recorded; one that does not know its rank is."""
        ranks, rank = self._session.settings.ranks, self._session.settings.rank
        return ranks is None or rank is None or rank in ranks

    def beside_selected(self, version: int) -> bool:
        """Say whether a weight sync lies beside a step that is recorded here: its last one, or the version's first."""
        before = self._said.get("rollout") or self._said.get("training")
        return self.rank_selected() and (before or self.selected(version + 1))

    def training_side(self) -> tuple[int, bool]:
        """Return the step that a stage of this process belongs to now, and whether it is selected."""
        if self._training is not None:
            return self._training, self.selected(self._training)
        if self._declares:
            return self._latest["training"], False
        if self._window is not None:
            return self._window, self.selected(self._window)
        side = self.board.read("training")
        return side.step, side.selected

    def version(self, side: str) -> int | None:
        """Return the version of the weights that a side uses, where somebody said it."""
        if side == "training" and self._training is not None:
            return self._version
        version = self.board.version(side)
        return version if version >= 0 else None

    def begin_rollout(self, step: int, version: int | None) -> bool:
        """Take note that a window of a step begins here; return whether the step is selected."""
        selected = self.selected(step)
        if step != self._window:
            self._move("rollout", step, selected, version)
            self._window = step
            self._session.owner.end_step(self._training if self._training is not None else step, "step")
        number = -1 if version is None else version
        self._publish("rollout", step, selected, number)
        if not self.declared_elsewhere():
            self._publish("training", step, selected, number)
        self.refresh()
        return selected

    def follow_board(self) -> None:
        """Go by the step board again, and not by this process's last window: another process opens the windows here."""
        self._window = None
        self.refresh()

    def begin_training(self, step: int, version: int | None, generated_with: tuple[int, ...] = ()) -> Trained | None:
        """Take note that this process trains a step; return what it trained before, for :meth:`end_training`.

        Args:
            step: the loop's step.
            version: version of the weights that are trained, where it is known.
            generated_with: versions of the weights that generated the samples, as far as known.
        """
        selected, before = self.selected(step), self._trained()
        self._move("training", step, selected, version, generated_with)
        self._training, self._declares = step, True
        if before is None or before[0] != step:
            self._end_collections(None if before is None else before[0], step)
        number = -1 if version is None else version
        self._publish("training", step, selected, number, declares=True)
        # A window of the same step may have said it before.
        number = self.board.version("training")
        self._version = number if number >= 0 else None
        self.refresh()
        return before

    def end_training(self, step: int, before: Trained | None) -> None:
        """Take note that the step is trained; stages that other processes begin now belong to no selected step."""
        self._training, self._version = before if before is not None else (None, None)
        if not self.continues(step, step + 1):
            self._session.owner.end_step(self._training, "step")
        side = (step, False) if before is None else (before[0], self.selected(before[0]))
        number = -1 if self._version is None else self._version
        self._publish("training", *side, number, declares=True)
        self.refresh()
        if self._session.settings.steps is not None and self._session.settings.steps.last == step:
            self._session.finish()

    def end_recording(self) -> None:
        """End what goes on into the step after the one that is over, because no step follows."""
        if self._training is None:
            self._session.owner.end_step(None, "step")

    def _trained(self) -> Trained | None:
        return None if self._training is None else (self._training, self._version)

    def number(self, what: str, step: int, name: str) -> int:
        """Return which window or stage of this name in this step it is in this process, from 1."""
        return next(self._numbers.setdefault((what, step, name), itertools.count(1)))

    def recording_changed(self) -> None:
        """Take note that a collection was opened or closed."""
        if self._session.settings.collect == "step":
            self.refresh()

    def refresh(self) -> None:
        """Point the word that decorated calls read at what they need to know now.

        While a recording goes on to the end of a step, every call must look closer, since it may be what ends it.
        """
        session = self._session
        if session.owner.ended:
            return  # a block of it outlived it; the word is another session's now
        if not self.rank_selected():
            SWITCH.word = self._never
        elif session.settings.collect == "step" and any(
            each.purpose == "training" for each in session.owner.collections
        ):
            SWITCH.word = self._always
        elif self._declares or self._window is not None:
            self._own.value = int(self.training_side()[1])
            SWITCH.word = self._own
        else:
            SWITCH.word = self._live

    def declared_elsewhere(self) -> bool:
        """Say whether a process says which step it trains, so that no window guesses it."""
        if self._training is not None:
            return True
        side = self.board.read("training")
        return side.declarer != 0 and start_time(side.declarer) == side.declarer_start

    def tell(self, relay: Relay) -> None:
        """Have a relay take this process's steps to other hosts, from what it has said last on."""
        self.relay = relay
        for side, said in self._published.items():
            relay.publish(side, *said)

    def settle(self) -> None:
        """Wait until other hosts know the step as well, where somebody tells them; within a limit."""
        if self.relay is not None:
            self.relay.settle()

    async def settled(self, *, wait: bool = True) -> None:
        """Like :meth:`settle`, without blocking the event loop; without `wait`, it is done beside."""
        if self.relay is not None and self.relay.due:
            from profwin.eventloop import beside, in_thread

            await in_thread(self.relay.settle) if wait else beside(self.relay.settle)

    def close(self) -> None:
        """Take the board away where this process began the run."""
        if self.relay is not None:
            self.relay.close()
        if self._session.run.root:
            self.board.remove()

    def _publish(self, side: str, step: int, selected: bool, version: int, *, declares: bool = False) -> None:
        run = self._session.run
        self.board.write(side, step, selected, version=version, declarer=(run.pid, run.start) if declares else (0, 0))
        self._published[side] = step, selected, version, declares
        if self.relay is not None:
            self.relay.publish(side, step, selected, version, declares)

    def _end_collections(self, before: int | None, step: int) -> None:
        if before is None or not self.continues(before, step):
            self._session.owner.end_step(step, "step")

    def _move(
        self, side: str, step: int, selected: bool, version: int | None, generated_with: tuple[int, ...] = ()
    ) -> None:
        if selected or self._said.get(side, True):
            # The first step, and the first that is not selected after one that was: more would fill a long run's disk.
            self._session.journal.write(
                "step", side=side, step=step, selected=selected, version=version, generated_with=generated_with or None
            )
        self._said[side] = selected
        self._latest[side] = max(self._latest[side], step)
        last = self._session.settings.steps.last if self._session.settings.steps is not None else None
        if last is not None and step > last and self._trained_through(last):
            self._session.finish()
        for key in [key for key in list(self._numbers) if key[1] < step - _KEPT_STEPS]:
            self._numbers.pop(key, None)
        self._session.entrance.forget(step - _KEPT_STEPS)

    def _trained_through(self, last: int) -> bool:
        """Say whether a step is trained too, now that something later has begun: rollout may run ahead of training."""
        if self._declares:
            return self._latest["training"] > last
        if not self.declared_elsewhere():
            return True
        side = self.board.read("training")
        return side.step > last or (side.step == last and not side.selected)
