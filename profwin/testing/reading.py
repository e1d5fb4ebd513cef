"""Reading journals into a record."""

from __future__ import annotations

import os
from pathlib import Path

from profwin.testing.record import FOREVER, Collection, Interval, Overlap, Record, Skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = ["read_record"]


def read_record(directory: str | os.PathLike[str]) -> Record:
    """Read what happened in one or several runs.

    A device belongs to one host: where journals are of several hosts, or boots, the names of devices and processes end
    with `` on HOST``, so that devices of one name on two hosts are two. Times of different hosts are on different
    clocks, but for those that are pretended on one machine.

    Args:
        directory: a run's directory, or the output directory that holds those of several. Processes that are still at
            work are in the record as far as they got.

    Raises:
        ValueError: a journal holds something else.
        OSError: a journal cannot be read.
    """
    from profwin.journal import read

    root = Path(directory)
    paths = sorted([*root.glob("journal/*.jsonl"), *root.glob("*/journal/*.jsonl")])
    contents = [list(read(str(path))) for path in paths]
    hosts = _hosts(records[0] for records in contents if records)
    journals = [_Journal(records, hosts.get(records[0].get("boot"), "") if records else "") for records in contents]
    collections = [each for journal in journals for each in journal.collections.values()]
    intervals = [each for journal in journals for each in journal.intervals()]
    overlaps = [each for journal in journals for each in journal.overlaps()]
    return Record(
        tuple(sorted(collections, key=lambda each: each.opened)),
        tuple(sorted(intervals, key=lambda each: each.entered)),
        tuple(sorted(overlaps, key=lambda each: each.time)),
        tuple((each["code"], each["detail"]) for journal in journals for each in journal.of("finding")),
        os.fspath(directory),
    )


class _Journal:
    """One process's journal; `where` is what its devices' names end with."""

    def __init__(self, records: list[dict[str, Any]], where: str) -> None:
        self._where = where
        self._kinds: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            self._kinds.setdefault(record["kind"], []).append(record)
        header = records[0] if records else {}
        self._process = _in_words(header) + where
        self._end: int = records[-1]["t"] if records else 0
        if not self.of("end") and _alive(header):
            self._end = FOREVER
        self._entered = self._by("enter", "id")
        self.collections = self._collections()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind, in order."""
        return self._kinds.get(kind, [])

    def intervals(self) -> list[Interval]:
        """Return the windows, stages and spans."""
        left, joins, skips = self._by("exit", "id"), self._by("join", "id"), self._by("skip", "id")
        found = []
        for entered in self.of("enter"):
            number = entered["id"]
            end = left[number][0]["t"] if number in left else None
            collections = [entered.get("collection"), *(each["collection"] for each in joins.get(number, ()))]
            found.append(
                Interval(
                    process=self._process, what=entered["what"], name=entered["name"], step=entered["step"],
                    devices=self._devices(entered), site=entered["site"], entered=entered["t"], left=end,
                    end=self._end if end is None else end,
                    collections=tuple(self.collections[each] for each in collections if each in self.collections),
                    skip=_skip(skips[number][0]) if number in skips else None,
                )
            )  # fmt: skip
        return found

    def overlaps(self) -> list[Overlap]:
        """Return the handovers that had to be enforced."""
        found = []
        for record in self.of("overlap"):
            # Under `strict` the stage was never entered: then the window's own devices and step say where it was.
            windows = [each for each in self.collections.values() if each.name == record["window"]]
            window = next((each for each in windows if each.opened < record["t"] < each.end), None)
            devices, step = (window.devices, window.step) if window else ((self._process,), -1)
            if record["id"] in self._entered:
                stage = self._entered[record["id"]][0]
                devices, step = self._devices(stage), stage["step"]
            found.append(
                Overlap(
                    record["t"], self._process, devices, step, record["stage"], record["stage_site"], record["window"],
                    record["window_site"],
                )
            )  # fmt: skip
        return found

    def _collections(self) -> dict[int, Collection]:
        closes, exports, lost = (self._by(kind, "collection") for kind in ("close", "export", "lost"))
        first = self._by("enter", "collection")
        found = {}
        for opened in self.of("open"):
            number = opened["collection"]
            closed = closes[number][0] if number in closes else {}
            problems = [f"it failed ({closed['error']})"] if closed.get("error") else []
            failed = [each["error"] for each in exports.get(number, ()) if each.get("error")]
            problems += [f"its trace is not there ({error})" for error in failed]
            problems += [f"the lock of {each['device']} was lost" for each in lost.get(number, ())]
            found[number] = Collection(
                process=self._process, purpose=opened["purpose"], name=opened["name"], step=opened["step"],
                devices=self._devices(opened), opened=opened["t"], closed=closed.get("t"),
                end=closed.get("t", self._end), reason=closed.get("reason"),
                site=first[number][0]["site"] if number in first else "?", occurrence=opened["occurrence"],
                segment=opened["segment"], waited=opened.get("waited", 0.0), problems=tuple(problems),
                elsewhere=bool(opened.get("unlocked")) and not opened.get("devices"),
            )  # fmt: skip
        return found

    def _by(self, kind: str, field: str) -> dict[int, list[dict[str, Any]]]:
        """Return the records of a kind by a number in them, for those that have it."""
        found: dict[int, list[dict[str, Any]]] = {}
        for record in self.of(kind):
            if field in record:
                found.setdefault(record[field], []).append(record)
        return found

    def _devices(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(device + self._where for device in record.get("devices") or ()) or (self._process,)


def _skip(record: Mapping[str, Any]) -> Skip:
    return Skip(
        record["t"], record["reason"], record.get("device"), record.get("holder"), record.get("waited", 0.0),
        record.get("detail"),
    )  # fmt: skip


def _hosts(headers: Iterable[Mapping[str, Any]]) -> dict[Any, str]:
    """Return what tells the boots of the journals apart, in words; nothing where there is but one."""
    names = {header.get("boot"): str(header.get("host") or "?") for header in headers}
    if len(names) < 2:
        return {}
    twice = [name for name in names.values() if list(names.values()).count(name) > 1]
    return {boot: f" on {name}" + (f" {str(boot)[:4]}" if name in twice else "") for boot, name in names.items()}


def _in_words(header: Mapping[str, Any]) -> str:
    words = [str(header["role"])] if header.get("role") else []
    if header.get("rank") is not None:
        words.append(f"rank {header['rank']}")
    return " ".join([*words, f"pid {header.get('pid', '?')}"])


def _alive(header: Mapping[str, Any]) -> bool:
    from profwin.run import start_time

    return bool(header.get("start")) and start_time(header["pid"]) == header["start"]
