"""What stands beside the events of a Kineto trace: whose it is, its clock, and what the profiler said of its losses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profwin.evidence import codes_files as codes
from profwin.evidence.model import Clock, Name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from profwin.evidence.formats.damage import Damage

__all__ = ["Messages", "base_of", "clock_of", "examine", "kept", "name_in", "physical_of"]

EPOCH = 10**18
"""September 2001 in ns: times of day are later, times since a boot or a base are earlier."""
TEXT = 4096
_LINES = 10_000

_OUT = re.compile(r"Out-of-range = (\d{1,18})")
_STOPPED = re.compile(r"stopped early\? = 1\b")
_DROPPED = re.compile(r"[Dd]ropped (\d{1,18}) .*records?")
_ASKED = re.compile(r"Enabling GPU tracing")
_WORDS = re.compile(r"^(?:INFO|WARNING|ERROR):\S+ \S+ \S+ (\S+\])? ?")


@dataclass
class Messages:
    """What the profiler's own messages say.

    Attributes:
        expected: whether device activity was asked for; None where nothing says so.
    """

    expected: bool | None = None


def base_of(metadata: Mapping[str, Any]) -> int | None:
    """Return what is to be added to all times, in ns; None where the file has none."""
    base = metadata.get("baseTimeNanoseconds")
    return base if isinstance(base, int) and not isinstance(base, bool) and 0 < base < 1 << 62 else None


def clock_of(metadata: Mapping[str, Any], base: int | None, sample: int | None) -> Clock:
    """Return the clock of the times, which a file without base time shows by how large they are."""
    host = _text(metadata.get("host_name"))
    wall = (base or 0) + (sample or 0) >= EPOCH
    return Clock("wall" if wall else "unknown", host)


def name_in(metadata: Mapping[str, Any], distributed: bool = False) -> Name:
    """Return what the ``profwin`` entry says, or with `distributed` what torch.distributed's does."""
    if distributed:
        entry = _object(metadata.get("distributedInfo"))
        rank, world = _number(entry.get("rank")), _number(entry.get("world_size"))
        return Name(rank=rank, world=world, source="metadata" if rank is not None or world is not None else "")
    entry = _object(metadata.get("profwin"))
    if not entry:
        return Name()
    purpose = entry.get("purpose")
    return Name(
        step=_number(entry.get("step")), rank=_number(entry.get("rank")), occurrence=_number(entry.get("occurrence")),
        purpose=purpose if purpose in ("rollout", "training") else None, role=_text(entry.get("role")) or None,
        stage=_text(entry.get("name")) or None, source="profwin",
    )  # fmt: skip


def kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the small part of it that is worth keeping when thousands of files are read."""
    found: dict[str, Any] = {}
    if entry := _object(metadata.get("profwin")):
        found["profwin"] = {key: value for key, value in entry.items() if _small(value)}
    if entry := _object(metadata.get("distributedInfo")):
        found["distributedInfo"] = {key: value for key, value in entry.items() if key != "pg_config" and _small(value)}
    devices = metadata.get("deviceProperties")
    if isinstance(devices, list):
        wanted = ("id", "name", "uuid")
        found["devices"] = [
            {key: device[key] for key in wanted if key in device and _small(device[key])}
            for device in devices[:64]
            if isinstance(device, dict)
        ]
    for key in ("host_name", "trace_id", "traceName"):
        if text := _text(metadata.get(key)):
            found[key] = text
    found["base"] = base_of(metadata) or 0
    return found


def physical_of(metadata: Mapping[str, Any], busy: Mapping[str, Any]) -> dict[str, str]:
    """Return the identity of each device that has one in the file.

    The number of a device in a trace is that of one process. Only a recording of one device tells which physical one
    it is, from the ``profwin`` entry, unless the profiler itself wrote the identity.
    """
    found = {}
    properties = metadata.get("deviceProperties")
    for device in properties if isinstance(properties, list) else ():
        if isinstance(device, dict) and str(device.get("id")) in busy and _text(device.get("uuid")):
            found[str(device.get("id"))] = _text(device["uuid"])
    devices = _object(metadata.get("profwin")).get("devices")
    if not found and len(busy) == 1 and isinstance(devices, list) and len(devices) == 1 and _text(devices[0]):
        found[next(iter(busy))] = _text(devices[0])
    return found


def examine(metadata: Mapping[str, Any], damage: Damage) -> Messages:
    """Look for losses in the messages that the profiler wrote into the trace."""
    messages = Messages()
    outside = 0
    for line in _lines(metadata, "INFO", "WARNING"):
        if _ASKED.search(line):
            messages.expected = True
        if match := _OUT.search(line):
            outside += int(match[1])
        if _STOPPED.search(line):
            damage.add(codes.STOPPED_EARLY, _WORDS.sub("", line)[:200])
        if (match := _DROPPED.search(line)) and int(match[1]):
            damage.add(codes.DROPPED, f"{match[1]} records")
    if outside:
        damage.add(codes.OUT_OF_RANGE, f"{outside} records")
    for line in _lines(metadata, "ERROR"):
        damage.add(codes.PROFILER_ERROR, _WORDS.sub("", line)[:200])
    return messages


def _lines(metadata: Mapping[str, Any], *keys: str) -> Iterator[str]:
    for key in keys:
        lines = metadata.get(key)
        for line in lines[:_LINES] if isinstance(lines, list) else ():
            if isinstance(line, str):
                yield line[:TEXT]


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _text(value: object) -> str:
    return value[:TEXT] if isinstance(value, str) else ""


def _small(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float) or len(repr(value)) <= TEXT
