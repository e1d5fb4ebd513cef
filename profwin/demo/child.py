"""A child process of the demo and the pipe to it: one request, one reply, in order.

The children are started with a fresh interpreter, in a session of their own (Ctrl-C reaches the driver alone,
which then ends them), and end by themselves when the pipe closes, so that not even a killed driver leaves one
behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Child", "ChildError", "answer", "connect"]

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
    """

    def __init__(self, name: str, module: str, settings: dict[str, Any], environment: Mapping[str, str]) -> None:
        self.name = name
        self._sent = 0
        self._pipe, far = Pipe()
        with far:
            command = [sys.executable, "-m", module, str(far.fileno())]
            # Standard output belongs to the driver's report.
            self._process = subprocess.Popen(
                command,
                pass_fds=(far.fileno(),),
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
        """Wait for the reply to a request; replies to earlier ones, if not taken, are dropped.

        Raises:
            ChildError: the child reports an error, or ended before it replied.
        """
        answered, status, value = 0, "", None
        try:
            while answered < number:
                # Ctrl-C nearly always arrives in this wait, which leaves the pipe usable.
                self._pipe.poll(None)
                answered, status, value = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise ChildError(self.name, f"has ended ({self._status()})") from error
        if status != "ok":
            raise ChildError(self.name, str(value))
        return value

    def kill(self) -> None:
        """End the child with SIGKILL and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def close(self) -> None:
        """End the child in order, or with SIGKILL where it takes too long. May be called twice."""
        self._pipe.close()
        try:
            self._process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _status(self) -> str:
        try:
            code = self._process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            return "its pipe is closed"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def connect() -> tuple[Connection, dict[str, Any]]:
    """In a child: return the pipe to the driver and the settings that it sent first.

    A request then arrives as ``(number, name, arguments)``, and is answered with ``(number, "ok" or "error",
    value)``.
    """
    descriptor = int(sys.argv[1])
    # A process that this child starts must not keep the pipe open.
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    _number, _request, settings = pipe.recv()
    return pipe, settings


def answer(pipe: Connection, target: object, number: int, request: str, arguments: dict[str, Any]) -> None:
    """In a child: call the method of ``target`` that a request names and send what it returns or raises."""
    try:
        reply = (number, "ok", getattr(target, request)(**arguments))
    except Exception as error:  # noqa: BLE001 - whatever a request raises is the requester's to judge
        reply = (number, "error", f"{type(error).__name__}: {error}")
    pipe.send(reply)
