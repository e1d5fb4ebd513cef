"""Several engines behind one window, as one engine."""

from __future__ import annotations

import threading
from functools import partial

from profwin.engines.together import Request, in_loop, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from profwin.engines import Engine
    from profwin.engines.together import Asking, Call
    from profwin.registry.lock import Busy

__all__ = ["Member", "Several", "spans"]


class Member:
    """One of several engines.

    Attributes:
        engine: its adapter.
        name: its own, with its place in the list where others have the same.
        number: its place in the list, from 0.
        keys: of its devices.
    """

    __slots__ = ("engine", "keys", "name", "number")

    def __init__(self, engine: Engine, name: str, number: int) -> None:
        self.engine, self.name, self.number = engine, name, number
        self.keys: tuple[str, ...] = ()


class Several:
    """A list of engines, as one engine that a window sees.

    Those whose methods may be called from any thread, or are coroutine functions, are told side by side; all others one
    after the other, in the thread in which the window's block is entered and left. An engine that cannot be had,
    refuses or fails to start keeps no other one from recording, and one whose stop is not confirmed makes only its own
    devices unknown.

    The devices that an engine names are its own: of two that name the same one only the first in the list records,
    since two recordings of one device disturb each other. Engines that name none share those of the window.

    Args:
        engines: their adapters, each once.

    Attributes:
        members: those that are to record.
        left_out: the names of those that are not, and why.
    """

    def __init__(self, engines: Iterable[Engine]) -> None:
        parts = list(engines)
        names = [part.name for part in parts]
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        self.members = [
            Member(part, name if counts[name] == 1 else f"{name} {number + 1}", number)
            for number, (part, name) in enumerate(zip(parts, names, strict=True))
        ]
        self.left_out: list[tuple[str, str]] = []
        self._loop: AbstractEventLoop | None = None
        self._thread = 0

    @property
    def parts(self) -> tuple[Engine, ...]:
        """The engines that are to record."""
        return tuple(member.engine for member in self.members)

    @property
    def name(self) -> str:
        """All their names."""
        return ", ".join(member.name for member in self.members)

    @property
    def revocable(self) -> bool:
        """Whether each of them may be stopped from any thread at any time."""
        return all(part.revocable for part in self.parts)

    @property
    def in_process(self) -> bool:
        """Whether one of them records in this process."""
        return any(part.in_process for part in self.parts)

    @property
    def detached(self) -> bool:
        """Whether all can be told while the caller goes on: beside its thread, or in the event loop that it runs."""
        return self._loop is not None or all(part.detached for part in self.parts)

    def attach(self, loop: AbstractEventLoop) -> None:
        """Use an event loop; where one of them needs it, also for those that are told in the caller's thread."""
        here = threading.get_ident()
        for part in self.parts:
            part.attach(loop)
        if any(part.needs(here) for part in self.parts):
            self._loop, self._thread = loop, here

    def obstacle(self) -> str | None:
        """Return None: each has its own."""
        return None

    def needs(self, thread: int) -> bool:
        """Say whether one of them needs the event loop of a thread."""
        return any(part.needs(thread) for part in self.parts)

    @property
    def devices(self) -> tuple[str, ...] | None:
        """None: see :meth:`locate`."""
        return None

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes of all of them."""
        return tuple(dict.fromkeys(pid for part in self.parts for pid in part.process_ids))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all their devices."""
        return tuple(sorted({key for member in self.members for key in member.keys}))

    def locate(self, keys: Callable[[Engine], tuple[str, ...]]) -> tuple[str, ...]:
        """Find out where each of them records, and return the keys of all their devices.

        Args:
            keys: returns those of one engine.
        """
        owners: dict[str, str] = {}
        for member in list(self.members):
            member.keys = keys(member.engine)
            if not member.engine.devices:
                continue
            taken = next((key for key in member.keys if key in owners), None)
            if taken is not None:
                self._leave_out(member, f"{owners[taken]} records on {taken}, which it names too")
            else:
                owners.update(dict.fromkeys(member.keys, member.name))
        return self.keys

    def without(self, busy: Busy) -> bool:
        """Leave out those that record on a device that cannot be had; False where all do."""
        barred = [member for member in self.members if busy.device in member.keys]
        if len(barred) == len(self.members):
            return False
        for member in barred:
            self._leave_out(member, f"{busy.device} is held by {busy.describe()}")
        return True

    def _leave_out(self, member: Member, why: str) -> None:
        self.members.remove(member)
        self.left_out.append((member.name, why))

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """What stands for those that lock their devices themselves."""
        return tuple(each for member in self.members for each in getattr(member.engine, "elsewhere", ()))

    def each(
        self,
        works: Mapping[Member, Callable[[], Asking]],
        undo: Callable[[Member], object] | None = None,
        patience: float | None = None,
    ) -> tuple[dict[Member, BaseException | None], BaseException | None]:
        """Do a piece of work for members, side by side where that may be.

        Args:
            works: for each member what begins it, which yields where it waits for an answer: see
                :class:`profwin.engines.together.Request`.
            undo: undoes the work of one, where it is done only after this method has returned.
            patience: seconds that those which are not told in this thread are waited for; None: until they answer.

        Returns:
            How each failed, and what interrupted this thread: see :func:`profwin.engines.together.together`.
        """
        elsewhere = self._loop is not None and threading.get_ident() != self._thread
        calls: list[tuple[Call, bool]] = []
        members = list(works)
        for member, work in works.items():
            request = Request(work)
            if hasattr(member.engine, "send_start"):
                calls.append((request, True))
            elif elsewhere and not member.engine.detached and self._loop is not None:
                calls.append((partial(in_loop, self._loop, request.alone), True))
            else:
                calls.append((request.alone, member.engine.detached))
        outcomes, interrupt = together(calls, None if undo is None else lambda number: undo(members[number]), patience)
        return dict(zip(members, outcomes, strict=True)), interrupt

    def start(self, directory: str, prefix: str, metadata: dict[str, Any]) -> None:
        """Not for use: each is started by itself."""
        raise NotImplementedError

    def stop(self) -> list[str]:
        """Not for use: each is stopped by itself."""
        raise NotImplementedError

    def export(self, directory: str, prefix: str) -> list[str]:
        """Not for use: each is asked by itself."""
        raise NotImplementedError


def spans(engine: object) -> tuple[int, ...] | None:
    """Return the ranks of the devices that an engine spans, in the whole launch; None where it does not say.

    It says so by ``ranks``, or as verl's replicas do by ``replica_rank`` and ``world_size``: replica `r` of `n` devices
    spans `r * n` up to `(r + 1) * n` (verl 0.9.1, ``build_rollout_dist_profiler``).
    """
    given = getattr(engine, "ranks", None)
    if isinstance(given, (list, tuple, set, frozenset, range)) and all(isinstance(rank, int) for rank in given):
        return tuple(given)
    replica, size = getattr(engine, "replica_rank", None), getattr(engine, "world_size", None)
    if isinstance(replica, int) and isinstance(size, int) and size > 0 and replica >= 0:
        return tuple(range(replica * size, (replica + 1) * size))
    return None
