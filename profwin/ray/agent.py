"""What runs in a node's agent: it writes its host's step board, and tells what it sees there."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    News: TypeAlias = tuple[int, str, int, bool, int, bool]
    """Number, side, step, whether it is selected, version of the weights or -1, and whether the publisher declares."""

__all__ = ["Agent", "Identity", "end"]

_OFF = "profwin is off in the agent's process"
_ALONE = "the step board of its host cannot be shared"


@dataclass(frozen=True)
class Identity:
    """Who a node's agent is.

    Attributes:
        owner: what the process that started it calls itself.
        pid: of the agent's process.
        start: when that started, in clock ticks from the host's boot.
        boot: id of the host's boot, the same for all nodes of a host.
        host: the host's name.
        directory: of the host's device locks.
        board: path of the run's step board on that host; None where there is none.
        problem: why the agent cannot do its work, in words; empty where it can.
    """

    owner: str
    pid: int
    start: int
    boot: str
    host: str
    directory: str
    board: str | None
    problem: str = ""


class Agent:
    """A node's agent: an actor with several threads, whose process is configured like any worker's.

    Args:
        owner: what the process that starts it calls itself.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._mutex = threading.Lock()
        self._seen: dict[tuple[str, str], int] = {}

    def identity(self) -> Identity:
        """Say who this is, and whether it can do its work."""
        from profwin.configuration import current
        from profwin.registry.host import boot_id, host_name
        from profwin.registry.process import identity

        own, session = identity(), current()
        directory, board, problem = "", None, _OFF
        if session is not None:
            board, problem = session.position.board.path, _ALONE
            try:
                directory = session.registry().directory
            except OSError as error:
                problem = f"{_ALONE}: {error}"
        return Identity(
            self._owner, own.pid, own.start, boot_id(), host_name(), directory, board, "" if board else problem
        )

    def follow(self, publisher: str, *news: News) -> int:
        """Write what another host's process publishes into this host's step board.

        Calls overtake each other: what is older than what that publisher said before is left out. Who declares there
        is this process here, so that nobody does when it has ended.

        Args:
            publisher: the process that says it.
            *news: one for each side.

        Returns:
            The pid of this process.
        """
        from profwin.configuration import current
        from profwin.registry.process import identity

        session, own = current(), identity()
        if session is None:
            raise RuntimeError(_OFF)
        board = session.position.board
        with self._mutex:
            for number, side, step, selected, version, declares in news:
                if number <= self._seen.get((publisher, side), -1):
                    continue
                self._seen[publisher, side] = number
                if declares or side != "training" or not session.position.declared_elsewhere():
                    declarer = (own.pid, own.start) if declares else (0, 0)
                    board.write(side, step, selected, version=version, declarer=declarer)
        return own.pid

    def clock(self) -> tuple[int, int]:
        """Return this host's monotonic clock and its wall clock, in nanoseconds."""
        return time.monotonic_ns(), time.time_ns()

    def report(self) -> dict[str, Any]:
        """Return the host's devices, as their locks say, and the two sides of the step board, as JSON values."""
        import msgspec

        from profwin.configuration import current

        session = current()
        if session is None:
            return {"problem": _OFF}
        board = session.position.board
        sides = {side: dict(board.read(side)._asdict()) for side in ("rollout", "training")}
        try:
            devices = [msgspec.to_builtins(state) for state in session.registry().survey()]
        except OSError as error:
            return {"board": sides, "problem": str(error)}
        return {"board": sides, "devices": devices}


def end(agent: Agent, remove: bool) -> None:  # noqa: ARG001  # __ray_call__ passes it
    """End the session of an agent's process, before Ray ends the process.

    Args:
        agent: the instance.
        remove: whether the run is over, so that its step board on this host is to go.
    """
    from profwin.configuration import current, shutdown

    session = current()
    if session is not None and remove:
        session.position.board.remove()
    shutdown()
