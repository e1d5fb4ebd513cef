"""The journals of a run of many ranks that never was: a window, stages and their steps on each rank's device."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["STAGES", "write_run"]

WALL = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
STAGES = ("old_log_prob", "ref_log_prob", "update")
STEP = 100.0
"""Seconds from one step to the next."""

_encode = msgspec.json.Encoder().encode


def write_run(directory: Path, ranks: int, steps: int, seed: int = 1) -> int:
    """Write the journals of a run in which nothing is amiss, and return the number of their records.

    Args:
        directory: of the run.
        ranks: how many, each a process on a device of its own; eight share a host.
        steps: how many, from 1; all are recorded.
        seed: of the durations: no two ranks take the same time.
    """
    (directory / "journal").mkdir(parents=True)
    picker = random.Random(seed)
    count = 0
    for rank in range(ranks):
        journal = _Journal(rank)
        journal.begin(ranks, steps)
        for step in range(1, steps + 1):
            at = step * STEP
            journal.write("step", at, side="rollout", step=step, selected=True, version=step - 1)
            journal.write(
                "step", at, side="training", step=step, selected=True, version=step - 1, generated_with=[step - 1]
            )
            end = at
            for name in ("rollout", *STAGES):
                begin = end + 0.01
                end = begin + (40 if name == "rollout" else 12) * picker.uniform(0.8, 1.2)
                journal.recorded(name, step, begin, end)
        journal.write("step", (steps + 1) * STEP, side="training", step=steps + 1, selected=False)
        journal.write("end", (steps + 1) * STEP + 1, reason="exit")
        (directory / "journal" / f"rank{rank}_actor_p{journal.pid}-{journal.boot[:4]}_a0.jsonl").write_bytes(
            b"".join(journal.lines)
        )
        count += len(journal.lines)
    return count


class _Journal:
    """The journal of one process; times are seconds after the run's begin."""

    def __init__(self, rank: int) -> None:
        self.rank, self.host, self.pid = rank, rank // 8, 100 + rank
        self.boot = f"{self.host:04x}0000-0000-4000-8000-000000000000"
        self.clock = (1000 + self.host) * SECOND
        self.lines: list[bytes] = []
        self._number = 0

    def begin(self, ranks: int, steps: int) -> None:
        settings = {
            "steps": f"1-{steps}", "backend": ["record"], "collect": "stage", "ranks": None, "roles": None,
            "stages": None,
        }  # fmt: skip
        self.write(
            "process", 0, wall=WALL, schema=1, run="a-run", attempt=0, pid=self.pid, start=1, boot=self.boot,
            host=f"host-{self.host}", uid=0, role="actor", rank=self.rank, world=ranks, root=self.rank == 0,
            settings=settings,
        )  # fmt: skip

    def write(self, kind: str, at: float, **fields: Any) -> None:
        self.lines.append(_encode({"kind": kind, "t": self.clock + round(at * SECOND), **fields}) + b"\n")

    def recorded(self, name: str, step: int, begin: float, end: float) -> None:
        self._number += 2
        collection, interval = self._number - 1, self._number
        devices = [f"GPU-{self.rank:08x}"]
        what, purpose = ("window", "rollout") if name == "rollout" else ("stage", "training")
        self.write(
            "open", begin, collection=collection, purpose=purpose, name=name, step=step, occurrence=1, segment=1,
            backends=["record"], devices=devices, waited=0.0, version=step - 1,
        )  # fmt: skip
        self.write(
            "enter", begin, id=interval, what=what, name=name, step=step, occurrence=1, role="actor", thread=self.pid,
            site="train.py:10", devices=devices, collection=collection,
        )  # fmt: skip
        self.write("exit", end, id=interval, status="ok")
        self.write("close", end, collection=collection, reason="end", seconds=0.001)
