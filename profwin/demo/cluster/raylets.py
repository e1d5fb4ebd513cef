"""The process that has the demo's raylets: it ends them, and everything below them, when the driver's pipe closes.

So nothing is left whatever becomes of the driver. Ray's own ways are not enough for that: the raylets die with this
process (Linux's parent-death signal), but the processes of their actors live on for a long while after a raylet was
killed (measured). So this process adopts them (``PR_SET_CHILD_SUBREAPER``), and ends what Ray has not.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import time
from contextlib import ExitStack, suppress
from importlib import import_module

from profwin.demo.child import answer, connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DISK", "Raylets", "main"]

DISK = "DEMO_DISK"

OBJECT_STORE = 80 * 2**20
"""Bytes of a raylet's object store; Ray allows no fewer than 75 MiB."""
_SUBREAPER = 36


class Raylets:
    """Start raylets, and end them.

    Args:
        directory: for everything that Ray and the nodes write; it must be short, since sockets lie in it, and is
            removed at the end.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._cluster: Any = None

    def start(self, name: str) -> dict[str, str]:
        """Start a raylet, as if on a host of that name; return its ``node`` and the cluster's ``address``.

        What its processes write goes where its variable `DISK` says.
        """
        if self._cluster is None:
            # What Ray writes about a machine's latest cluster must not lie where other programs look for it.
            os.environ["RAY_TMPDIR"] = self._directory
            os.makedirs(os.path.join(self._directory, "ray"), exist_ok=True)
            self._cluster = import_module("ray.cluster_utils").Cluster()
            more = {"temp_dir": self._directory, "no_monitor": True}
        else:
            more = {}
        node = self._cluster.add_node(
            num_cpus=1,
            include_dashboard=False,
            include_log_monitor=False,
            object_store_memory=OBJECT_STORE,
            env_vars={"PROFWIN_PRETEND_HOST": name, DISK: os.path.join(self._directory, name)},
            **more,
        )
        return {"node": node.node_id, "address": self._cluster.address}

    def close(self) -> None:
        """End all of them and whatever they have started, and remove the directory."""
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
            stack.callback(_end_children)
            if self._cluster is not None:
                self._cluster.shutdown()


def _adopt() -> None:
    """Become the parent of what is below this process when its own parent ends."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _end_children() -> None:
    """Kill what is below this process, until nothing is."""
    while found := _children():
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        time.sleep(0.01)


def _children() -> list[int]:
    found = []
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{task}/children", encoding="ascii") as file:
            found += [int(pid) for pid in file.read().split()]
    return found


def main() -> None:
    """Serve the driver until its pipe closes."""
    _adopt()
    settings, pipe = connect()
    raylets = Raylets(**settings)
    try:
        while True:
            answer(pipe, raylets, *pipe.recv())
    except (EOFError, OSError):
        pass
    finally:
        raylets.close()


if __name__ == "__main__":
    main()
