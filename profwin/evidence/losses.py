"""Losses: what ran unrecorded, what was recorded only in part, and traces that were never written or are gone."""

from __future__ import annotations

from profwin.evidence import codes_run as codes
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from profwin.evidence.finding import Code
    from profwin.evidence.run import Collection, Interval, Run, Skip

__all__ = ["cut_off", "exports", "losses"]

REASONS = {
    "busy": codes.SKIPPED_BUSY,
    "peer": codes.SKIPPED_PEER,
    "unknown": codes.SKIPPED_UNKNOWN,
    "self": codes.SKIPPED_THREAD,
    "thread": codes.SKIPPED_THREAD,
    "foreign": codes.SKIPPED_FOREIGN,
    "registry": codes.SKIPPED_FAILED,
    "backend": codes.SKIPPED_FAILED,
    "engine": codes.SKIPPED_FAILED,
    "paused": codes.SKIPPED_PAUSED,
    "ended": codes.SKIPPED_PAUSED,
}
TAKEN = ("handover", "stale", "asked")
"""Reasons that are about who else needed a device: see `profwin.evidence.unmixed`."""

EXPORTING = ("torch", "torch_npu", "memory")
"""Backends that leave a trace for each collection, or say why not."""


def losses(run: Run) -> Iterator[Finding]:
    """Say what ran unrecorded, with its reason and who held the device, and what was recorded only in part."""
    for skip in run.skips:
        yield _skipped(run, skip)
    for each in run.intervals:
        if each.what != "span" and each.collection is None and each.skip is None:
            detail = f"{_named(each)}, by {each.process.label}"
            yield Finding(codes.UNRECORDED, detail, run.path(each.process.journal), data=_data(each))
        elif each.what != "span" and each.status == "error" and each.collection is not None:
            detail = f"{_named(each)}: {each.error or 'an exception'}"
            yield Finding(codes.FAILED_BODY, detail, run.path(each.process.journal), data=_data(each))
    for collection in run.collections:
        yield from _ended(run, collection)


def exports(run: Run) -> Iterator[Finding]:
    """Say which traces could not be written, are gone, or have another size than their journal says."""
    for collection in run.collections:
        journal = run.path(collection.process.journal)
        what = f"{collection.name!r} of step {collection.step}"
        data = {"step": collection.step, "purpose": collection.purpose, "name": collection.name}
        for export in collection.exports:
            if export.path is None:
                detail = f"{what}: {export.error or 'no reason is given'}"
                yield Finding(codes.EXPORT_FAILED, detail, journal, data=data | {"backend": export.backend})
            elif export.found is None:
                yield Finding(codes.TRACE_ELSEWHERE, f"{what}: {export.path!r}", journal, data=data)
            elif export.found < 0:
                yield Finding(codes.TRACE_MISSING, f"{what}, {export.size} bytes", run.path(export.path), data=data)
            elif export.size is not None and export.found != export.size:
                detail = f"{export.found} bytes, and {export.size} when it was written"
                yield Finding(codes.TRACE_SIZE, detail, run.path(export.path), data=data)
        wanted = [backend for backend in collection.backends if backend in EXPORTING]
        lacking = [name for name in wanted if all(export.backend != name for export in collection.exports)]
        if lacking and collection.close is not None and collection.error is None:
            detail = f"{what}: nothing from {', '.join(lacking)}"
            yield Finding(codes.NOT_EXPORTED, detail, journal, data=data)


def _named(interval: Interval) -> str:
    number = f", number {interval.occurrence}" if interval.occurrence != 1 else ""
    return f"{interval.what} {interval.name!r} of step {interval.step}{number}"


def _data(interval: Interval) -> dict[str, Any]:
    data = {"step": interval.step, interval.what: interval.name, "rank": interval.process.rank}
    return {name: value for name, value in data.items() if value is not None}


def _skipped(run: Run, skip: Skip) -> Finding:
    code = REASONS.get(skip.reason, codes.SKIPPED_FAILED)
    what = _named(skip.interval) if skip.interval is not None else "something that did not begin"
    detail = f"{what}, by {skip.process.label}: {skip.reason}"
    if skip.device is not None:
        detail += f", device {skip.device!r}"
    if skip.holder is not None:
        detail += f", held by {skip.holder}"
    if skip.waited >= 0.001:
        detail += f", after a wait of {skip.waited:.3f} s"
    if skip.detail is not None:
        detail += f": {skip.detail}"
    data: dict[str, Any] = {"reason": skip.reason, "device": skip.device, "holder": skip.holder}
    data = {name: value for name, value in data.items() if value is not None}
    if skip.interval is not None:
        data |= _data(skip.interval)
    return Finding(code, detail, run.path(skip.process.journal), data=data)


def _ended(run: Run, collection: Collection) -> Iterator[Finding]:
    """Say how a collection ended before what it recorded was over."""
    if collection.close is None or collection.reason is None:
        return
    journal = run.path(collection.process.journal)
    what = f"{collection.name!r} of step {collection.step}, segment {collection.segment}"
    data = {"step": collection.step, "name": collection.name, "reason": collection.reason}
    if collection.error is not None:
        yield Finding(codes.PROFILER_FAILED, f"{what}: {collection.error}", journal, data=data)
    code = _code(collection)
    if code is not None:
        inside = ", ".join(_named(each) for each in cut_off(collection)[:3])
        detail = f"{what} was ended ({collection.reason}) while {inside} went on"
        yield Finding(code, detail, journal, data=data)


def _code(collection: Collection) -> Code | None:
    cut = cut_off(collection)
    if not cut or collection.reason in TAKEN:
        return None
    if all(each.collections[-1] is not collection for each in cut):
        return codes.CONTINUED
    if collection.reason == "cut":
        return codes.CUT_SHORT
    return codes.CLOSED_EARLY


def cut_off(collection: Collection) -> list[Interval]:
    """Return the windows and stages that were still running when their collection was closed."""
    close = collection.close
    return [
        each
        for each in collection.intervals
        if each.what != "span" and close is not None and (each.exit is None or each.exit > close)
    ]
