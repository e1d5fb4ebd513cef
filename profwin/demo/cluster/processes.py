"""The actors of one run of the demo: profwin set up in the driver, and actors on the nodes, which all end with it."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from importlib import import_module

import profwin
from profwin.demo.child import ChildError
from profwin.demo.cluster.member import Member
from profwin.demo.processes import VARIABLES, set_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Self

    from profwin.demo.cluster.cluster import Cluster
    from profwin.demo.options import Options

__all__ = ["ActorProcesses"]

START = 300.0
"""Seconds that the actors of a run have to start: with eight nodes, they are sixteen processes that import torch."""
LAST_WORDS = 60.0


class ActorProcesses:
    """Configure profwin for the time of a ``with`` block, and end every actor started in it, whatever happens.

    Args:
        options: what is run.
        cluster: where.
    """

    def __init__(self, options: Options, cluster: Cluster) -> None:
        self._options, self._cluster = options, cluster
        self._members: list[Member] = []
        self._at_end = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # Backwards: first what is open is closed, which needs the actors, then they end.
            stack.callback(self._kill)
            stack.callback(profwin.shutdown)
            set_up(
                self._options,
                output=self._cluster.disk(self._options.hosts[0]),
                devices=None,
                lock_dir=os.path.join(self._cluster.directory, "locks"),
            )
            if self._options.profile is not None:
                from profwin.ray import agents

                stack.enter_context(agents())
            self._at_end = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._at_end.close()

    def start(self, kind: type, name: str, role: str, arguments: Mapping[str, tuple[Any, ...]]) -> list[Member]:
        """Start an actor for each of some devices, on its node, and do not wait.

        Args:
            kind: the actors' class.
            name: of each, in messages.
            role: in journals and paths.
            arguments: for each device, of the actor that records on it.
        """
        found = []
        for rank, (device, given) in enumerate(arguments.items()):
            host = self._options.host_of(device)
            found.append(Member(f"{name} on {host}", self._actor(kind, host, device, role, rank, given)))
        self._members += found
        return found

    def await_start(self) -> None:
        """Wait until all of them are up.

        Raises:
            ChildError: one is not.
        """
        for member in self._members:
            member.receive(member.send("__ray_ready__"), START)
        self._cluster.say(f"{self._options.loop}: {len(self._members)} actors are up")

    def end(self) -> None:
        """End profwin in all of them, so that their journals and the run's manifest are complete."""
        from profwin.demo.cluster.actors import end

        sent = [(member, member.handle.__ray_call__.remote(end)) for member in self._members]
        for member, each in sent:
            member.receive(each, LAST_WORDS)

    def _actor(self, kind: type, host: str, device: str, role: str, rank: int, arguments: tuple[Any, ...]) -> Any:
        from profwin.ray import environment
        from profwin.ray.nodes import pinned

        given = environment(
            {"env_vars": dict(VARIABLES)}, devices=device, role=role, rank=rank, output=self._cluster.disk(host)
        )
        return pinned(kind, self._cluster.nodes[host], *arguments, runtime_env=given)

    def _kill(self) -> None:
        ray: Any = import_module("ray")
        for member in self._members:
            with suppress(ray.exceptions.RayError, ChildError):
                ray.kill(member.handle)
