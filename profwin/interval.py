"""Intervals: the windows, stages and spans of user code."""

from __future__ import annotations

import itertools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.backends import LastingRange
    from profwin.collection import Collection
    from profwin.engines import Engine
    from profwin.registry.lock import Busy

__all__ = ["Interval", "intersect", "number"]

_numbers = itertools.count(1)


def number() -> int:
    """Return the next number in this process, for an interval or a collection in its journal."""
    return next(_numbers)


class Interval:
    """A window, stage or span of user code, from its entry to its exit.

    Attributes:
        what: ``"window"``, ``"stage"`` or ``"span"``.
        purpose: ``"rollout"`` for a window, else ``"training"``.
        name, step, role: as the journal has them.
        keys: device keys; empty where the process stands for its device.
        elsewhere: of an engine that locks its devices itself, what stands for it here, where there are no keys.
        site: ``file:line`` of the code.
        engine: what records, where that is not this process.
        scoped: whether it begins and ends in one thread, so that a named range may mark it in the trace.
        occurrence: number of this name in this step and process, from 1.
        version: version of the weights that it generates with, where it says so.
        max_seconds: after how long its recording is cut; None for never.
        deadline: when that is, on :mod:`profwin.clock`, once it is recorded.
        left: whether it has ended.
        refused: whether it was turned away for want of a device.
        skipped: why it runs unrecorded: the reason, and what else there is to say; None while nothing said so.
        collection: what records it, once it is known; None if it runs unrecorded.
        token: what another process calls it that had this one begin it; None if nobody did.
        lasting_range: the named range that marks it, where that may outlast its collection.
    """

    __slots__ = (
        "collection",
        "deadline",
        "elsewhere",
        "engine",
        "identifier",
        "keys",
        "lasting_range",
        "left",
        "max_seconds",
        "name",
        "occurrence",
        "purpose",
        "refused",
        "role",
        "scoped",
        "site",
        "skipped",
        "step",
        "token",
        "version",
        "what",
    )

    def __init__(
        self, what: str, name: str, step: int, keys: tuple[str, ...], site: str, *, role: str,
        engine: Engine | None = None, scoped: bool = False, occurrence: int = 1, version: int | None = None,
        max_seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.identifier = number()
        self.what, self.name, self.step, self.keys, self.site = what, name, step, keys, site
        self.purpose = "rollout" if what == "window" else "training"
        self.role, self.engine, self.scoped, self.occurrence = role, engine, scoped, occurrence
        self.elsewhere: tuple[str, ...] = () if keys else getattr(engine, "elsewhere", ())
        self.version, self.max_seconds = version, max_seconds
        self.left = self.refused = False
        self.deadline: float | None = None
        self.skipped: tuple[str, str] | None = None
        self.collection: Collection | None = None
        self.token: str | None = None
        self.lasting_range: LastingRange | None = None

    @property
    def own(self) -> bool:
        """Whether what records it records in this process, which has one session for all: no engine, or such a one."""
        return self.engine is None or self.engine.in_process

    def without(self, busy: Busy) -> bool:
        """Go on without a device that cannot be had, where some of several engines are on others; False where not."""
        leave_out = getattr(self.engine, "without", None)
        if leave_out is None or not leave_out(busy):
            return False
        self.keys = getattr(self.engine, "keys", ())
        return True


def intersect(some: tuple[str, ...], others: tuple[str, ...], elsewhere: tuple[str, ...] = ()) -> bool:
    """Say whether two sets of device keys share a device; an empty one is the process itself, so it always does.

    But the process is no device of what records `elsewhere`, whose names stand for the others' keys.
    """
    if not elsewhere and (not some or not others):
        return True
    others = others or elsewhere
    for key in some:  # noqa: SIM110  # a generator costs three times as much, and this is asked for each open collection
        if key in others:
            return True
    return False
