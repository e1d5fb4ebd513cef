"""Replicas whose servers are Ray actors, as engines: each server's process holds the devices that it records on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from profwin.ray.actors import ActorEngine

__all__ = ["Changing", "served"]


class Changing:
    """The engines of what holds replicas that come and go: verl's ``CheckpointEngineManager`` (0.9.1).

    A window is over those that are there when it begins, and to its end over the same ones: what is removed meanwhile
    is told to stop with the others, and what is added has its first recording in the next window.

    Args:
        holder: its ``replicas`` are read anew for each window.
    """

    def __init__(self, holder: Any) -> None:
        self._holder = holder
        self._watched = False

    def present(self) -> list[ActorEngine]:
        """Return the engines of the replicas that are there now; none where there are no replicas."""
        handles = _handles(self._holder.replicas)
        if not handles:
            return []
        if not self._watched:
            self._watched = True
            _see_to_agents()
        return _engines(handles)


def served(found: Any) -> list[ActorEngine] | Changing | None:
    """Return the engines that an object of a program stands for; None where it stands for no actors.

    On a cluster of several nodes it sees to :func:`profwin.ray.agents`, too: such a program's own calls do not, and its
    workers elsewhere could not tell the steps of the loop apart.

    Args:
        found: handles of actors; or replicas whose ``servers`` are such handles, one on each of their nodes: verl's
            ``RolloutReplica`` (0.9.1); or what holds such replicas in ``replicas``, where they come and go. Its servers
            are asynchronous actors, so they may be told to stop at any time.
    """
    held = getattr(found, "replicas", None)
    changing = isinstance(held, list)
    listed = held if changing else found
    if not isinstance(listed, (list, tuple)):
        return None
    handles = _handles(listed)
    # By its type: an object may have whatever attribute it is asked for.
    if any(type(handle).__name__ != "ActorHandle" for handle in handles):
        return None
    if changing:
        return Changing(found)
    if not handles:
        return None
    _see_to_agents()
    return _engines(handles)


def _engines(handles: list[Any]) -> list[ActorEngine]:
    from profwin.ray.actors import actors

    return actors(handles, revocable=True)


def _see_to_agents() -> None:
    from profwin.ray.agents import agents
    from profwin.ray.nodes import nodes

    if len(nodes()) > 1:
        agents()


def _handles(listed: Iterable[Any]) -> list[Any]:
    """Return the servers of replicas; what has none is an actor itself."""
    handles: list[Any] = []
    for each in listed:
        servers = getattr(each, "servers", None)
        handles += servers if isinstance(servers, (list, tuple)) else [each]
    return handles
