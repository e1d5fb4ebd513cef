"""The manifest: what a run asked for and what became of it, gathered from its journals."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.session import Session

__all__ = ["conclude", "gather", "missing_stages"]

SCHEMA = 1


def conclude(session: Session, reason: str) -> None:
    """Write the manifest of a run that ends, and say what it lacks. Never raises.

    Processes of the run that are still at work are in it as far as they got; the journals have the rest.

    Args:
        session: of the process that began the run.
        reason: why that process ends.
    """
    directory = session.run.directory
    try:
        if not os.path.isdir(os.path.join(directory, "journal")):
            return
        manifest = gather(directory)
        manifest["settings"] = session.settings.describe()
        problem = missing_stages(manifest)
        if problem is not None:
            session.finding("no-stages", problem)
            own = os.path.basename(session.journal.path)
            manifest["findings"].append({"journal": own, "code": "no-stages", "detail": problem})
        for process in manifest["processes"]:
            if process["journal"] == os.path.basename(session.journal.path):
                process["ended"] = reason  # its journal says so in a moment
        temporary = os.path.join(directory, f".manifest.{session.run.process}.tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.write("\n")
        os.replace(temporary, os.path.join(directory, "manifest.json"))
    except (OSError, ValueError, KeyError) as error:
        session.warn("manifest", f"the manifest could not be written: {error}")


def gather(directory: str, damaged: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the manifest of a run's directory, from the journals alone.

    Args:
        directory: of the run.
        damaged: gets the journals that cannot be read to their end, with the reason; None: that is raised.

    Raises:
        OSError: a journal cannot be read.
        ValueError: a journal holds something else.
    """
    from profwin.journal import read

    journals = os.path.join(directory, "journal")
    found = _Found()
    with os.scandir(journals) as entries:
        files = sorted(each.name for each in entries if each.name.endswith(".jsonl") and _plain(each))
    for file in files:
        try:
            _Reader(file, found).follow(read(os.path.join(journals, file)))
        except Exception as error:
            if damaged is None:
                raise
            damaged[file] = f"{type(error).__name__}: {error}"
    for step in found.steps.values():
        _conclude_versions(step)
    first = found.processes[0] if found.processes else {}
    return {
        "schema": SCHEMA,
        "run": first.get("run", os.path.basename(directory)),
        "attempts": sorted({process["attempt"] for process in found.processes}),
        "settings": found.settings[1],
        "processes": found.processes,
        "elsewhere": found.elsewhere(),
        "steps": {str(step): found.steps[step] for step in sorted(found.steps)},
        "findings": found.findings,
    }


def missing_stages(manifest: dict[str, Any]) -> str | None:
    """Say that a run has windows and no stage; None where it has, or may have: as asked for, or on another host.

    Args:
        manifest: with the settings.
    """
    if any(manifest["settings"].get(name) is not None for name in ("roles", "stages")) or manifest["elsewhere"]:
        return None
    windows = stages = 0
    for step in manifest["steps"].values():
        intervals = [interval for collection in step["collections"] for interval in collection["intervals"]]
        windows += sum(interval["what"] == "window" for interval in intervals)
        stages += sum(interval["what"] == "stage" for interval in [*intervals, *step["skips"]])
    if not windows or stages:
        return None
    return f"{windows} rollout windows, 0 training stages: no training code is decorated with @training_stage"


def _plain(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


class _Found:
    """What the journals of a run say together.

    Attributes:
        settings: of the process that began the last attempt, after that attempt's number.
        here: hosts and processes that have journals here, as `named` has them.
        named: that journals name: hosts, and processes by boot, pid and start time, each with its host.
    """

    def __init__(self) -> None:
        self.processes: list[dict[str, Any]] = []
        self.steps: dict[int, dict[str, Any]] = {}
        self.findings: list[dict[str, Any]] = []
        self.settings: tuple[int, dict[str, Any]] = (-1, {})
        self.here: set[Any] = set()
        self.named: dict[Any, str] = {}

    def elsewhere(self) -> list[str]:
        """Return the hosts that have journals which are not here."""
        return sorted({host for named, host in self.named.items() if named not in self.here})


class _Reader:
    """Follow one journal and add what it says."""

    def __init__(self, file: str, found: _Found) -> None:
        self._file, self._found = file, found
        self._collections: dict[int, dict[str, Any]] = {}
        self._skips: dict[int, dict[str, Any]] = {}
        self._process: dict[str, Any] = {}

    def follow(self, records: Any) -> None:
        for record in records:
            act = getattr(self, "_on_" + record["kind"], None)
            if act is not None:
                act(record)

    def _on_process(self, record: dict[str, Any]) -> None:
        kept = ("run", "attempt", "pid", "host", "role", "rank", "world", "root")
        self._process = {"journal": self._file, **{name: record.get(name) for name in kept}, "ended": None}
        self._found.processes.append(self._process)
        self._found.here |= {record.get("host"), (record.get("boot"), record["pid"], record.get("start"))}
        if record.get("root") and record["attempt"] > self._found.settings[0]:
            self._found.settings = record["attempt"], record["settings"]

    def _on_clock(self, record: dict[str, Any]) -> None:
        self._found.named[record["host"]] = record["host"]

    def _on_remote(self, record: dict[str, Any]) -> None:
        if record["status"] == "recording" and record.get("run") == self._process.get("run"):
            self._found.named[record.get("boot"), record.get("pid"), record.get("start")] = record.get("host") or "?"

    def _on_step(self, record: dict[str, Any]) -> None:
        if record["selected"] and record["side"] == "training":
            step = self._step(record["step"])
            step["told"] += record.get("generated_with") or ()
            step["trained_at"] += [record["version"]] if "version" in record else []

    def _on_open(self, record: dict[str, Any]) -> None:
        kept = ("purpose", "name", "occurrence", "segment", "backends", "devices", "waited", "version")
        collection = {name: record[name] for name in kept if name in record}
        collection |= {
            "journal": self._file,
            "open": record["t"],
            "closed": None,
            "traces": [],
            "intervals": [],
        }
        self._collections[record["collection"]] = collection
        self._step(record["step"])["collections"].append(collection)

    def _on_close(self, record: dict[str, Any]) -> None:
        # A record before it may be missing: the disk was full, or Ctrl-C came in between.
        collection = self._collections.get(record["collection"], {})
        collection |= {"closed": record["t"], "reason": record["reason"]}
        if "error" in record:
            collection["error"] = record["error"]

    def _on_export(self, record: dict[str, Any]) -> None:
        collection = self._collections.get(record["collection"], {"traces": []})
        if "path" in record:
            collection["traces"].append(record["path"])
        else:
            collection["export_error"] = record.get("error")

    def _on_skip(self, record: dict[str, Any]) -> None:
        kept = ("reason", "device", "holder", "waited", "detail")
        self._skips[record["id"]] = {name: record[name] for name in kept if name in record}

    def _on_enter(self, record: dict[str, Any]) -> None:
        interval = {"what": record["what"], "name": record["name"], "occurrence": record["occurrence"]}
        if record.get("collection") in self._collections:
            self._collections[record["collection"]]["intervals"].append(interval)
        elif record["id"] in self._skips:
            skip = {**interval, "journal": self._file, **self._skips.pop(record["id"])}
            self._step(record["step"])["skips"].append(skip)

    def _on_finding(self, record: dict[str, Any]) -> None:
        self._found.findings.append({"journal": self._file, "code": record["code"], "detail": record["detail"]})

    def _on_end(self, record: dict[str, Any]) -> None:
        self._process["ended"] = record["reason"]

    def _step(self, step: int) -> dict[str, Any]:
        empty: dict[str, Any] = {"collections": [], "skips": [], "told": [], "trained_at": []}
        found: dict[str, Any] = self._found.steps.setdefault(step, empty)
        return found


def _conclude_versions(step: dict[str, Any]) -> None:
    """Say which weights generated a step's samples, which were trained on them, and how many updates lie between."""
    versions: dict[str, list[int]] = {"rollout": [], "training": step.pop("trained_at")}
    for collection in step["collections"]:
        if "version" in collection:
            versions[collection["purpose"]].append(collection["version"])
    generated = sorted(set(step.pop("told") or versions["rollout"]))
    trained = sorted(set(versions["training"]))
    step["generated_with"], step["trained_at"] = generated, trained
    step["staleness"] = trained[-1] - generated[0] if generated and trained else None
