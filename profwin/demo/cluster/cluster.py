"""The driver's side of the demo's Ray cluster: started when needed, and gone without a trace at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from importlib import import_module

from profwin.demo.child import Child
from profwin.demo.cluster.raylets import DISK
from profwin.demo.processes import without
from profwin.errors import ProfwinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Self

    from profwin.ray.nodes import Node

__all__ = ["Cluster", "ClusterError"]

LAST_WORDS = 60.0
"""Seconds that the raylets have to end."""
LONGEST_DIRECTORY = 30
"""Characters. Ray puts sockets below it, whose paths Linux bounds to 107."""
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_prestart_worker_first_driver": "0"}


class ClusterError(ProfwinError, RuntimeError):
    """The cluster of the demo could not be started, or is of no use.

    Attributes:
        problem: why.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"the demo's Ray cluster: {problem}")
        self.problem = problem


class Cluster:
    """Have a Ray cluster on this machine for the time of a ``with`` block, and be its driver.

    Each of its nodes is as if it were the only one of its host (``PROFWIN_PRETEND_HOST``); the driver is on the first.
    Variables of Ray's are taken out of this process's environment: another cluster is no business of the demo's.

    Args:
        hosts: what the nodes pretend to be.
        say: is told, in a line, of what takes long.

    Attributes:
        say: likewise.
        nodes: by their hosts' names.
        directory: of this time, for everything that the cluster needs; it is removed at the end.
    """

    def __init__(self, hosts: tuple[str, ...], say: Callable[[str], None]) -> None:
        self._hosts, self.say = hosts, say
        self.nodes: dict[str, Node] = {}
        self.directory = ""
        self._at_end = ExitStack()

    def __enter__(self) -> Self:
        from profwin.ray.presence import needs_ray

        needs_ray()
        with ExitStack() as stack:
            for name in [name for name in os.environ if name.startswith("RAY_")]:
                del os.environ[name]
            try:
                self._start(stack)
            except (OSError, MemoryError) as error:
                raise ClusterError(f"it could not be started: {type(error).__name__}: {error}") from error
            self._at_end = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._at_end.close()

    def disk(self, host: str) -> str:
        """Return the directory for what a host's processes write: it is of that host alone."""
        return os.path.join(self.directory, host)

    def collect(self, output: str, run: str) -> None:
        """Gather a run's files from all nodes.

        Args:
            output: the directory that gets the run's.
            run: the run's name.

        Raises:
            ClusterError: something is missing.
        """
        from profwin.ray import collect

        found = collect(output, f"${DISK}", run)
        if not found.whole:
            missing = "; ".join(f"{what}: {why}" for what, why in found.missing.items())
            raise ClusterError(f"not everything could be collected: {missing}")
        self.say(f"collected {found.files} files, {found.bytes:,} bytes, of {len(found.nodes)} nodes")

    def _start(self, stack: ExitStack) -> None:
        self.directory = _directory()
        stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        environment = {**without(os.environ, "PROFWIN_"), **VARIABLES}
        raylets = Child("cluster", "profwin.demo.cluster.raylets", {"directory": self.directory}, environment)
        stack.callback(raylets.close, LAST_WORDS)
        ids, address = {}, ""
        for host in self._hosts:
            started = raylets.call("start", name=host)
            ids[started["node"]], address = host, started["address"]
            self.say(f"{host} of {len(self._hosts)} is up")
        stack.callback(os.environ.pop, "PROFWIN_PRETEND_HOST", None)
        os.environ["PROFWIN_PRETEND_HOST"] = self._hosts[0]
        self._connect(address, stack)
        from profwin.ray.nodes import nodes

        self.nodes = {ids[node.id]: node for node in nodes() if node.id in ids}

    def _connect(self, address: str, stack: ExitStack) -> None:
        ray: Any = import_module("ray")
        stack.callback(ray.shutdown)
        try:
            ray.init(address, namespace="profwin-demo", logging_level="ERROR", log_to_driver=False)
        except (ray.exceptions.RayError, RuntimeError, ValueError) as error:
            raise ClusterError(f"it cannot be used: {' '.join(str(error).split())}") from error


def _directory() -> str:
    parents = [parent for parent in (tempfile.gettempdir(), "/tmp") if len(parent) < LONGEST_DIRECTORY]
    for parent in parents:
        if os.access(parent, os.W_OK):
            return tempfile.mkdtemp(prefix="pw-", dir=parent)
    raise ClusterError("Ray needs a directory for temporary files whose path is short: set TMPDIR")
