"""Runs that never were: journals written from a plan, for any number of ranks; and a reader of the report's page."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser
from pathlib import Path

SECOND = 1_000_000_000
WALL = 1_796_042_088_000_000_000


class Writer:
    """One process's journal; times are given in seconds since the run began."""

    def __init__(self, directory, role, rank, *, world=None, host="node0", boot=None, attempt=0, run="made"):
        self.directory, self.lines, self.number = Path(directory), [], 0
        self.boot = boot or f"{sum(map(ord, host)) * 37 % 65536:04x}{host}"
        self.name = f"rank{rank}_{role}_p{1000 + (rank or 0)}-{self.boot[:4]}_a{attempt}"
        self.write(
            0.0, "process", wall=WALL, schema=1, run=run, attempt=attempt, pid=1000 + (rank or 0), start=1,
            boot=self.boot, host=host, uid=0, role=role, rank=rank, world=world, root=rank == 0, settings={},
        )  # fmt: skip

    def write(self, at, kind, **fields):
        """Write one record."""
        record = {"kind": kind, "t": round(at * SECOND), **fields}
        self.lines.append(json.dumps({key: value for key, value in record.items() if value is not None}))

    def step(self, at, side, step, *, selected=True, version=None, generated_with=None):
        """Write that a step begins."""
        self.write(at, "step", side=side, step=step, selected=selected, version=version, generated_with=generated_with)

    def body(self, start, end, what, name, step, devices, *, role=None, waited=None, version=None, profiler=True):
        """Write a window or stage with a collection of its own; a start, a stop and an export beside it."""
        self.number += 2
        number, cost = self.number, (end - start) * 0.01 if profiler else 0.0
        purpose = "rollout" if what == "window" else "training"
        common = {"name": name, "step": step, "occurrence": 1, "devices": devices}
        self.write(
            start - cost, "open", collection=number, purpose=purpose, segment=1, backends=["torch"], waited=waited,
            version=version, **common,
        )  # fmt: skip
        self.write(start, "enter", id=number + 1, what=what, role=role, thread=1, collection=number, **common)
        self.write(end, "exit", id=number + 1, status="ok")
        self.write(end + cost, "close", collection=number, reason="end", seconds=cost)
        self.write(
            end + 2 * cost, "export", collection=number, backend="torch", path=f"traces/{self.name}_{number}.json.gz",
            bytes=1000, seconds=cost,
        )  # fmt: skip

    def close(self, at, reason="exit"):
        """Write the last record, unless there is no reason, and the file."""
        if reason is not None:
            self.write(at, "end", reason=reason)
        journal = self.directory / "journal"
        journal.mkdir(parents=True, exist_ok=True)
        (journal / f"{self.name}.jsonl").write_text("\n".join(self.lines) + "\n")
        return self


STAGES = (("old_log_prob", 4.0), ("ref_log_prob", 4.0), ("values", 3.0), ("critic_update", 7.0), ("actor_update", 12.0))


def device_of(rank):
    """Return a device key like that of a card."""
    return f"GPU-{random.Random(rank).getrandbits(32):08x}-0d7b-4c54-9b1a-{rank:012x}"


def write_run(directory, ranks=8, steps=(2, 4), *, pipelined=False, run="made", slow=3):
    """Write a run in which one rank is slow and one rollout is long; pipelined: on devices of their own."""
    chance = random.Random(7)
    for rank in range(ranks):
        trains, generates = (rank >= ranks // 2, rank < ranks // 2) if pipelined else (True, True)
        writer = Writer(
            directory, "actor" if trains else "rollout", rank, world=ranks, host=f"node{rank // 8}", run=run
        )
        device = [device_of(rank)]
        for index, step in enumerate(steps):
            began = 5.0 + index * 85.0
            if generates:
                writer.step(began, "rollout", step, version=step - 1)
                long = 24.0 + chance.random() * 6.0 + (6.0 if rank == 1 else 0.0)
                long = long * 2.2 if pipelined else long
                writer.body(
                    began + 0.5, began + long, "window", "rollout", step, device, role="rollout", version=step - 1
                )
                if not trains:
                    writer.step(began + 80.0, "rollout", step + 1, selected=step + 1 in steps, version=step)
            if trains:
                at = began + (6.0 if pipelined else 38.5)
                behind = step - 2 if pipelined else step - 1
                writer.step(at - 0.5, "training", step, version=step - 1, generated_with=[max(behind, 0)])
                for name, seconds in STAGES:
                    took = seconds * (0.94 + 0.06 * chance.random()) * (1.2 if rank == slow % ranks else 1.0)
                    writer.body(at, at + took, "stage", name, step, device, version=step - 1)
                    at += seconds * 1.25 + 0.1
                if generates:
                    writer.step(began + 80.0, "rollout", step + 1, selected=step + 1 in steps, version=step)
        writer.close(5.0 + 85.0 * len(steps))
    return Path(directory)


VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """A page as a tree of what was opened: fails where an element is closed that is not open."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.words = [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Note what is opened."""
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}"
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Note an element without content."""
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag):
        """Note what is closed."""
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        """Note text."""
        self.words.append(data)

    def all(self, tag):
        """Return the attributes of each element of a kind."""
        return [attrs for name, attrs, _ in self.tags if name == tag]
