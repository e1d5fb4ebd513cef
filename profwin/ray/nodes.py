"""The nodes of the cluster, and what is asked of a process on each of them, side by side."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    K = TypeVar("K")

__all__ = ["Node", "answers", "line", "matching", "nodes", "pinned", "placed"]


@dataclass(frozen=True)
class Node:
    """A node, as Ray tells of it.

    Attributes:
        id: of the node, in hexadecimal digits.
        host: the name of its host. Several nodes may be on one host.
        address: by which the others reach it.
        alive: whether Ray takes it for alive. Processes of one that is dead may live on.
        session: the directory on it where Ray keeps its logs.
    """

    id: str
    host: str
    address: str
    alive: bool
    session: str

    def __str__(self) -> str:
        """Return what a reader can tell it by."""
        return f"{self.id[:8]} ({self.address})"


def nodes(*, dead: bool = False) -> list[Node]:
    """Return the nodes of the cluster that this process is connected to, in the order of their ids.

    Args:
        dead: those that Ray takes for dead as well.
    """
    found = [
        Node(each["NodeID"], each["NodeManagerHostname"], each["NodeManagerAddress"], each["Alive"], _session(each))
        for each in import_module("ray").nodes()
    ]
    return sorted((node for node in found if dead or node.alive), key=lambda node: node.id)


def _session(each: Mapping[str, Any]) -> str:
    return os.path.dirname(os.path.dirname(str(each.get("RayletSocketName", ""))))


def matching(known: Iterable[Node], wanted: str) -> list[Node]:
    """Return the nodes that a text means: by the beginning of the id, the host's name, or the address."""
    return [node for node in known if node.id.startswith(wanted) or wanted in (node.host, node.address)]


def placed(node: Node) -> dict[str, Any]:
    """Return the options by which Ray runs an actor or a task on a node and on no other, without resources."""
    strategies: Any = import_module("ray.util.scheduling_strategies")
    return {"num_cpus": 0, "scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)}


def line(error: BaseException) -> str:
    """Return what an error says, in one line; Ray's messages have many."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def pinned(kind: type, node: Node, *arguments: Any, groups: Mapping[str, int] | None = None, **options: Any) -> Any:
    """Start an actor on a node, without resources, and return its handle at once. It is never moved to another node.

    Args:
        kind: the class. An instance is made in the actor's process, where ``profwin`` must be importable.
        node: where.
        arguments: of the class.
        groups: of threads, each with their number, for calls that are not to wait for others.
        options: of the actor, as ``max_concurrency`` or ``max_restarts``.
    """
    remote = import_module("ray").remote
    made = remote(concurrency_groups=dict(groups))(kind) if groups else remote(kind)
    return made.options(**placed(node), **options).remote(*arguments)


def answers(references: Mapping[K, Any], seconds: float) -> dict[K, Any]:
    """Wait for what has been asked side by side; return for each the answer, or the exception that it is.

    In any thread, also where an event loop runs: Ray warns of its own waiting there.

    Args:
        references: Ray's references to the answers.
        seconds: how long all of them together have; one that is late is a TimeoutError.
    """
    from concurrent.futures import wait

    futures = {key: reference.future() for key, reference in references.items()}
    wait(futures.values(), max(0.0, seconds))
    found: dict[K, Any] = {}
    for key, future in futures.items():
        if not future.done():
            found[key] = TimeoutError(f"it has not answered within {seconds:.3g} s")
        else:
            error = future.exception()
            found[key] = future.result() if error is None else error
    return found
