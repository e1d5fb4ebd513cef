"""Which files an `*_ascend_pt` folder should hold, and whether those are whole that it does."""

from __future__ import annotations

import os
import re

from profwin.evidence import codes_ascend as codes
from profwin.evidence.file import open_regular
from profwin.evidence.finding import Finding
from profwin.evidence.formats.ascend_info import entries, read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.formats.ascend_info import Info

__all__ = ["DATABASE", "OUTPUT", "TRACE", "Raw", "read_raw", "result_findings", "results", "step_rows"]

OUTPUT, TRACE = "ASCEND_PROFILER_OUTPUT", "trace_view.json"
DATABASE = re.compile(r"^ascend_pytorch_profiler(_\d+)?\.db$")
_RAW = re.compile(r"^PROF_\d+_\d+_[0-9a-zA-Z]+")
_DEVICE = re.compile(r"^device_(\d{1,6})$")
_SLICE = re.compile(r"\.slice_\d+$")
_STEPS = 10_000


class Raw:
    """The raw data of a folder.

    Attributes:
        present: whether there is any.
        sessions: whether CANN's own part is among it; it is removed once analysed, where that was asked for.
        devices: numbers of the NPUs that there is data of.
        host: identity of the host, empty where it is unknown.
        unfinished: pieces without ``.done`` beside them; the first by name.
    """

    def __init__(self) -> None:
        self.present = self.sessions = False
        self.devices: list[int] = []
        self.host = ""
        self.unfinished = 0
        self.first = ""


def read_raw(folder: str) -> Raw:
    """Look at ``FRAMEWORK`` and the ``PROF_*`` folders."""
    raw = Raw()
    for entry in entries(folder):
        if entry.name == "FRAMEWORK" and any(entries(entry.path)):
            raw.present = True
        elif _RAW.match(entry.name) and entry.is_dir(follow_symlinks=False):
            raw.present = raw.sessions = True
            for part in entries(entry.path):
                device = _DEVICE.match(part.name)
                if device and part.is_dir(follow_symlinks=False):
                    raw.devices.append(int(device[1]))
                if device or part.name == "host":
                    _look_at_pieces(raw, os.path.join(part.path, "data"), f"{entry.name}/{part.name}/data")
            raw.host = raw.host or _host(os.path.join(entry.path, "host", "info.json"))
    return raw


def _look_at_pieces(raw: Raw, folder: str, shown: str) -> None:
    names = {entry.name for entry in entries(folder)}
    for name in sorted(names):
        if _SLICE.search(name) and name + ".done" not in names:
            raw.unfinished += 1
            raw.first = raw.first or f"{shown}/{name}"


def _host(path: str) -> str:
    try:
        found = read_document(path)
    except (ValueError, OSError):
        return ""
    host = found.get("hostUid") if isinstance(found, dict) else None
    return str(host) if isinstance(host, str | int) else ""


def results(folder: str) -> dict[str, int] | None:
    """Return names and sizes of the result files; None where there is no folder of results."""
    output = os.path.join(folder, OUTPUT)
    if not os.path.isdir(output):
        return None
    found = {}
    for entry in entries(output):
        try:
            if entry.is_file(follow_symlinks=False):
                found[entry.name] = entry.stat().st_size
        except OSError:
            continue
    return found


def result_findings(folder: str, path: str, info: Info, communicated: bool) -> list[Finding]:
    """Judge the result files.

    Args:
        folder: where it is.
        path: as findings name it.
        info: the settings.
        communicated: whether the results hold communication; only then some files exist.
    """
    found = results(folder) or {}
    place = f"{path}/{OUTPUT}"
    text, database = TRACE in found, any(DATABASE.match(name) for name in found)
    if not text and not database:
        if "analyse.done" in found:
            return [Finding(codes.FAILED, "analyse.done, and neither trace_view.json nor a database", place)]
        return [Finding(codes.UNFINISHED, "neither trace_view.json nor a database", place)]
    findings = []
    if info.present and not (text and "text" in info.exports) and not (database and "db" in info.exports):
        have = " and ".join([*["text"] * text, *["db"] * database])
        findings.append(Finding(codes.OTHER_EXPORT, f"set to {' and '.join(info.exports)}, {have} found", place))
    missing = [name for name in _expected(info, communicated) if name not in found] if text and info.present else []
    if missing:
        done = "analyse.done" in found
        detail = f"{', '.join(missing)} (level {info.level})"
        findings.append(Finding(codes.FAILED if done else codes.FILE_MISSING, detail, place, data={"files": missing}))
    for name, size in found.items():
        if name.endswith(".csv") and (not size or not _ends_with_line(os.path.join(folder, OUTPUT, name))):
            detail = "it is empty" if not size else "its last line does not end"
            findings.append(Finding(codes.FILE_CUT, detail, f"{place}/{name}", f"byte {size}"))
    return findings


def _expected(info: Info, communicated: bool) -> list[str]:
    """List what the text export gives. What the device or the program decides is left out (`l2_cache.csv`, AI CPU)."""
    names = [TRACE]
    if info.cpu:
        names.append("operator_details.csv")
    if info.npu is not False and info.level >= 0:
        names += ["kernel_details.csv", "step_trace_time.csv"]
    if info.npu is not False and info.level >= 1:
        names += ["op_statistic.csv", "api_statistic.csv"]
        names += ["communication.json", "communication_matrix.json"] if communicated else []
    if info.memory:
        names += ["memory_record.csv", "operator_memory.csv"]
    return names


def _ends_with_line(path: str) -> bool:
    try:
        with open_regular(path) as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
    except OSError:
        return True  # unreadable files are reported as such, once


def step_rows(folder: str) -> dict[str, int] | None:
    """Count the device tasks of each step in kernel_details.csv; None where that cannot be told."""
    path = os.path.join(folder, OUTPUT, "kernel_details.csv")
    rows: dict[str, int] = {}
    try:
        with open_regular(path) as raw, open(raw.fileno(), "rb", closefd=False) as file:
            header = file.readline(1 << 16).removeprefix(b"\xef\xbb\xbf").split(b",")
            if b"Step Id" not in header:
                return None
            column = header.index(b"Step Id")
            if column:
                return None  # names before it may hold commas
            while line := file.readline(1 << 16):
                step = line.partition(b",")[0].strip().decode("utf-8", "replace")
                if step.isdigit() and (step in rows or len(rows) < _STEPS):
                    rows[step] = rows.get(step, 0) + 1
    except OSError:
        return None
    return rows
