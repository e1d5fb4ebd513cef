"""Agents on the nodes of a Ray cluster: they take the loop's steps to every host, and answer for it."""

from __future__ import annotations

import threading
from dataclasses import asdict
from importlib import import_module

from profwin.errors import ProfwinError, SettingError, StateError
from profwin.ray.agent import Agent
from profwin.ray.crew import Crew
from profwin.ray.nodes import Node, answers
from profwin.ray.presence import needs_ray
from profwin.ray.relay import Relay
from profwin.step import checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from profwin.ray.agent import Identity
    from profwin.ray.crew import Seat

__all__ = ["Agents", "agents"]

_making = threading.Lock()


class Agents:
    """The agents of this run, one on each node; made by :func:`agents`. A context manager that ends them.

    Used from any thread. All that it asks of agents is bounded in time.
    """

    def __init__(self, relay: Relay | None) -> None:
        self._relay = relay

    def nodes(self) -> list[Node]:
        """Return the nodes that have an agent, in the order of their ids."""
        return [seat.node for seat in self._seats() if seat.identity is not None]

    def identities(self) -> dict[Node, Identity]:
        """Return who the agents are: process, host, lock directory and step board of each."""
        return {seat.node: seat.identity for seat in self._seats() if seat.identity is not None}

    def handle(self, node: Node) -> Any:
        """Return the actor's handle of a node's agent, which is started where there is none.

        Raises:
            ProfwinError: the node has none.
        """
        seat = self._seat(node)
        if (seat is None or seat.handle is None) and self._relay is not None:
            self._relay.begin(anew=True)
            seat = self._seat(node)
        if seat is None or seat.handle is None:
            raise ProfwinError(
                f"node {node} has no agent: {seat.problem if seat else 'it is none of the living nodes'}"
            )
        return seat.handle

    def each(self, function: Callable[..., Any], *args: Any, seconds: float | None = None) -> dict[Node, Any]:
        """Run a function in every agent's process, side by side.

        Args:
            function: of a module that can be imported there; it is given the agent, and then the arguments.
            *args: these.
            seconds: that all of them together have; default: the agents' ``timeout``.

        Returns:
            For each node what the function returned, or the exception.
        """
        asked, found = {}, {}
        for seat in self._seats():
            if seat.handle is None:
                continue
            try:
                asked[seat.node] = seat.handle.__ray_call__.remote(function, *args)
            except Exception as error:  # noqa: BLE001  # of whichever node: the others' answers count all the same
                found[seat.node] = error
        if not asked or self._relay is None:
            return found
        return {**found, **answers(asked, self._relay.crew.timeout if seconds is None else seconds)}

    def status(self, *, seconds: float | None = None) -> dict[str, Any]:
        """Return what is known of each node, as JSON values.

        Args:
            seconds: that all agents together have to answer; default: the agents' ``timeout``.

        Returns:
            ``nodes``: for each, by its id, ``address``, ``host``, ``agent`` (its identity), ``problem``, ``board`` (the
            sides of the host's step board) and ``devices`` (the states of the host's locks, as ``profwin locks --json``
            has them). What is not known is left out.
        """
        found = self.each(Agent.report, seconds=seconds)
        described: dict[str, Any] = {}
        for seat in self._seats():
            node, identity, answer = seat.node, seat.identity, found.get(seat.node)
            entry: dict[str, Any] = {"address": node.address, "host": node.host}
            if identity is not None:
                entry |= {"host": identity.host, "agent": asdict(identity)}
            if isinstance(answer, dict):
                entry |= answer
            elif isinstance(answer, BaseException) or seat.problem:
                entry["problem"] = seat.problem or str(answer)
            described[node.id] = entry
        return {"nodes": described}

    def engine(
        self, engine: object, node: Node | str | None = None, *, timeout: float | None = None,
        max_seconds: float | None = None,
    ) -> object:  # fmt: skip
        """Return an engine on another node as one for windows here: the agent of its node drives it.

        In the agent's process an ordinary window opens around the engine, as in :func:`profwin.ray.actors`. So its
        devices are locked, and the mark of its processes is written, on the host where it records, with a journal and
        traces there; the window here waits for the answers. Where the agent dies meanwhile, the devices are unknown
        until, at the window's end, the agent that takes its place has stopped the engine.

        Args:
            engine: of :mod:`profwin.engines`, or any object that can be ``engine=`` of a window and can be pickled,
                with its token if it has one. It must be installed there. What it says of devices and processes is
                asked on its node.
            node: where it is: a node, the beginning of a node's id, its host's name or its address. Default: the one
                that the host of the engine's ``url`` leads to.
            timeout: seconds that the agent gets to answer a start or a stop; default: those of the wait budget, and 60
                more for a start and 630 for a stop.
            max_seconds: for the window in the agent, as of :func:`profwin.rollout_window`.

        Returns:
            What a window takes as ``engine=``. The engine itself where it is on this process's own node, as one at
            ``localhost`` is, or where profwin is off.

        Raises:
            SettingError: the node is not one of the living, or not clear; or the engine cannot be driven so.
            StateError: this process is not connected to a cluster.
            ProfwinError: the node has no agent.
        """
        if self._relay is None:
            return engine
        from profwin.ray.servers import of_node

        return of_node(self, engine, node, timeout, max_seconds)

    def close(self) -> None:
        """End the agents that this process has started. The end of the session does so, too."""
        relay, self._relay = self._relay, None
        if relay is None:
            return
        position = relay.crew.session.position
        if position.relay is relay:
            position.relay = None
            relay.close()

    def __enter__(self) -> Agents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seat(self, node: Node) -> Seat | None:
        return next((seat for seat in self._seats() if seat.node.id == node.id), None)

    def _seats(self) -> list[Seat]:
        if self._relay is None:
            return []
        crew = self._relay.crew
        with crew.mutex:
            return crew.all() if crew.connected() else []


def agents(*, nodes: Iterable[Node | str] | None = None, timeout: float = 30.0) -> Agents:
    """See to it that every node of the cluster has an agent of this run; call it once, before the loop.

    From then on, whenever this process says at which step the loop is (windows, ``training_step``, loops), other hosts
    know it before the block's body runs: each selected step, and the first one after it that is not. Stages there are
    recorded in the selected steps alone, and with their number. Steps that stay unselected cost no call to Ray, and a
    stage's entry never does.

    An agent is an actor without resources, pinned to its node. It ends with the process that has started it, at the
    latest. It is replaced when it dies; a node that joins gets one when the next selected step begins. A second process
    of the run that calls this, such as a trainer on another node, shares them, and says its steps, too; so does a
    second call in one process.

    Nothing of this breaks the training: what cannot be had within the time limit is a finding (``agent-failed``,
    ``agent-late``, ``node-gone``), also under ``strict``, and a node that has kept a step waiting is not waited for
    again until it answers. It blocks: in an actor with coroutine methods, call it where the actor is made.

    Args:
        nodes: those that get one, or their ids; default: all, and those that join later.
        timeout: seconds that an agent gets to start, and that all together get to confirm a step.

    Returns:
        The agents; none where profwin is off.

    Raises:
        SettingError: an argument is wrong.
        StateError: this process is not connected to a cluster.
        ProfwinError: Ray is not installed.
    """
    needs_ray()
    from profwin.configuration import current

    seconds = checked_seconds(timeout, "timeout")
    if seconds is None:
        raise SettingError("timeout", timeout, "seconds, more than 0")
    if isinstance(nodes, str):
        raise SettingError("nodes", nodes, "a list of nodes, or of their ids")
    chosen = None if nodes is None else frozenset(node if isinstance(node, str) else node.id for node in nodes)
    session = current()
    if session is None:
        return Agents(None)
    if not import_module("ray").is_initialized():
        raise StateError("Ray is not initialized in this process", "call ray.init() before profwin.ray.agents()")
    with _making:
        there = session.position.relay
        known = there if isinstance(there, Relay) and there.usable else None
        relay = known or Relay(Crew(session))
        anew = known is None or relay.crew.chosen != chosen
        relay.crew.chosen, relay.crew.timeout = chosen, seconds
        relay.begin(anew=anew)
        if known is None:
            session.position.tell(relay)
            relay.settle()
    return Agents(relay)
