"""The crew: which node of the cluster has which agent, as far as this process knows."""

from __future__ import annotations

import os
import threading
import time
from importlib import import_module

from profwin.ray.agent import Agent, end
from profwin.ray.nodes import answers, line, nodes, pinned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from typing import Any

    from profwin.ray.agent import Identity
    from profwin.ray.nodes import Node
    from profwin.session import Session

__all__ = ["BOARD", "Crew", "Seat"]

BOARD = "board"
"""The group of an agent's threads that write the step board: what else it is asked for may take its time."""

_THREADS, _BOARD_THREADS = 8, 2
_LOOKS = 5.0
"""Seconds between two looks at which nodes there are: one costs about a millisecond."""
_AGAIN = 0.2
_END = 10.0


class Seat:
    """A node's agent.

    Attributes:
        node: where it is.
        handle: of the actor; None until one is started.
        identity: what it says of itself; None until it has answered.
        problem: why there is none, or what was wrong with it last, in words.
        refused: whether it is of no use to try again.
        slow: whether it has kept this process waiting in vain; it is not waited for until it has answered.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.handle: Any = None
        self.identity: Identity | None = None
        self.problem = ""
        self.refused = self.slow = False
        self._waiting: Future[Any] | None = None

    def lost(self, error: BaseException) -> None:
        """Take note of what came instead of an answer."""
        self.problem, self._waiting = line(error), None
        if isinstance(error, import_module("ray.exceptions").ActorDiedError):
            self.handle = self.identity = None
            # Ray starts no actor again whose class cannot be made, as where profwin is not installed.
            self.refused = bool(getattr(error, "actor_init_failed", False))
            if self.refused:
                last = f"{error}".strip().splitlines()[-1]  # of a traceback
                self.problem = f"its agent cannot be made, for which profwin must be installed there: {last}"
        elif self.handle is None:
            self.refused = isinstance(error, (ValueError, TypeError))  # it could not even be asked for

    def late(self, future: Future[Any], seconds: float) -> None:
        """Take note that there is no answer yet."""
        if not self.slow:
            self.problem = f"its agent has not answered within {seconds:.3g} s"
        self.slow, self._waiting = True, future

    def well(self) -> None:
        """Take note of an answer."""
        self.problem, self.slow, self._waiting = "", False, None

    def recovered(self) -> None:
        """See whether the answer has come meanwhile that was waited for in vain."""
        if self._waiting is not None and self._waiting.done():
            error = self._waiting.exception()
            self.slow, self._waiting = False, None
            if error is not None:
                self.lost(error)


class Crew:
    """The agents of a run. What it does is done by the thread that has its mutex.

    Args:
        session: of this process.

    Attributes:
        chosen: ids of the nodes that get one; None for all.
        timeout: seconds that an agent gets to start, and all of them to answer.
        token: what this process calls itself.
        mutex: see above.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.chosen: frozenset[str] | None = None
        self.timeout = 30.0
        self.token = os.urandom(8).hex()
        self.mutex = threading.RLock()
        self._pid = os.getpid()
        self._seats: dict[str, Seat] = {}
        self._job: str | None = None
        self._looked = float("-inf")
        self._said: set[tuple[str, str]] = set()
        self._ended = False

    def connected(self) -> bool:
        """Say whether the cluster can be asked; a process that has connected anew has no agents yet."""
        ray = import_module("ray")
        if self._ended or os.getpid() != self._pid or not ray.is_initialized():
            return False
        job = ray.get_runtime_context().get_job_id()
        if job != self._job:
            self._job, self._looked = job, float("-inf")
            self._seats.clear()
        return True

    def look(self, deadline: float, *, anew: bool = False) -> None:
        """See to it that every living node has an agent, and the dead ones none; not again for some seconds.

        Args:
            deadline: on the monotonic clock, until which new agents are waited for.
            anew: whether to look in any case.
        """
        now = time.monotonic()
        if not anew and now < self._looked + _LOOKS:
            return
        self._looked = now
        living = {node.id: node for node in nodes() if self.chosen is None or node.id in self.chosen}
        for name in [name for name in self._seats if name not in living]:
            self.note("node-gone", self._seats.pop(name).node, "Ray takes it for dead; its processes may live on")
        for name, node in living.items():
            self._seats.setdefault(name, Seat(node))
        self.staff(deadline)

    def staff(self, deadline: float) -> None:
        """Start the agents that are missing, and wait until they have said who they are.

        Args:
            deadline: on the monotonic clock.
        """
        while missing := [seat for seat in self.all() if seat.identity is None and not seat.refused]:
            for seat, identity in self.ask(missing, self._start, deadline).items():
                seat.identity, seat.problem = identity, identity.problem
            if all(seat.identity is not None or seat.refused or seat.slow for seat in missing):
                break
            if time.monotonic() >= deadline:
                for seat in missing:
                    seat.slow = seat.identity is None
                break
            time.sleep(_AGAIN)
        for seat in self.all():
            if seat.problem and (seat.identity is None or seat.identity.problem):
                self.note("agent-failed", seat.node, seat.problem)

    def all(self) -> list[Seat]:
        """Return all seats, in the order of their nodes."""
        return [seat for _, seat in sorted(self._seats.items())]

    def seats(self) -> list[Seat]:
        """Return those whose agents have answered."""
        return [seat for seat in self.all() if seat.handle is not None and seat.identity is not None]

    def clocks(self) -> dict[tuple[str, str], Callable[[], int]]:
        """Return what asks for the clock of each other host, from any thread."""
        from profwin.ray.clocks import others
        from profwin.registry.host import boot_id

        with self.mutex:
            if not self.connected():
                return {}
            seats = {seat.node: seat for seat in self.seats()}
            identities = {node: seat.identity for node, seat in seats.items() if seat.identity is not None}
        return others(identities, lambda node: seats[node].handle, boot_id())

    def elsewhere(self) -> list[Seat]:
        """Return one agent for each other host whose step board it can write."""
        from profwin.registry.host import boot_id

        here = boot_id(), self.session.position.board.path
        found: dict[tuple[str, str | None], Seat] = {}
        for seat in self.seats():
            identity = seat.identity
            if identity is None or identity.problem or (place := (identity.boot, identity.board)) == here:
                continue
            if place not in found or found[place].slow:
                found[place] = seat
        return list(found.values())

    def ask(self, seats: Iterable[Seat], call: Callable[[Seat], Any], deadline: float) -> dict[Seat, Any]:
        """Ask agents side by side; return the answers that came in time.

        Args:
            seats: whom.
            call: what, as Ray's reference to the answer.
            deadline: on the monotonic clock.
        """
        from concurrent.futures import wait

        asked: dict[Seat, Future[Any]] = {}
        for seat in seats:
            seat.recovered()
            try:
                asked[seat] = call(seat).future()
            except Exception as error:  # noqa: BLE001  # of whichever node: the others are asked all the same
                seat.lost(error)
        wait([future for seat, future in asked.items() if not seat.slow], max(0.0, deadline - time.monotonic()))
        found = {}
        for seat, future in asked.items():
            if not future.done():
                seat.late(future, self.timeout)
            elif (failure := future.exception()) is not None:
                seat.lost(failure)
            else:
                seat.well()
                self._said.difference_update({("agent-late", seat.node.id), ("agent-failed", seat.node.id)})
                found[seat] = future.result()
        return found

    def note(self, code: str, node: Node | None, detail: str) -> None:
        """Write a finding, once for each node, until the node has been well again."""
        key = code, "" if node is None else node.id
        if key not in self._said:
            self._said.add(key)
            self.session.finding(code, detail if node is None else f"node {node}: {detail}")

    def end(self) -> None:
        """End the agents that this process has started, and ask nobody any more."""
        own = [seat for seat in self.seats() if seat.identity is not None and seat.identity.owner == self.token]
        connected, self._ended = self.connected(), True
        if not own or not connected:
            return
        remove = self.session.run.root
        answers({seat: seat.handle.__ray_call__.remote(end, remove) for seat in own}, min(self.timeout, _END))
        for seat in own:
            import_module("ray").kill(seat.handle)

    def _start(self, seat: Seat) -> Any:
        if seat.handle is None:
            from profwin.ray.environment import environment

            run = self.session.run
            seat.handle = pinned(
                Agent, seat.node, self.token, name=f"profwin-agent-{run.name}-{run.attempt}-{seat.node.id}",
                get_if_exists=True, lifetime="non_detached", max_restarts=-1, max_concurrency=_THREADS,
                groups={BOARD: _BOARD_THREADS}, runtime_env=environment(role="agent"),
            )  # fmt: skip
        return seat.handle.identity.remote()
