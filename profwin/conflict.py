"""The conflict rules: who joins whom, who makes way for whom, who waits. Pure functions."""

from __future__ import annotations

from profwin.interval import intersect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.collection import Collection
    from profwin.interval import Interval
    from profwin.registry.holder import Holder

__all__ = ["goes_on", "joins", "meet", "waits_for"]


def meet(interval: Interval, keys: tuple[str, ...], elsewhere: tuple[str, ...] = (), *, ours: bool) -> bool:
    """Say whether an interval and a collection concern each other: they share a device, or this process's one session.

    Args:
        interval: what is about to begin.
        keys: devices of the collection.
        elsewhere: what stands for them where it locks none; as of an interval.
        ours: whether it is recorded in this process.
    """
    return (ours and interval.own) or intersect(interval.keys or interval.elsewhere, keys, elsewhere)


def goes_on(collection: Collection, step: int, continues: Callable[[int, int], bool]) -> bool:
    """Say whether a training collection reaches into a step: its own, or the next one where recordings continue."""
    return collection.through == step or continues(collection.through, step)


def joins(interval: Interval, collection: Collection, continues: Callable[[int, int], bool]) -> bool:
    """Say whether an interval becomes part of an open collection that it meets; else that collection has to make way.

    - A window joins another of the same step; one of another step is stale.
    - A window inside a stage's body is part of that stage. Between the stages of a step it gets the device.
    - A stage inside a window of its device ends the window. If their devices differ, only the process's session is
      shared,
      and the stage is part of it.
    - A stage joins what records training: the stage around it, one in another thread, or the step's collection.
    """
    if interval.what == "window":
        if collection.purpose == "rollout":
            return collection.step == interval.step
        return bool(collection.members)
    if collection.purpose == "rollout":
        return not intersect(interval.keys, collection.keys)
    return bool(collection.members) or goes_on(collection, interval.step, continues)


def waits_for(interval: Interval, holder: Holder | None, on_busy: str, fellow: Callable[[Holder], bool]) -> bool:
    """Say whether an interval waits for a device that another process holds, or that is unknown (no holder).

    A stage never waits for another process's training: that one's body may need this process in a collective, and
    waiting stalls every rank (3.0 s a stage in a run of two ranks, measured). A window of a rank does not wait for the
    training of a fellow rank either: it needs this one just as much (two ranks on one device, with an all-reduce in
    their first stage, else spent the wait budget once a step, measured).

    Args:
        interval: what wants the device.
        holder: who has it.
        on_busy: the setting.
        fellow: says of a holder whether it is another rank of this process's group.
    """
    if on_busy != "wait":
        return False
    return holder is None or holder.kind != "training" or (interval.what == "window" and not fellow(holder))
