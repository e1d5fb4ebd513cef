"""The other process of a measurement: it is told by a byte, and answers with a time."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT, environment

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Partner", "say", "told"]

_TIME = struct.Struct("<q")
_PATIENCE = 60.0


class Partner:
    """A module of this package that runs as a process of the run which is configured here.

    Args:
        module: its name; it is run as the main module.
        arguments: of its command line.
    """

    def __init__(self, module: str, *arguments: object) -> None:
        import profwin

        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(**profwin.environment()),
            bufsize=0,
        )

    def read(self) -> int:
        """Return the next number that it says, waiting for it.

        Raises:
            RuntimeError: it ended instead.
        """
        assert self._process.stdout is not None
        data = self._process.stdout.read(_TIME.size)
        if len(data) < _TIME.size:
            raise RuntimeError(f"the partner ended with {self._process.wait()}")
        return int(_TIME.unpack(data)[0])

    def tell(self) -> None:
        """Let it go on."""
        assert self._process.stdin is not None
        self._process.stdin.write(b".")

    def __enter__(self) -> Partner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        if error is not None:
            self._process.kill()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process.stdout.close()


def say(value: int) -> None:
    """Say a number to the process that started this one."""
    os.write(1, _TIME.pack(value))


def told() -> bool:
    """Wait to be told to go on; False where the other process wants no more."""
    return bool(os.read(0, 1))
