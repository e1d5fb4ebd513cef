"""What a run must have left: recordings that are whole, and the files that its journals name, and no others."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from profwin.testing.conformance.recorder import judge_files, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Made", "judge", "made"]


@dataclass
class Made:
    """One recording, as its process's journal has it.

    Attributes:
        name: of the window or stage.
        opened: nanoseconds, as in journals.
        entered: how many windows, stages and spans it recorded.
        closed: whether it was.
        problems: what failed.
        paths: its files.
    """

    name: str
    opened: int
    entered: int = 0
    closed: bool = False
    problems: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def made(output: str) -> list[Made]:
    """Return what the journals below an output directory say was recorded, by the time it was opened."""
    found: list[Made] = []
    for journal in sorted(Path(output).glob("*/journal/*.jsonl")):
        found += _of(journal)
    return sorted(found, key=lambda each: each.opened)


def _of(journal: Path) -> Iterable[Made]:
    from profwin.journal import read

    found: dict[int, Made] = {}
    for record in read(str(journal)):
        kind = record["kind"]
        if kind == "open":
            found[record["collection"]] = Made(record["name"], record["t"])
        each = found.get(record.get("collection") or 0)
        if each is None:
            continue
        if record.get("error"):
            each.problems.append(f"{kind}: {record['error']}")
        if kind in ("enter", "join"):
            each.entered += 1
        elif kind == "close":
            each.closed = True
        elif kind == "lost":
            each.problems.append("its lock was lost")
        elif kind == "export" and record.get("path"):
            each.paths.append(os.path.join(journal.parents[1], record["path"]))
    return found.values()


def judge(output: str, expected: Sequence[Made], *, writes: bool) -> None:
    """Assert that recordings are whole, that their files are there, and that nothing else lies beside those.

    Args:
        output: the output directory.
        expected: those that must be whole.
        writes: whether each leaves files.
    """
    __tracebackhide__ = True
    for each in expected:
        require(each.entered, f"nothing was recorded of {each.name!r}: it was not opened")
        require(each.closed, f"the recording of {each.name!r} was not closed")
        require(not each.problems, f"the recording of {each.name!r} is not whole: {'; '.join(each.problems)}")
        require(each.paths or not writes, f"the recording of {each.name!r} left no file")
    named = [path for each in made(output) for path in each.paths]
    for folder in {os.path.dirname(path) for each in expected for path in each.paths}:
        judge_files(folder, [path for path in named if os.path.dirname(path) == folder])
