"""Reads a Perfetto trace as Perfetto does: packets by time, slices by a stack on each track."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass
class Track:
    """A track; ``slices`` are (start, end, name, category, data), ``path`` the names of its groups and itself."""

    path: tuple[str, ...] = ()
    parent: int = 0
    name: str = ""
    process: int | None = None
    rank: int = 0
    alone: bool = False
    slices: list[tuple[int, int, str, str, dict[str, Any]]] = field(default_factory=list)
    instants: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    flows: list[tuple[int, str, int, str]] = field(default_factory=list)
    counter: bool = False
    values: list[tuple[int, float]] = field(default_factory=list)
    stack: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Return the fields of a message: numbers as integers, the others as bytes."""
    found, at = [], 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif key & 7 == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size, "the message is cut"
        else:
            raise AssertionError(f"wire type {key & 7} at byte {at}")
        found.append((key >> 3, value))
    return found


def read(path: str | Path) -> dict[int, Track]:
    """Return the tracks of a trace, by their numbers. Fails for anything that Perfetto would pass over."""
    data = Path(path).read_bytes()
    return decode(gzip.decompress(data) if str(path).endswith(".gz") else data)


def decode(data: bytes) -> dict[int, Track]:
    """Return the tracks of a trace that is not compressed."""
    tracks: dict[int, Track] = {}
    interned: dict[int, dict[int, str]] = {1: {}, 2: {}, 3: {}}
    events = []
    for number, content in fields(data):
        assert number == 1
        packet = dict(fields(content))
        for kind, entry in fields(packet.get(12, b"")):
            entry = dict(fields(entry))
            assert entry[1] not in interned[kind], "a number stands for two names"
            interned[kind][entry[1]] = entry[2].decode()
        if 60 in packet:
            _describe(dict(fields(packet[60])), tracks)
        if 11 in packet:
            assert packet[10] == 1
            assert packet[13] == 2
            events.append((packet[8], _event(packet[11], interned)))
    events.sort(key=lambda event: event[0])  # stable, as Perfetto's: what has one time stays in its order
    for at, event in events:
        assert tracks[event["track"]].alone, "Perfetto may merge it with another track of its name"
        _place(tracks[event["track"]], at, event)
    for track in tracks.values():
        assert not track.stack, "a slice has no end"
        track.path = _path(track, tracks)
    return tracks


def slices(tracks: dict[int, Track]) -> list[tuple[int, int, str]]:
    """Return start, end and name of all slices, sorted."""
    return sorted(each[:3] for track in tracks.values() for each in track.slices)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _describe(descriptor: dict[int, Any], tracks: dict[int, Track]) -> None:
    track = Track(name=descriptor[2].decode(), parent=descriptor.get(5, 0), rank=descriptor.get(12, 0))
    track.alone = descriptor.get(15) == 2
    track.counter = 8 in descriptor
    if 3 in descriptor:
        process = dict(fields(descriptor[3]))
        track.process = process[1]
        assert process[6].decode() == track.name
    assert descriptor[1] not in tracks, "a number stands for two tracks"
    assert not track.parent or track.parent in tracks
    tracks[descriptor[1]] = track


def _event(data: bytes, interned: dict[int, dict[int, str]]) -> dict[str, Any]:
    event: dict[str, Any] = {"type": 0, "name": None, "category": "", "data": {}, "legacy": {}}
    for number, value in fields(data):
        if number == 9:
            event["type"] = value
        elif number == 11:
            event["track"] = value
        elif number == 10:
            event["name"] = interned[2][value]
        elif number == 23:
            event["name"] = value.decode()
        elif number == 3:
            event["category"] = interned[1][value]
        elif number == 22:
            event["category"] = value.decode()
        elif number == 4:
            annotation = dict(fields(value))
            key = interned[3][annotation.pop(1)]
            (content,) = annotation.values()
            event["data"][key] = content.decode() if isinstance(content, bytes) else content
        elif number == 44:
            (event["value"],) = struct.unpack("<d", struct.pack("<Q", value))
        elif number == 6:
            event["legacy"] = dict(fields(value))
        else:
            raise AssertionError(f"field {number} of an event")
    return event


def _place(track: Track, at: int, event: dict[str, Any]) -> None:
    stack = track.stack
    assert track.counter == (event["type"] == COUNTER), "a row is either a counter's or not"
    if event["type"] == COUNTER:
        track.values.append((at, event["value"]))
    elif event["type"] == BEGIN:
        stack.append((at, event))
        assert len(stack) < 255, "Perfetto drops what is nested deeper"
    elif event["type"] == END:
        start, began = stack.pop()
        track.slices.append((start, at, began["name"], began["category"], began["data"]))
    elif event["type"] == INSTANT:
        track.instants.append((at, event["name"], event["data"]))
    else:
        assert stack, "an arrow begins or ends nowhere"
        legacy = event["legacy"]
        track.flows.append((at, chr(legacy[2]), legacy[8], stack[-1][1]["name"]))


def _path(track: Track, tracks: dict[int, Track]) -> tuple[str, ...]:
    return (*(_path(tracks[track.parent], tracks) if track.parent else ()), track.name)
