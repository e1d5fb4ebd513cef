"""Endings: how processes and recordings ended, late, slowly, or not at all."""

from __future__ import annotations

from profwin.evidence import codes_run as codes
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.run import Collection, Run

__all__ = ["DEFAULT_TIMEOUT", "endings"]

DEFAULT_TIMEOUT = 600.0
"""Seconds; of a process group with NCCL, by ``torch.distributed.constants``. With Gloo it is 1800."""

_OWN_CODE = {"late-stop": codes.LATE_STOP, "engine-died": codes.ENGINE_DIED}


def endings(run: Run, timeout: float | None = None) -> Iterator[Finding]:
    """Say which processes died, above all while they recorded, which locks were lost, and which stops were slow.

    Args:
        run: the run.
        timeout: of the process group, in seconds, where its journals do not say it; None: not known, so torch's default
            is taken.
    """
    recording = set()
    for each in run.collections:
        if each.close is None:
            recording.add(id(each.process))
            yield _never_closed(run, each)
    for process in run.processes:
        if process.end is None and id(process) not in recording:
            detail = f"{process.label}, last heard of {(process.last - process.begin) / 1e9:.3f} s after its begin"
            yield Finding(codes.NO_END, detail, run.path(process.journal))
    for lost in run.lost:
        what = "" if lost.collection is None else f" while it recorded {lost.collection.name!r} of step "
        what += "" if lost.collection is None else str(lost.collection.step)
        detail = f"device {lost.device!r}, by {lost.process.label}{what}"
        yield Finding(codes.LOST_LOCK, detail, run.path(lost.process.journal), data={"device": lost.device})
    for note in run.notes:
        if note.code in _OWN_CODE:
            yield Finding(_OWN_CODE[note.code], note.detail, run.path(note.process.journal))
    yield from _slow(run, timeout)


def _never_closed(run: Run, each: Collection) -> Finding:
    process = each.process
    detail = f"{each.purpose} {each.name!r} of step {each.step} by {process.label}"
    if process.end is None:
        detail += f"; its last record came {(process.last - each.open) / 1e9:.3f} s after the recording began"
    code = codes.DIED_RECORDING if process.end is None else codes.NEVER_CLOSED
    data = {"step": each.step, "name": each.name, "devices": list(each.devices)}
    return Finding(code, detail, run.path(process.journal), data=data)


def _slow(run: Run, timeout: float | None) -> Iterator[Finding]:
    """Look for training whose stop and export kept the other ranks waiting in the next collective."""
    for each in run.collections:
        if each.purpose != "training" or each.process.world == 1:
            continue
        writing = {export.backend: export.seconds for export in each.exports}  # of one backend the last one has it all
        seconds = each.stop_seconds + sum(writing.values())
        known = next((export.group_timeout for export in each.exports if export.group_timeout), timeout)
        limit = (known or DEFAULT_TIMEOUT) / 4
        if seconds > limit:
            source = f"a quarter of {known or DEFAULT_TIMEOUT:g} s" + ("" if known else ", torch's for NCCL")
            detail = f"{each.name!r} of step {each.step} by {each.process.label}: {seconds:.1f} s, over {source}"
            data = {"step": each.step, "seconds": seconds, "limit": limit}
            yield Finding(codes.SLOW_STOP, detail, run.path(each.process.journal), data=data)
