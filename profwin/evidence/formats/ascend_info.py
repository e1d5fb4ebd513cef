"""What an `*_ascend_pt` folder says about itself in its small JSON files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

import msgspec

from profwin.evidence import codes_ascend as codes
from profwin.evidence.file import open_regular
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["Info", "entries", "read_document", "read_info"]

_INFO = re.compile(r"^profiler_info(_(\d{1,9}))?\.json$")
_DOCUMENT_LIMIT = 4 << 20
_ENTRIES = 100_000


@dataclass
class Info:
    """The settings and the times of one recording.

    Attributes:
        present: whether profiler_info.json could be read.
        rank: None where it is unknown.
        world: number of ranks, None where it is unknown.
        level: 0 to 2; -1 for none.
        exports: ``"text"``, ``"db"`` or both, as set.
        npu: whether NPU activity was asked for; None where the file does not say.
        cpu: whether host activity was.
        memory, cache: whether memory and the L2 cache were to be recorded.
        window: start and end, ns since 1970.
        told: profiler_metadata.json, where that could be read.
        findings: what is wrong.
    """

    present: bool = False
    rank: int | None = None
    world: int | None = None
    level: int = 0
    exports: tuple[str, ...] = ("text",)
    npu: bool | None = None
    cpu: bool = True
    memory: bool = False
    cache: bool = False
    window: tuple[int, int] | None = None
    told: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder in order of their names; none where it cannot be read."""
    try:
        with os.scandir(folder) as found:
            listed = [entry for _, entry in zip(range(_ENTRIES), found, strict=False)]
    except OSError:
        return
    yield from sorted(listed, key=lambda entry: os.fsencode(entry.name))


def read_document(path: str) -> Any:
    """Return a small JSON file's value. Raises ValueError for what is no JSON or too large; OSError passes."""
    with open_regular(path) as file:
        data = file.read(_DOCUMENT_LIMIT + 1)
    if len(data) > _DOCUMENT_LIMIT:
        raise ValueError(f"over {_DOCUMENT_LIMIT} bytes")
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def read_info(folder: str, path: str) -> Info:
    """Read profiler_info and profiler_metadata of a folder.

    Args:
        folder: where it is.
        path: as findings name it.
    """
    info = Info()
    name = next((entry.name for entry in entries(folder) if _INFO.match(entry.name)), None)
    if name is None:
        info.findings.append(Finding(codes.NO_INFO, "neither profiler_info.json nor profiler_info_<rank>.json", path))
        return info
    file = f"{path}/{name}"
    try:
        found = read_document(os.path.join(folder, name))
    except (ValueError, OSError) as error:
        info.findings.append(Finding(codes.INFO_DAMAGED, str(error), file))
        return info
    if not isinstance(found, dict):
        info.findings.append(Finding(codes.INFO_DAMAGED, "not an object", file))
        return info
    info.present = True
    match = _INFO.match(name)
    info.rank = _number(found.get("rank_id"))
    if info.rank is None and match and match[2]:
        info.rank = int(match[2])
    _settings(info, _object(found.get("config")))
    _times(info, found, file)
    try:
        info.told = _object(read_document(os.path.join(folder, "profiler_metadata.json")))
    except (ValueError, OSError):
        pass  # optional
    info.world = _number(_object(info.told.get("distributed_args")).get("world_size"))
    return info


def _settings(info: Info, config: dict[str, Any]) -> None:
    common, special = _object(config.get("common_config")), _object(config.get("experimental_config"))
    activities = common.get("activities")
    if isinstance(activities, list) and activities:
        info.npu = any("NPU" in str(activity) for activity in activities)
        info.cpu = any("CPU" in str(activity) for activity in activities)
    level = re.search(r"(\d)$", str(special.get("_profiler_level", "Level0")))
    info.level = int(level[1]) if level else -1
    exports = special.get("_export_type", "text")
    chosen = tuple(sorted({str(one) for one in (exports if isinstance(exports, list) else [exports])} & {"text", "db"}))
    info.exports = chosen or ("text",)
    info.memory, info.cache = common.get("profile_memory") is True, special.get("_l2_cache") is True


def _times(info: Info, found: dict[str, Any], file: str) -> None:
    start, end = _object(found.get("start_info")), _object(found.get("end_info"))
    stopped, end_tick = _number(end.get("collectionTimeEnd")), _number(end.get("MonotonicTimeEnd"))
    start_tick = _number(start.get("start_monotonic"))
    if stopped is None or end_tick is None:
        info.findings.append(Finding(codes.NO_STOP, "no end_info", file))
    elif start_tick is not None:
        if 0 <= end_tick - start_tick <= stopped:
            info.window = (stopped - (end_tick - start_tick), stopped)
        else:
            detail = f"start at {start_tick}, end at {end_tick} ns of the monotonic clock"
            info.findings.append(Finding(codes.ODD_WINDOW, detail, file))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    """Return a whole number that may be written as text, where it is not negative."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
