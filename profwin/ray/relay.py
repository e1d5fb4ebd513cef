"""The relay: takes the steps that this process publishes to the step boards of other hosts."""

from __future__ import annotations

import itertools
import os
import threading
import time
from functools import partial

from profwin.ray.clocks import Watch
from profwin.ray.crew import BOARD
from profwin.ray.nodes import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.ray.agent import News
    from profwin.ray.crew import Crew, Seat

__all__ = ["Relay"]

_AGAIN = 0.2


class Relay:
    """Tells the agents of other hosts what changes there: each selected step, and the first after it that is not.

    Steps that stay unselected are not told, and cost no call to Ray, as long as every agent has confirmed what it was
    told. Used from any thread.

    Args:
        crew: the agents.

    Attributes:
        crew: the same.
        pid: of the process that has made it; a forked child cannot use it.
    """

    def __init__(self, crew: Crew) -> None:
        self.crew, self.pid = crew, os.getpid()
        self._mutex = threading.Lock()
        self._numbers = itertools.count()
        self._latest: dict[str, News] = {}
        self._behind = self._due = self._telling = False
        self.clocks = Watch(crew.clocks, partial(crew.session.journal.write, "clock"))

    def begin(self, *, anew: bool) -> None:
        """See to it that there are agents; never raises.

        Args:
            anew: whether to look for nodes though that was done some seconds ago.
        """
        with self.crew.mutex:
            try:
                if self.crew.connected():
                    self.crew.look(time.monotonic() + self.crew.timeout, anew=anew)
            except Exception as error:  # noqa: BLE001  # whatever Ray raises, the training goes on
                self.crew.note("agent-failed", None, f"the cluster's nodes cannot be had: {line(error)}")
        if self.crew.session.settings.steps is not None:
            self.clocks.begin()

    @property
    def usable(self) -> bool:
        """Whether this is the process that has made it."""
        return os.getpid() == self.pid

    @property
    def due(self) -> bool:
        """Whether there is something to be told, or is being told by another thread."""
        return (self._due or self._telling) and self.usable

    def publish(self, side: str, step: int, selected: bool, version: int, declares: bool) -> None:
        """Take note of what is to be told; without waiting."""
        if not self.usable:
            return  # a forked child, in which Ray cannot be used
        with self._mutex:
            last = self._latest.get(side)
            if last is not None and last[2] == step and version < 0:
                version = last[4]
            if last is None:
                told = selected or declares
            else:
                same = last[2:] == (step, selected, version, declares)
                told = not same and (selected or last[3] or (declares and not last[5]))
            if told:
                self._latest[side] = (next(self._numbers), side, step, selected, version, declares)
            self._due = self._due or told or self._behind

    def settle(self) -> None:
        """Tell it, and wait until it is confirmed, within the time limit of the agents; never raises."""
        if not self.due:
            return
        with self.crew.mutex:
            with self._mutex:
                due, self._due, news = self._due, False, list(self._latest.values())
                if not due:
                    return  # it was told while this thread waited
                self._behind = self._telling = True  # until they have confirmed it
            try:
                self._behind = self._tell(news)
            except Exception as error:  # noqa: BLE001  # whatever Ray raises, the training goes on
                self.crew.note("agent-failed", None, f"the nodes' agents cannot be told the step: {line(error)}")
            finally:
                self._telling = False

    def close(self) -> None:
        """End the agents that this process has started."""
        if not self.usable:
            return
        self.clocks.close()  # not inside of the mutex, which its thread needs
        with self.crew.mutex:
            try:
                self.crew.end()
            except Exception as error:  # noqa: BLE001  # as above: they end with this process
                self.crew.session.log(f"the nodes' agents could not be ended: {line(error)}")

    def _tell(self, news: list[News]) -> bool:
        """Return whether somebody has not confirmed it."""
        crew, deadline = self.crew, time.monotonic() + self.crew.timeout
        if not crew.connected():
            return True
        selected = any(selected for _, _, _, selected, _, _ in news)
        if selected or not crew.all():
            crew.look(deadline)
        confirmed: set[Seat] = set()
        while True:
            for seat, pid in crew.ask(self._rest(confirmed), partial(self._follow, news), deadline).items():
                confirmed.add(seat)
                if seat.identity is not None and seat.identity.pid != pid:
                    seat.identity = None  # Ray has started it again
            late = [seat for seat in self._rest(confirmed) if not seat.slow]
            late += [seat for seat in crew.all() if seat.identity is None and not seat.refused and not seat.slow]
            if not late or time.monotonic() >= deadline:
                break
            time.sleep(0.0 if all(seat in confirmed for seat in late) else _AGAIN)
            crew.look(deadline, anew=True)
        for seat in (rest := self._rest(confirmed)):
            seat.slow = True
            crew.note("agent-late", seat.node, f"step {max(news)[2]} is not confirmed: {seat.problem}")
        if selected:
            self.clocks.begin()
        return bool(rest) or any(seat.identity is None and not seat.refused for seat in crew.all())

    def _rest(self, confirmed: set[Seat]) -> list[Seat]:
        return [seat for seat in self.crew.elsewhere() if seat not in confirmed]

    def _follow(self, news: list[News], seat: Seat) -> Any:
        return seat.handle.follow.options(concurrency_group=BOARD).remote(self.crew.token, *news)
