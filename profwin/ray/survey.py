"""Who holds what on the hosts of a cluster, asked of one short task on each node."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module

from profwin.ray.nodes import Node, answers, nodes, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.registry.survey import DeviceState

__all__ = ["Host", "Survey", "confirm", "confirmed", "look", "survey"]


@dataclass
class Host:
    """What a node tells of its host.

    Attributes:
        name: of the host, for reading.
        boot: id of its boot.
        directory: of its device locks.
        choice: a sentence that says why it is that one.
        place: which directory that is, whatever its path: two containers of a host may have two.
        devices: every device of it.
        nodes: those on this host that have this directory.
    """

    name: str
    boot: str
    directory: str
    choice: str
    place: tuple[int, int]
    devices: list[DeviceState]
    nodes: list[Node] = field(default_factory=list)


@dataclass
class Survey:
    """What the nodes of a cluster say.

    Attributes:
        hosts: each once, in the order of their names.
        silent: the nodes that did not answer, with the reason in words. Those that Ray takes for dead were not asked.
    """

    hosts: list[Host]
    silent: dict[Node, str]


def survey(directory: str | None, seconds: float) -> Survey:
    """Ask all living nodes side by side; this process is connected to the cluster.

    Nothing of a run is needed for it, and nobody is disturbed: a task without resources looks at its host's locks as
    ``profwin locks`` does.

    Args:
        directory: of the device locks, on every node; None: each host's own.
        seconds: that all of them together have.
    """
    known = nodes(dead=True)
    asked = {node: _task(look, node, directory) for node in known if node.alive}
    silent = {node: "Ray takes it for dead; its processes may live on" for node in known if not node.alive}
    hosts: dict[tuple[str, tuple[int, int]], Host] = {}
    for node, answer in answers(asked, seconds).items():
        if isinstance(answer, Host):
            hosts.setdefault((answer.boot, answer.place), answer).nodes.append(node)
        else:
            silent[node] = _why(answer)
    return Survey(sorted(hosts.values(), key=lambda host: (host.name, host.nodes[0].id)), silent)


def confirmed(device: str, node: Node, directory: str | None, seconds: float) -> tuple[bool, DeviceState | None]:
    """Confirm on a node that the engine marked on a device records no more; return what :func:`confirm` returns there.

    Raises:
        ConnectionError: it did not answer.
    """
    answer = answers({node: _task(confirm, node, directory, device)}, seconds)[node]
    if isinstance(answer, BaseException):
        raise ConnectionError(f"node {node}: {_why(answer)}")
    found: tuple[bool, DeviceState | None] = answer
    return found


def look(directory: str | None) -> Host:
    """Look at the locks of this host."""
    from profwin.registry.host import boot_id, host_name
    from profwin.registry.lock import Registry

    registry = Registry(directory)
    status = os.stat(registry.directory)
    place = status.st_dev, status.st_ino
    return Host(host_name(), boot_id(), registry.directory, registry.choice, place, registry.survey())


def confirm(directory: str | None, device: str) -> tuple[bool, DeviceState | None]:
    """Remove the mark of a device of this host; return whether there was one, and what the device was like before."""
    from profwin.registry.lock import Registry
    from profwin.registry.survey import confirm as confirm_seen

    return confirm_seen(Registry(directory), device)


def _task(function: Callable[..., Any], node: Node, *arguments: Any) -> Any:
    return import_module("ray").remote(function).options(max_retries=0, **placed(node)).remote(*arguments)


def _why(error: BaseException) -> str:
    """Say why there is no answer."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    missing = next((line for line in reversed(said) if "No module named" in line), None)
    if missing is not None:
        return f"profwin cannot be imported there ({missing[:200]})"
    return said[0][:300] if isinstance(error, TimeoutError) else said[-1][:300]
