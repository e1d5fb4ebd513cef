"""Wholeness of a run's traces: each that a journal names is the one that it names, and is what was written.

Whether a recording is whole in itself is said by the reader of its format; that a named file is there at all, and has
its size, by `profwin.evidence.presence`.
"""

from __future__ import annotations

import posixpath

from profwin.evidence import codes_check as codes
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from profwin.evidence.model import Recording
    from profwin.evidence.run import Collection, Export, Run

__all__ = ["check_traces", "named_traces", "unnamed"]

CLOCK_TOLERANCE = 50_000_000
"""Nanoseconds by which a trace may stick out of its collection: the profiler's clock is another one."""

READ = ("torch", "torch_npu", "nsys", "engine")
"""What writes files that are read here. Of those of others, as snapshots of memory and what a third party's backend
writes, only their presence and their size are known."""

_SAME = ("purpose", "step", "name", "occurrence", "segment")
"""What both a trace and its collection say; beside these, the run, its attempt, and the collection's number."""


def named_traces(run: Run) -> dict[str, tuple[Collection, Export]]:
    """Return the traces that a run's journals say are complete, by their paths below what is checked."""
    named = {}
    for collection in run.collections:
        for export in collection.exports:
            if export.path is not None:
                named[posixpath.normpath(run.path(export.path))] = (collection, export)
    return named


def check_traces(run: Run, recordings: Mapping[str, Recording], unread: Container[str] = ()) -> Iterator[Finding]:
    """Compare the traces that a run's journals name with what the files hold.

    Args:
        run: the run.
        recordings: all that were read, by path.
        unread: paths of those that could not be read, which has been said.

    Yields:
        What does not agree; and for each other recording in the run's directory that it stands alone.
    """
    named = named_traces(run)
    for path, (collection, export) in named.items():
        recording = recordings.get(path)
        if recording is None:
            if export.backend in READ and export.found is not None and export.found >= 0 and path not in unread:
                yield Finding(codes.TRACE_UNREADABLE, f"{export.found} bytes of something else", path)
            continue
        yield from _identity(recording, collection)
        yield from _times(recording, collection)
    prefix = f"{run.prefix}/" if run.prefix else ""
    for path in recordings:
        if path.startswith(prefix) and path not in named:
            yield Finding(codes.TRACE_NOT_IN_JOURNAL, f"a {recordings[path].format} recording", path)


def _identity(recording: Recording, collection: Collection) -> Iterator[Finding]:
    said = recording.metadata.get("profwin")
    if not isinstance(said, dict):
        return  # an engine's: it knows nothing of the run
    process = collection.process
    expected = {field: getattr(collection, field) for field in _SAME}
    expected |= {"run": process.run, "attempt": process.attempt, "collection": collection.identifier}
    different = [
        f"{field} {said[field]!r}, not {expected[field]!r}"
        for field in expected
        if field in said and said[field] != expected[field]
    ]
    if different:
        data = {"journal": process.journal, "said": {field: said.get(field) for field in expected}}
        yield Finding(codes.TRACE_OF_ANOTHER, f"it says {'; '.join(different)}", recording.path, data=data)


def _times(recording: Recording, collection: Collection) -> Iterator[Finding]:
    if recording.window is None or recording.clock.kind != "wall":
        return
    start, end = recording.window
    early = collection.open - start
    late = 0 if collection.close is None else end - collection.close
    if max(early, late) > CLOCK_TOLERANCE:
        detail = f"it lies {max(early, late) / 1e9:.3f} s outside"
        yield Finding(codes.TRACE_OUTSIDE_COLLECTION, detail, recording.path, data={"early": early, "late": late})


def unnamed(runs: Iterable[Run], recordings: Iterable[Recording]) -> list[Recording]:
    """Return the recordings that no journal names."""
    named = {path for run in runs for path in named_traces(run)}
    return [recording for recording in recordings if recording.path not in named]
