"""The other side of `profwin.evidence.pool`: a process that reads one file after the other until it is let go."""

from __future__ import annotations

import gc
import os
import pickle
import queue
import signal
import struct
import threading

from profwin.evidence.attempt import attempt, frugal, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

__all__ = ["main", "receive", "send"]

_LENGTH = struct.Struct("<Q")


def send(file: IO[bytes], value: Any) -> None:
    """Write one value to a pipe."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    file.write(_LENGTH.pack(len(data)) + data)
    file.flush()


def receive(file: IO[bytes]) -> Any:
    """Read one value from a pipe whose other end is profwin's own process.

    Raises:
        EOFError: the other end is closed.
    """
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    length: int = _LENGTH.unpack(head)[0]
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)  # written by `send` in the process at the other end, not by a file


def main(function: str) -> None:
    """Answer jobs from standard input on standard output, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the checking process, which then ends this one
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not do so between two answers
    jobs = os.fdopen(os.dup(0), "rb")
    waiting: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                waiting.put(receive(jobs))
        except EOFError:
            # The checking process is gone, or wants no more: not even the file at hand.
            os._exit(0)

    read = resolve(function)
    gc.freeze()
    threading.Thread(target=listen, daemon=True).start()
    send(answers, "ready")
    with frugal():
        while True:
            try:
                send(answers, attempt(read, waiting.get()))
            except BrokenPipeError:
                os._exit(0)
