"""A tool that NVTX loads and that writes down every call, and what scripts under it were heard to do."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from core_support import run

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE = Path(__file__).resolve().parents[1] / "native" / "nvtx_injection.c"


@functools.cache
def injection() -> str:
    """Build the tool, once for this process; return its path. Skips the test where there is no compiler."""
    pytest.importorskip("nvtx")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build the tool that NVTX loads")
    directory = tempfile.mkdtemp(prefix="profwin-nvtx-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    library = Path(directory) / "injection.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return str(library)


@dataclass
class Range:
    """One range as the tool heard it.

    Attributes:
        kind: ``"push"`` or ``"start"``.
        began, ended: numbers of the calls.
        above: names of the ranges that it was pushed into, the outermost first.
    """

    kind: str
    name: str
    category: str
    colour: int
    pid: int
    thread: int
    began: int
    ended: int = 0
    above: list[str] = field(default_factory=list)


def heard(calls: list[dict[str, Any]], domain: str = "profwin") -> list[Range]:
    """Return the ranges of a domain, by their begin; each must have its end, in the process, and thread, of its begin.

    Args:
        calls: what the tool wrote.
        domain: whose calls are looked at.
    """
    stacks: dict[tuple[int, int], list[Range]] = {}
    started: dict[tuple[int, int], Range] = {}
    found: list[Range] = []
    for at, call in enumerate(calls, 1):
        if call["domain"] != domain:
            continue
        pid, thread, kind = call["pid"], call["thread"], call["call"]
        stack = stacks.setdefault((pid, thread), [])
        if kind in ("push", "start"):
            found.append(Range(kind, call["name"], call["category"], call["colour"], pid, thread, at))
        if kind == "push":
            found[-1].above = [each.name for each in stack]
            stack.append(found[-1])
        elif kind == "start":
            started[pid, call["number"]] = found[-1]
        elif kind == "pop":
            assert stack, f"a pop without a push in thread {thread} of process {pid}: call {at}"
            stack.pop().ended = at
        else:
            assert (pid, call["number"]) in started, f"an end without its start: {call}"
            started.pop((pid, call["number"])).ended = at
    left = [each for each in found if not each.ended]
    assert not left, f"ranges without an end: {left}"
    return found


def listen(
    tmp_path: Path, script: str, *, patience: float = 60, **environment: str
) -> tuple[str, list[dict[str, Any]]]:
    """Run a script under the tool; return what it said, and every call that the tool heard, in order."""
    log = tmp_path / "nvtx.log"
    out, _ = run(
        script, patience=patience, NVTX_INJECTION64_PATH=injection(), NVTX_INJECTION_LOG=str(log), **environment
    )
    calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return out, calls


def configured(tmp_path: Path, **more: Any) -> str:
    """Return the statement that configures a script with the backend ``nvtx``."""
    settings = {"steps": "1-", "backend": "nvtx", "output": str(tmp_path / "out"), "run": "r", "devices": "pretend:c"}
    return f"profwin.configure(**{settings | more!r})\n"


def names(ranges: Iterable[Range]) -> list[str]:
    """Return the names of ranges, each with those that it lies in."""
    return ["/".join([*each.above, each.name]) for each in ranges]
