"""Printing: results on the standard output, and on the error output how far a command has come."""

from __future__ import annotations

import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["Progress", "show", "show_json"]

PATIENCE = 1.0
"""Seconds after which progress is shown, and between two lines of it."""


def show(text: str) -> None:
    """Print a result. Whoever reads it may leave before its end: then the rest goes nowhere, in silence.

    Raises:
        SystemExit: it cannot be written, as on a full disk; which is said.
    """
    if sys.stdout is None:
        return  # the caller has closed it
    encoding = sys.stdout.encoding or "utf-8"
    try:
        # A terminal that lacks a character shows its escape.
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        _discard()
    except OSError as error:
        _give_up(error)


def show_json(value: object) -> None:
    """Print a result as JSON that every reader takes."""
    import json

    from profwin.evidence.escaping import jsonable

    show(json.dumps(jsonable(value), indent=2, allow_nan=False))


def _discard() -> None:
    """Let what is still buffered go nowhere, or the interpreter fails with it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _give_up(error: OSError) -> NoReturn:
    _discard()
    print(f"profwin: error: standard output: {error.strerror or error}", file=sys.stderr)
    raise SystemExit(2)


class Progress:
    """Say on the error output, each second after the first, how far a command has come. Use it as a context manager.

    Args:
        command: its name.
        state: what it does at first, in words.
    """

    def __init__(self, command: str, state: str) -> None:
        self._command = command
        self.state = state
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def count(self, done: int, total: int) -> None:
        """Take how many recordings are read, of how many."""
        self.state = f"{done} of {total} recordings read" if done < total else "judging what was read"

    def read(self, path: str, events: int) -> None:
        """Take how many events of a recording are read."""
        from profwin.evidence.escaping import printable

        self.state = f"{printable(path, 100)}: {events:,} events"

    def _say(self) -> None:
        while not self._ended.wait(PATIENCE) and sys.stderr is not None:
            try:
                print(f"profwin {self._command}: {self.state}", file=sys.stderr, flush=True)
            except OSError:
                return  # nobody reads it any more
