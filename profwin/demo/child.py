"""A child process of the demo and the pipe to it: requests with one reply each, or reports that nobody asked for.

The children are started with a fresh interpreter, in a session of their own (Ctrl-C reaches the driver alone,
which then ends them), and end by themselves when the pipe closes, so that not even a killed driver leaves one
behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict, deque
from contextlib import ExitStack
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["REPORT", "Child", "ChildError", "answer", "await_end", "connect", "connect_peer"]

REPORT = 0
"""The number that a child's reports carry, which are no reply."""
LAST_WORDS = 5.0
"""Seconds that a child has to end after its pipe was closed."""


class ChildError(ProfwinError, RuntimeError):
    """A child process reported an error, or ended.

    Attributes:
        child: its name.
        problem: what happened.
    """

    def __init__(self, child: str, problem: str) -> None:
        super().__init__(f"the demo's {child} process: {problem}")
        self.child, self.problem = child, problem


class Child:
    """Start a module as a child process; it is usable at once, requests wait until it is up.

    Args:
        name: in messages.
        module: what ``python -m`` runs; it calls :func:`connect`.
        settings: sent as the first message.
        environment: the child's whole environment.
        peer: the end of a pipe to another child, which this one gets; it is closed here.
    """

    def __init__(
        self,
        name: str,
        module: str,
        settings: dict[str, Any],
        environment: Mapping[str, str],
        *,
        peer: Connection | None = None,
    ) -> None:
        self.name = name
        self._sent = REPORT
        self._replies: defaultdict[int, deque[tuple[str, Any]]] = defaultdict(deque)
        self._pipe, far = Pipe()
        with ExitStack() as theirs:
            descriptors = [theirs.enter_context(each).fileno() for each in (far, peer) if each is not None]
            # Standard output belongs to the driver's report.
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, descriptors)],
                pass_fds=descriptors,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=2,
                start_new_session=True,
            )
        self.send("settings", **settings)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def pipe(self) -> Connection:
        """The pipe, so that a driver can wait for several children at once."""
        return self._pipe

    def call(self, request: str, **arguments: Any) -> Any:
        """Send a request and return its reply.

        Raises:
            ChildError: the child reports an error, or ended before it replied.
        """
        return self.receive(self.send(request, **arguments))

    def send(self, request: str, **arguments: Any) -> int:
        """Send a request without waiting for its reply.

        Returns:
            The number to ask for its reply with.

        Raises:
            ChildError: the child has ended.
        """
        self._sent += 1
        try:
            self._pipe.send((self._sent, request, arguments))
        except OSError as error:
            raise ChildError(self.name, f"has ended ({self._status()})") from error
        return self._sent

    def receive(self, number: int) -> Any:
        """Wait for the reply to a request, or for the next report; replies to other requests are kept for later.

        Args:
            number: what :meth:`send` returned, or `REPORT`.

        Raises:
            ChildError: the child reports an error, or ended before it replied.
        """
        try:
            while not self._replies[number]:
                # Ctrl-C nearly always arrives in this wait, which leaves the pipe usable.
                self._pipe.poll(None)
                answered, status, value = self._pipe.recv()
                self._replies[answered].append((status, value))
        except (EOFError, OSError) as error:
            raise ChildError(self.name, f"has ended ({self._status()})") from error
        status, value = self._replies[number].popleft()
        if not self._replies[number]:
            del self._replies[number]
        if status != "ok":
            raise ChildError(self.name, str(value))
        return value

    def kill(self) -> None:
        """End the child with SIGKILL and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def close(self, patience: float = LAST_WORDS) -> None:
        """End the child in order, or with SIGKILL where it takes longer than so many seconds. May be called twice."""
        self._pipe.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _status(self) -> str:
        try:
            code = self._process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            return "its pipe is closed"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def connect() -> tuple[dict[str, Any], Connection]:
    """In a child: return the settings that the driver sent first, and the pipe to it.

    A request then arrives as ``(number, name, arguments)``, and is answered with ``(number, "ok" or "error",
    value)``. A report is sent as an answer to `REPORT`.
    """
    pipe = _inherited(1)
    _number, _request, settings = pipe.recv()
    return settings, pipe


def connect_peer() -> Connection:
    """In a child that was given one: return the pipe to another child."""
    return _inherited(2)


def _inherited(position: int) -> Connection:
    descriptor = int(sys.argv[position])
    # A process that this child starts must not keep the pipe open.
    os.set_inheritable(descriptor, False)
    return Connection(descriptor)


def answer(pipe: Connection, target: object, number: int, request: str, arguments: dict[str, Any]) -> None:
    """In a child: call the method of ``target`` that a request names and send what it returns or raises."""
    try:
        reply = (number, "ok", getattr(target, request)(**arguments))
    except Exception as error:  # noqa: BLE001 - whatever a request raises is the requester's to judge
        reply = (number, "error", f"{type(error).__name__}: {error}")
    pipe.send(reply)


def await_end(pipe: Connection) -> None:
    """In a child that cannot go on: wait until the driver, which judges why, has closed its pipe."""
    try:
        while True:
            pipe.recv()
    except (EOFError, OSError):
        return
