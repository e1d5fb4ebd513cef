"""Clocks of the cluster's hosts, measured through the node agents, for evidence that spans several hosts.

The question is what another host's monotonic clock shows when ours shows something. It is answered as NTP does (RFC
5905): ask, and take the answer for one given midway between question and answer. However the time was spread over the
two ways, that is wrong by no more than half of it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from profwin.ray.agent import Identity
    from profwin.ray.nodes import Node

    Ask: TypeAlias = Callable[[], int]
    Host: TypeAlias = tuple[str, str]
    """Its boot id and its name."""

__all__ = ["Clock", "Watch", "estimate", "others"]

EXCHANGES = 10
"""The first ones after a while are slow: ±1.0 ms, and ±0.3 ms from the sixth on (two raylets on one machine)."""
EVERY = 10.0
"""Seconds between two rounds: at 50 millionths two clocks drift apart by 0.5 ms meanwhile."""
PATIENCE = 5.0
"""Seconds that one round may take. Hosts that it does not come to are the first ones of the next."""
ANSWER = 1.0
"""Seconds that one answer may take."""
LAST = 2.0
"""Seconds that the last round may take: the session's end waits for it."""


@dataclass(frozen=True)
class Clock:
    """What another clock was ahead of ours at one moment, in nanoseconds.

    Attributes:
        at: the moment, on our clock.
        offset: what the other was ahead.
        uncertainty: by how much that may be wrong, at most.
    """

    at: int
    offset: int
    uncertainty: int


def estimate(ask: Ask, exchanges: int = EXCHANGES, now: Callable[[], int] = time.monotonic_ns) -> Clock:
    """Measure another clock: the best of several exchanges, which is the one with the shortest way.

    Args:
        ask: returns what the other clock shows, in nanoseconds.
        exchanges: how often to ask.
        now: our clock.

    Raises:
        Exception: what ``ask`` raises.
    """
    return min((_exchange(ask, now) for _ in range(exchanges)), key=lambda found: found.uncertainty)


def _exchange(ask: Ask, now: Callable[[], int]) -> Clock:
    before = now()
    shown = ask()
    after = now()
    middle, half = (before + after) // 2, (after - before + 1) // 2
    # A thousandth more, since the clocks do not run alike: Linux lets a clock be slewed by half of that.
    return Clock(middle, shown - middle, half + half // 1000 + 1)


class Watch:
    """Measures the clocks of other hosts now and then, each round in a thread of its own, and writes them down.

    Nothing here raises, and nothing but `close` waits. A host that does not answer is left out of the round; evidence
    then goes by what else is known of its clock, and says how.

    Args:
        others: returns, for each other host, what asks for its clock. Called in the thread, each round anew.
        write: called for each measurement with the fields of the journal's kind ``clock``.
    """

    def __init__(self, others: Callable[[], Mapping[Host, Ask]], write: Callable[..., Any]) -> None:
        self._others, self._write = others, write
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._due = 0.0
        self._closed = False
        self._measured: dict[Host, float] = {}

    def begin(self) -> None:
        """Begin a round, unless one is on, or began less than `EVERY` seconds ago."""
        with self._mutex:
            if not self._closed and time.monotonic() >= self._due and not self._busy():
                self._start(PATIENCE)

    def close(self, seconds: float = LAST) -> None:
        """Measure once more, if ever, so that what lies between can be interpolated, and then no more.

        Args:
            seconds: how long that may take; then it is given up.
        """
        with self._mutex:
            if self._closed:
                return
            self._closed, thread = True, self._thread
        deadline = time.monotonic() + seconds
        if thread is not None:
            thread.join(seconds)
        with self._mutex:
            if thread is not None and not self._busy():
                self._start(max(0.0, deadline - time.monotonic()))
            thread = self._thread
        if thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._due = time.monotonic() + EVERY
        self._thread = threading.Thread(target=self._round, args=(deadline,), name="profwin-clocks", daemon=True)
        self._thread.start()

    def _round(self, deadline: float) -> None:
        try:
            others = self._others()
        except Exception as error:  # noqa: BLE001  # the cluster, or this process's part in it, may be at its end
            _note(f"the other hosts' clocks cannot be asked for: {error}")
            return
        for host in sorted(others, key=lambda each: self._measured.get(each, 0.0)):
            if time.monotonic() >= deadline:
                return
            try:
                clock = estimate(others[host])
            except Exception as error:  # noqa: BLE001  # whatever keeps one host from answering: the others do
                _note(f"the clock of host {host[1]} could not be measured: {error}")
                continue
            self._measured[host] = time.monotonic()
            self._write(
                boot=host[0], host=host[1], at=clock.at, offset=clock.offset, uncertainty=clock.uncertainty
            )  # fmt: skip


def others(identities: Mapping[Node, Identity], handle: Callable[[Node], Any], own: str) -> dict[Host, Ask]:
    """Return what asks for the clock of each other host, through one of its agents.

    Args:
        identities: of the agents.
        handle: returns the handle of a node's agent.
        own: the id of this process's boot.
    """
    found: dict[Host, Ask] = {}
    for node, identity in identities.items():
        if identity.boot != own:
            found.setdefault((identity.boot, identity.host), _asker(handle, node))
    return found


def _asker(handle: Callable[[Node], Any], node: Node) -> Ask:
    def ask() -> int:
        ray: Any = import_module("ray")
        if not ray.is_initialized():
            raise RuntimeError("Ray was shut down")  # asking now would make it start again
        # Not by ray.get: a thread that is inside of that when the user shuts Ray down ends the process (measured).
        monotonic, _wall = handle(node).clock.remote().future().result(ANSWER)
        return int(monotonic)

    return ask


def _note(what: str) -> None:
    import logging

    logging.getLogger("profwin").debug("%s", what)
