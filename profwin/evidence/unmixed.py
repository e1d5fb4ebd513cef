"""Unmixed: whether rollout and training never recorded one device at the same time, by what the journals say.

Order is by the monotonic clock, which all processes of a boot share: no journal is compared with another host's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from profwin.evidence import codes_run as codes
from profwin.evidence.endings import endings
from profwin.evidence.finding import Finding
from profwin.evidence.losses import cut_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.incidents import Asked, Overlap
    from profwin.evidence.run import Collection, Interval, Run

    Key = tuple[str, str]
    Held = tuple[int, int, Collection]

__all__ = ["unmixed"]

MOST_AT_ONCE = 3
"""Collections, those that last longest, that another one of their device is compared with: more prove no more."""

MOST_NAMED = 1000


def unmixed(run: Run, *, timeout: float | None = None) -> Iterator[Finding]:
    """Say what in a run is mixed, or may be: overlaps, handovers out of order, stops that were never confirmed.

    Args:
        run: the run.
        timeout: of the process group, in seconds, where the journals do not say it; None: not known.
    """
    devices = _devices(run)
    yield from _overlaps(run, devices)
    yield from _handovers(run, devices)
    yield from _unconfirmed(run, devices)
    yield from _all_taken(run)
    yield from endings(run, timeout)


def _devices(run: Run) -> dict[Key, list[Held]]:
    """Return the collections of each device, by the time they opened; one never closed lasts to its process's end.

    Those that disturb nothing there are left out.
    """
    devices: dict[Key, list[Held]] = {}
    for each in run.collections:
        if each.unlocked:
            continue
        process = each.process
        begin = process.monotonic(each.open)
        end = process.monotonic(each.close if each.close is not None else max(process.last, each.open))
        for key in each.keys:
            devices.setdefault((process.boot, key), []).append((begin, end, each))
    for held in devices.values():
        held.sort(key=lambda item: item[:2])
    return devices


def _what(each: Collection) -> str:
    return f"{each.purpose} {each.name!r} of step {each.step} by {each.process.label}"


def _both(first: Collection, second: Collection) -> str:
    if first.process is second.process:
        named = (f"{each.purpose} {each.name!r} of step {each.step}" for each in (first, second))
        return f"{' and '.join(named)}, both by {first.process.label}"
    return f"{_what(first)} and {_what(second)}"


def _overlaps(run: Run, devices: dict[Key, list[Held]]) -> Iterator[Finding]:
    for (_, key), held in sorted(devices.items(), key=lambda item: item[0]):
        still: list[Held] = []
        for begin, end, each in held:
            still = [item for item in still if item[1] > begin]
            for _, other_end, other in still[-MOST_AT_ONCE:]:
                seconds = (min(end, other_end) - begin) / 1e9
                mixed = each.purpose != other.purpose
                detail = f"device {key!r}: {_both(other, each)}, together for {seconds:.6f} s"
                data = {"device": key, "step": each.step, "seconds": seconds, "other": other.process.journal}
                code = codes.OVERLAP if mixed else codes.SHARED_DEVICE
                yield Finding(code, detail, run.path(each.process.journal), data=data)
            still = sorted([*still, (begin, end, each)], key=lambda item: item[1])[-MOST_AT_ONCE:]


def _handovers(run: Run, devices: dict[Key, list[Held]]) -> Iterator[Finding]:
    """Look for stages that began while a window's collection was still open on their device."""
    stages: dict[Key, list[tuple[int, Interval]]] = {}
    for each in run.intervals:
        if each.what == "stage":
            for key in each.keys:
                stages.setdefault((each.process.boot, key), []).append((each.process.monotonic(each.enter), each))
    for (boot, key), found in stages.items():
        found.sort(key=lambda item: item[0])
        times = [at for at, _ in found]
        for begin, end, window in devices.get((boot, key), ()):
            if window.purpose != "rollout":
                continue
            first = bisect_left(times, begin)
            during = found[first : min(bisect_left(times, end), first + MOST_NAMED)]
            # A stage that is a span of the window's own recording is on devices of its own.
            inside = [stage for _, stage in during if window not in stage.collections and not _harmless(stage)]
            if inside:
                names = ", ".join(sorted({repr(stage.name) for stage in inside})[:5])
                detail = f"device {key!r}: {len(inside)} stages ({names}) began while {_what(window)} went on"
                data = {"device": key, "step": window.step, "stages": len(inside)}
                data |= {"stage_site": inside[0].site, "window_site": _site(window)}
                yield Finding(codes.HANDOVER_ORDER, detail, run.path(window.process.journal), data=data)


def _harmless(stage: Interval) -> bool:
    return bool(stage.collections) and all(collection.unlocked for collection in stage.collections)


def _site(collection: Collection) -> str | None:
    return next((each.site for each in collection.intervals if each.site is not None), None)


def _unconfirmed(run: Run, devices: dict[Key, list[Held]]) -> Iterator[Finding]:
    """Look for training between an engine's start and the confirmation of its stop."""
    proofs = _proofs(run)
    for mark in run.marks:
        process = mark.process
        begin = process.monotonic(mark.at)
        end = None if mark.confirmed is None else process.monotonic(mark.confirmed)
        proven = {key: _first(proofs.get((process.boot, key), []), begin) for key in mark.devices if end is None}
        if end is None and (None in proven.values() or not proven):
            pids = ", ".join(map(str, mark.processes[:8]))
            detail = f"processes {pids}, on {', '.join(map(repr, mark.devices[:8])) or 'no known device'}"
            data = {"devices": list(mark.devices), "processes": list(mark.processes[:100])}
            yield Finding(codes.NO_STOP, detail, run.path(process.journal), data=data)
        for key in mark.devices:
            held = devices.get((process.boot, key), [])
            first = bisect_left(held, begin, key=lambda item: item[0])
            end = proven.get(key, end)
            for opened, _, each in held[first : first + MOST_NAMED]:
                if end is not None and opened >= end:
                    break
                if each.purpose == "training":
                    detail = f"device {key!r}: {_what(each)} began, and the stop was "
                    detail += "never confirmed" if end is None else f"confirmed {(end - opened) / 1e9:.6f} s later"
                    data = {"device": key, "step": each.step}
                    yield Finding(codes.UNCONFIRMED_HANDOVER, detail, run.path(each.process.journal), data=data)


def _proofs(run: Run) -> dict[Key, list[int]]:
    """Return when who took a device found that the engine marked on it was gone."""
    proofs: dict[Key, list[int]] = {}
    for proof in run.proofs:
        for key in proof.devices:
            proofs.setdefault((proof.process.boot, key), []).append(proof.process.monotonic(proof.at))
    for found in proofs.values():
        found.sort()
    return proofs


def _first(times: list[int], since: int) -> int | None:
    place = bisect_left(times, since)
    return times[place] if place < len(times) else None


def _all_taken(run: Run) -> Iterator[Finding]:
    asked: dict[int, list[Asked]] = {}
    overlaps: dict[int, list[Overlap]] = {}
    for each in run.asked:
        asked.setdefault(id(each.collection), []).append(each)
    for overlap in run.overlaps:
        overlaps.setdefault(id(overlap.process), []).append(overlap)
    for collection in run.collections:
        of_process = overlaps.get(id(collection.process), [])
        yield from _taken(run, collection, asked.get(id(collection), []), of_process)


def _taken(run: Run, collection: Collection, asked: list[Asked], overlaps: list[Overlap]) -> Iterator[Finding]:
    """Say who ended a collection early because of its device."""
    journal = run.path(collection.process.journal)
    data = {"step": collection.step, "name": collection.name, "devices": list(collection.devices)}
    if collection.reason == "stale":
        detail = f"{_what(collection)}, begun at {_site(collection) or 'an unknown place'}"
        yield Finding(codes.STALE_WINDOW, detail, journal, data=data)
        return
    cut = cut_off(collection)
    if not cut:
        return
    if collection.reason == "handover":
        by = ""
        last = bisect_right(overlaps, collection.close or 0, key=lambda overlap: overlap.at)
        overlap = overlaps[last - 1] if last else None
        if overlap is not None and overlap.at >= collection.open:
            by = f" by stage {overlap.stage!r} at {overlap.stage_site}; the window began at {overlap.window_site}"
            data |= {"stage": overlap.stage, "stage_site": overlap.stage_site, "window_site": overlap.window_site}
        yield Finding(codes.WINDOW_CLOSED_EARLY, f"{_what(collection)} was closed{by}", journal, data=data)
    elif collection.reason == "asked":
        by = "".join(
            f"; by pid {each.asker} for {each.purpose} {each.name!r} of step {each.step}" for each in asked[:3]
        )
        data |= {"askers": [each.asker for each in asked[:10]]}
        yield Finding(codes.GAVE_WAY, f"{_what(collection)} was closed{by}", journal, data=data)
