"""Engines on other nodes, as HTTP servers: the agent of their node starts and stops them, and holds their devices."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from profwin.errors import ProfwinError, SettingError, StateError
from profwin.ray.actors import ActorEngine
from profwin.ray.nodes import Node, matching, nodes
from profwin.step import checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from profwin.ray.actors import Sent
    from profwin.ray.agents import Agents

__all__ = ["NodeEngine", "located", "of_node"]

_CARRIED = 30.0
"""Seconds that an engine itself may take to start, besides what the agent waits for."""


class NodeEngine(ActorEngine):
    """An engine on another node; made by :meth:`profwin.ray.Agents.engine`.

    In the agent's process an ordinary window opens around the engine. So the devices are locked, and the mark of the
    engine's processes is written, on the engine's own host, with a journal and traces there.

    Attributes:
        ranks: those that the engine says it spans, if it does.
    """

    def __init__(self, agents: Agents, node: Node, order: dict[str, Any], timeout: float | None) -> None:
        super().__init__(agents.handle(node), order, timeout)
        self._agents, self._node = agents, node
        self._about: dict[str, Any] = {}
        self.name = f"{order['label']} on node {node}"
        self.ranks = order["ranks"]
        # The agent drives others as well.
        self.elsewhere = (f"{node.id}/{order['scope']}",)

    def send_start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> Sent:
        """Ask the agent to open a window around the engine, and do not wait."""
        self._about = {"step": metadata["step"], "name": metadata["name"]}
        return super().send_start(directory, prefix, metadata)

    def _limit(self, least: float) -> float:
        return super()._limit(least + _CARRIED)

    def _send_end(self, seconds: float) -> Sent:
        from profwin.ray.served import conclude

        order = {**self._order, **self._about, "patience": seconds}
        return self._send(partial(conclude, token=self._token, order=order), seconds)

    def _send(self, work: partial[dict[str, Any]], seconds: float) -> Sent:
        try:
            self._handle = self._agents.handle(self._node)
        except ProfwinError:
            pass  # what the last one that it had says counts
        return super()._send(work, seconds)

    def _stopped(self, answer: dict[str, Any]) -> None:
        if answer["problem"]:
            raise RuntimeError(answer["problem"])
        if answer["died"]:
            self.note("engine-died", answer["died"])
        elif not answer["known"] and self._recorded:
            stopped = (
                "the agent that took its place has stopped the engine" if answer["stopped"] else "nothing was left"
            )
            self.note("agent-died", f"the node's agent has died while it recorded; {stopped}; the traces are lost")

    def _dead(self, why: str) -> None:
        self.note("agent-died", f"the node's agent is gone, and no other has stopped it: {why}")


def of_node(
    agents: Agents, engine: object, node: Node | str | None, timeout: float | None, max_seconds: float | None
) -> object:
    """Return what :meth:`profwin.ray.Agents.engine` returns.

    Raises:
        SettingError: the engine cannot be driven so, or its node is not known.
        StateError: this process is not connected to a cluster.
        ProfwinError: the node has no agent.
    """
    from profwin.engines import adapt

    if isinstance(engine, (list, tuple)):
        raise SettingError("engine", engine, "one engine; make a list of what this returns for each")
    adapted = adapt(engine)
    ray = import_module("ray")
    if not ray.is_initialized():
        raise StateError("Ray is not initialized in this process", "call ray.init() first")
    seconds, longest = checked_seconds(timeout, "timeout"), checked_seconds(max_seconds)
    found = located(engine, node, nodes(), ray.get_runtime_context().get_node_id())
    if found is None:
        return engine
    try:
        carried = import_module("ray.cloudpickle").dumps(engine)
    except Exception as error:
        raise SettingError("engine", engine, f"one that can be pickled ({type(error).__name__}: {error})") from error
    order = {
        "engine": carried, "label": adapted.name, "scope": _scope(engine, adapted.name, carried), "devices": None,
        "ranks": getattr(engine, "ranks", None), "revocable": adapted.revocable, "max_seconds": longest,
    }  # fmt: skip
    return NodeEngine(agents, found, order, seconds)


def _scope(engine: object, label: str, carried: bytes) -> str:
    """Return what tells an engine apart from others of its node."""
    from zlib import crc32

    return label if isinstance(getattr(engine, "url", None), str) else f"{label} {crc32(carried):08x}"


def located(engine: object, node: Node | str | None, known: Iterable[Node], own: str) -> Node | None:
    """Find the node that an engine is on.

    Args:
        engine: with ``url``, where no node is given.
        node: a node, the beginning of its id, its host's name or its address.
        known: the living nodes.
        own: the id of this process's node.

    Returns:
        None where that is this process's own.

    Raises:
        SettingError: it is not exactly one.
    """
    known = list(known)
    if isinstance(node, Node):
        found = [each for each in known if each.id == node.id]
    elif node is not None:
        found = matching(known, node) if node else []
    else:
        url = getattr(engine, "url", None)
        if not isinstance(url, str):
            raise SettingError("node", node, f"a node, since {type(engine).__name__} has no url: {_listed(known)}")
        here, found = _at(url, known)
        if here:
            return None
    if len(found) != 1:
        there = "several nodes are" if found else "none is"
        raise SettingError("node", node, f"one of the living nodes, of which {there} meant: {_listed(known)}")
    return None if found[0].id == own else found[0]


def _at(url: str, known: list[Node]) -> tuple[bool, list[Node]]:
    """Say whether a URL leads to this host by a loop, and return the nodes whose host it may lead to."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    addresses = _addresses(host)
    if any(ip_address(each).is_loopback or ip_address(each).is_unspecified for each in addresses):
        return True, []
    return False, [each for each in known if host in (each.host, each.address) or addresses & _addresses(each.address)]


def _addresses(host: str) -> set[str]:
    import socket

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return set()
    return {str(place[0]).partition("%")[0] for *_, place in found}


def _listed(known: Iterable[Node]) -> str:
    return ", ".join(f"{each.id} ({each.host}, {each.address})" for each in known)
