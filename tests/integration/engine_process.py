"""An engine that records in a process of its own, for tests that kill one of the two."""

from __future__ import annotations

import subprocess
import sys

_WORKER = """
import sys
for line in sys.stdin:
    print(f"{line.strip()} done", flush=True)
"""


class Engine:
    """An engine whose worker confirms each start and stop, for as long as it lives.

    Args:
        device: that it records on.

    Attributes:
        told: what it was told, in order.
    """

    revocable = True

    def __init__(self, device: str) -> None:
        self.devices = [device]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.process_ids = [self.process.pid]
        self.told: list[str] = []

    def start_profile(self) -> None:
        """Tell the worker, and wait for its answer."""
        self._tell("start")

    def stop_profile(self) -> None:
        """Tell the worker, and wait for its answer."""
        self._tell("stop")

    def _tell(self, what: str) -> None:
        self.told.append(what)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        if self.process.stdout.readline() != f"{what} done\n":
            raise ConnectionError("the worker is gone")

    def end(self) -> None:
        """Kill the worker."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
