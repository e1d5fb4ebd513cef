"""Writes the files of a run as they should be, so that tests can spoil one thing at a time."""

from __future__ import annotations

import gzip
import json
import os
from typing import Any

from profwin.demo.scheduler import DECODING
from profwin.demo.verify import STAGES, StepWork

WALL = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000
WORK = StepWork({"rollout": 3}, updates=2, generated_with=[0, 1])
DEVICE = "pretend:test"
GENERATED = f"{DECODING} 1"
"""The name of a decoding step of step 2 in a trace."""


class RunDirectory:
    """A run of one profiled step (2): the window lasts from 10 to 20 ms, the stages 10 ms each after it.

    ``journals``, ``traces`` and ``manifest`` (its steps) may be changed before :meth:`write`. A trace is (start,
    end, metadata, operators).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.journals: dict[str, list[dict[str, Any]]] = {
            "driver": _header("driver"),
            "actor": _header("actor"),
        }
        self.traces: dict[str, tuple[int, int, dict[str, Any], dict[str, int]]] = {}
        self.manifest = {"2": {"generated_with": [0, 1], "trained_at": [1], "staleness": 1}}
        self.add("driver", 1, "rollout", "rollout", 10, 20)
        for number, stage in enumerate(STAGES):
            self.add("actor", number + 1, "training", stage, 21 + 11 * number, 31 + 11 * number)

    def add(
        self, role: str, number: int, purpose: str, name: str, start: int, end: int, step: int = 2, device: str = DEVICE
    ) -> None:
        """Add a collection with its trace; times in milliseconds."""
        path = f"step_{step:06}/{name}.pt.trace.json.gz"
        self.journals[role] += [
            {
                "kind": "open", "t": start * MILLISECOND, "collection": number, "purpose": purpose, "name": name,
                "step": step, "devices": [device],
            },
            {"kind": "close", "t": end * MILLISECOND, "collection": number, "reason": "end"},
            {"kind": "export", "t": end * MILLISECOND, "collection": number, "path": path},
        ]  # fmt: skip
        operators = {**WORK.expected(name), "aten::add": 5}
        if purpose == "rollout":
            operators[GENERATED] = WORK.windows[name]
        self.traces[path] = (start, end, {"step": step, "weight_version": 1}, operators)

    def records(self, role: str, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind, to be changed in place."""
        return [record for record in self.journals[role] if record["kind"] == kind]

    def write(self) -> str:
        """Write the files and return the directory."""
        os.makedirs(f"{self.path}/journal")
        for role, records in self.journals.items():
            with open(f"{self.path}/journal/{role}.jsonl", "w", encoding="utf-8") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
        with open(f"{self.path}/manifest.json", "w", encoding="utf-8") as file:
            json.dump({"steps": self.manifest}, file)
        for path, (start, end, metadata, operators) in self.traces.items():
            os.makedirs(os.path.dirname(f"{self.path}/{path}"), exist_ok=True)
            events: list[dict[str, Any]] = [
                {"ph": "X", "cat": "cpu_op", "name": name, "ts": start * 1000, "dur": 1}
                for name, count in operators.items()
                for _ in range(count)
            ]
            span = {
                "ph": "X",
                "cat": "Trace",
                "name": "span",
                "ts": start * 1000,
                "dur": (end - start) * 1000,
            }
            content = {"baseTimeNanoseconds": WALL, "profwin": metadata, "traceEvents": [span, *events]}
            with gzip.open(f"{self.path}/{path}", "wt", encoding="utf-8") as packed:
                json.dump(content, packed)
        return self.path


def _header(role: str) -> list[dict[str, Any]]:
    return [{"kind": "process", "t": 0, "wall": WALL, "role": role, "schema": 1}]
