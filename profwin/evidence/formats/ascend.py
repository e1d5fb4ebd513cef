"""Reader of `*_ascend_pt` folders, as torch_npu's profiler leaves them: raw data, and the results of its analysis."""

from __future__ import annotations

import os
import sqlite3

from profwin.evidence import codes_ascend as codes
from profwin.evidence import codes_files
from profwin.evidence.codes_others import UNREADABLE
from profwin.evidence.finding import Finding
from profwin.evidence.formats.ascend_arrows import table_arrows
from profwin.evidence.formats.ascend_counters import table_values
from profwin.evidence.formats.ascend_db import read_database
from profwin.evidence.formats.ascend_files import DATABASE, OUTPUT, TRACE, read_raw, result_findings, results, step_rows
from profwin.evidence.formats.ascend_info import entries, read_info
from profwin.evidence.formats.ascend_rows import timeline_slices
from profwin.evidence.formats.ascend_tables import table_slices
from profwin.evidence.formats.ascend_trace import read_timeline
from profwin.evidence.formats.damage import Damage
from profwin.evidence.formats.database import missing_bytes, open_database
from profwin.evidence.formats.kineto_metadata import kept, name_in
from profwin.evidence.formats.names import combined, name_of
from profwin.evidence.model import Clock, Name, Recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.formats.ascend_contents import Contents
    from profwin.evidence.formats.ascend_files import Raw
    from profwin.evidence.formats.ascend_info import Info
    from profwin.evidence.model import Slice

__all__ = ["read", "recognise", "slices"]

_SUFFIX = "_ascend_pt"


def recognise(path: str, head: bytes = b"") -> bool:  # noqa: ARG001  # as all formats; a folder has none
    """Say whether a folder is one of torch_npu's: by what is in it, and only where that is nothing by its name."""
    if not os.path.isdir(path):
        return False
    names = [entry.name for entry in entries(path)]
    if any(name == OUTPUT or (name.startswith("profiler_info") and name.endswith(".json")) for name in names):
        return True
    return os.path.basename(os.path.abspath(path)).endswith(_SUFFIX)


def read(root: str, path: str) -> Recording:
    """Read a folder. Never raises for what is in it."""
    folder = os.path.join(root, path)
    recording = Recording("ascend", path, Clock("wall"))
    info, raw = read_info(folder, path), read_raw(folder)
    recording.window, recording.device_expected = info.window, info.npu
    own = Name(rank=info.rank, world=info.world, source="ascend")
    recording.name = combined(name_of(path.replace(os.sep, "/")), name_in(info.told), own)
    recording.metadata = {"level": info.level, "exports": list(info.exports)} if info.present else {}
    if "profwin" in (said := kept(info.told)):
        recording.metadata["profwin"] = said["profwin"]
    analysed = results(folder) is not None
    if not analysed and not raw.present and not info.present:
        recording.findings.append(Finding(codes.EMPTY, "no FRAMEWORK, PROF_* or ASCEND_PROFILER_OUTPUT", path))
        return recording
    recording.findings += info.findings
    recording.findings += _raw_findings(path, info, raw)
    if not analysed:
        recording.findings.append(
            Finding(codes.NOT_ANALYSED, "no ASCEND_PROFILER_OUTPUT", path)
            if raw.present
            else Finding(codes.EMPTY, "profiler_info.json alone", path)
        )
        return recording
    _read_results(folder, recording, info, raw)
    return recording


def slices(root: str, path: str) -> Iterator[Slice]:
    """Yield what the results hold: of the database where there is one, else of the timeline."""
    folder = os.path.join(root, path)
    file = _database(folder)
    if file:
        try:
            with open_database(os.path.join(folder, OUTPUT, file)) as database:
                yield from table_slices(database)
                yield from table_arrows(database)
                yield from table_values(database)
        except sqlite3.DatabaseError:
            return
    elif TRACE in (results(folder) or {}):
        yield from timeline_slices(os.path.join(folder, OUTPUT, TRACE), Damage(path))


def _database(folder: str) -> str:
    return next((name for name in results(folder) or {} if DATABASE.match(name)), "")


def _raw_findings(path: str, info: Info, raw: Raw) -> Iterator[Finding]:
    if raw.unfinished:
        detail = f"{raw.unfinished} pieces, the first {raw.first}"
        yield Finding(codes.SLICE_UNFINISHED, detail, path, data={"count": raw.unfinished})
    if raw.present and info.npu and not raw.devices and (raw.sessions or info.window is None):
        yield Finding(codes.NO_DEVICE_DATA, "no device_* below PROF_*", path)


def _read_results(folder: str, recording: Recording, info: Info, raw: Raw) -> None:
    """Read the database and the timeline; where there are both the database is what counts."""
    path, found = recording.path, recording.findings
    file, have = _database(folder), results(folder) or {}
    if file:
        contents = _of_database(folder, f"{path}/{OUTPUT}/{file}", recording)
    elif TRACE in have:
        contents = _of_timeline(folder, f"{path}/{OUTPUT}/{TRACE}", recording)
    else:
        contents = None
    found += result_findings(folder, path, info, communicated=contents is not None and contents.communicated)
    if contents is None:
        return
    if not info.present:
        recording.window = contents.session
    if contents.host[1]:
        recording.clock = Clock("wall", contents.host[1])
    host = contents.host[0] or raw.host
    only = str(raw.devices[0]) if len(raw.devices) == 1 else ""
    for told, union in sorted(contents.busy.items()):
        number = told or only
        key = f"NPU {number}" if number else "NPU"
        recording.device_busy[key] = union.merged()
        if number and host:
            recording.physical[key] = f"NPU-{host}-{number}"
    _judge(recording, contents)


def _of_database(folder: str, place: str, recording: Recording) -> Contents | None:
    whole = os.path.join(folder, OUTPUT, os.path.basename(place))
    try:
        missing = missing_bytes(whole)
        if missing:
            recording.findings.append(Finding(codes.DAMAGED, f"{missing} bytes are missing", place))
            return None
        with open_database(whole) as database:
            damage = database.check()
            if damage:
                recording.findings.append(Finding(codes.DAMAGED, damage, place))
            contents = read_database(database, recording.tally)
    except (sqlite3.DatabaseError, OSError) as error:
        recording.findings.append(Finding(codes.DAMAGED, str(error), place))
        return None
    if contents.bad:
        detail = f"{contents.bad} rows without usable times"
        recording.findings.append(Finding(codes_files.BAD_DURATION, detail, place))
    return contents


def _of_timeline(folder: str, place: str, recording: Recording) -> Contents | None:
    damage = Damage(place)
    try:
        contents = read_timeline(os.path.join(folder, OUTPUT, TRACE), damage, recording.tally)
    except OSError as error:
        recording.findings.append(Finding(UNREADABLE, str(error.strerror), place))
        return None
    recording.findings += damage.findings()
    rows = step_rows(folder)
    contents.steps = {} if rows is None else {step: rows.get(step, 0) for step in contents.steps}
    return contents


def _judge(recording: Recording, contents: Contents) -> None:
    path, tally, found = recording.path, recording.tally, recording.findings
    window, extent, steps = recording.window, contents.extent, contents.steps
    if any(finding.code in (codes.DAMAGED, codes_files.TRUNCATED) for finding in found):
        return  # then nothing can be said of what is missing
    if not tally.slices:
        found.append(Finding(codes_files.NO_EVENTS, f"{tally.events} events, none with a length", path))
    elif not tally.device_slices and recording.device_expected:
        found.append(Finding(codes_files.NO_DEVICE_EVENTS, f"{tally.slices} slices, all of the host", path))
    if extent and window and not (window[0] <= extent[0] and extent[1] <= window[1]):
        early, late = max(0, window[0] - extent[0]), max(0, extent[1] - window[1])
        detail = f"{early / 1e6:.3f} ms before the start, {late / 1e6:.3f} ms after the stop"
        found.append(Finding(codes.OUTSIDE_WINDOW, detail, path))
    if not any(steps.values()):
        return
    numbers = list(steps)
    first = next(index for index, number in enumerate(numbers) if steps[number])
    if first:
        detail = f"the first {first} of {len(numbers)} steps: {', '.join(numbers[:first][:20])}"
        found.append(Finding(codes.HEAD_LOST, detail, path, data={"steps": numbers[:first]}))
    later = [number for number in numbers[first:] if not steps[number]]
    if later:
        detail = f"{len(later)} of {len(numbers)} steps: {', '.join(later[:20])}"
        found.append(Finding(codes.STEPS_LOST, detail, path, data={"steps": later}))
