"""The manifest: what a run asked for and what became of it, gathered from its journals."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.session import Session

__all__ = ["conclude", "gather"]

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
        _warn_of_missing_stages(session, manifest)
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


def gather(directory: str) -> dict[str, Any]:
    """Return the manifest of a run's directory, from the journals alone.

    Raises:
        OSError: a journal cannot be read.
        ValueError: a journal holds something else.
    """
    from profwin.journal import read

    journals = os.path.join(directory, "journal")
    processes: list[dict[str, Any]] = []
    steps: dict[int, dict[str, Any]] = {}
    findings: list[dict[str, Any]] = []
    for file in sorted(os.listdir(journals)):
        if file.endswith(".jsonl"):
            _Reader(file, processes, steps, findings).follow(read(os.path.join(journals, file)))
    for step in steps.values():
        _conclude_versions(step)
    first = processes[0] if processes else {}
    return {
        "schema": SCHEMA,
        "run": first.get("run", os.path.basename(directory)),
        "attempts": sorted({process["attempt"] for process in processes}),
        "processes": processes,
        "steps": {str(step): steps[step] for step in sorted(steps)},
        "findings": findings,
    }


class _Reader:
    """Follow one journal and add what it says."""

    def __init__(
        self,
        file: str,
        processes: list[dict[str, Any]],
        steps: dict[int, Any],
        findings: list[dict[str, Any]],
    ) -> None:
        self._file, self._processes, self._steps, self._findings = file, processes, steps, findings
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
        self._processes.append(self._process)

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
        self._findings.append({"journal": self._file, "code": record["code"], "detail": record["detail"]})

    def _on_end(self, record: dict[str, Any]) -> None:
        self._process["ended"] = record["reason"]

    def _step(self, step: int) -> dict[str, Any]:
        empty: dict[str, Any] = {"collections": [], "skips": [], "told": [], "trained_at": []}
        found: dict[str, Any] = self._steps.setdefault(step, empty)
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


def _warn_of_missing_stages(session: Session, manifest: dict[str, Any]) -> None:
    if session.settings.roles is not None or session.settings.stages is not None:
        return  # then it may well be what was asked for
    windows = stages = 0
    for step in manifest["steps"].values():
        intervals = [interval for collection in step["collections"] for interval in collection["intervals"]]
        windows += sum(interval["what"] == "window" for interval in intervals)
        stages += sum(interval["what"] == "stage" for interval in [*intervals, *step["skips"]])
    if windows and not stages:
        detail = f"{windows} rollout windows, 0 training stages: no training code is decorated with @training_stage"
        session.finding("no-stages", detail)
        manifest["findings"].append(
            {"journal": os.path.basename(session.journal.path), "code": "no-stages", "detail": detail}
        )
