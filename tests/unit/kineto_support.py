"""Small traces as Kineto writes them, made here."""

from __future__ import annotations

import gzip
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from profwin.evidence.model import Recording

BASE = 1_700_000_000_000_000_000
HEAD = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A GPU"}], "baseTimeNanoseconds": BASE}
"""What stands before the events of a usual file."""
SPAN = {
    "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler",
    "ts": 1000.0, "dur": 500.25,
}  # fmt: skip


def launch(
    number: int, name: str = "cudaLaunchKernel", thread: int = 9, category: str = "cuda_runtime"
) -> dict[str, Any]:
    """Return a call of the host."""
    return {
        "ph": "X", "cat": category, "name": name, "pid": 4711, "tid": thread, "ts": 1000 + number, "dur": 0.5,
        "args": {"correlation": number},
    }  # fmt: skip


def kernel(number: int, device: int = 0, category: str = "kernel") -> dict[str, Any]:
    """Return the device work of the launch of this number: 500 ns, a microsecond after its call."""
    return {
        "ph": "X", "cat": category, "name": f"kernel_{number}", "pid": device, "tid": 7, "ts": 1001 + number,
        "dur": 0.5, "args": {"device": device, "stream": 7, "correlation": number},
    }  # fmt: skip


def operator(time: float = 1000.0) -> dict[str, Any]:
    """Return an operator of the host."""
    return {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 4711, "tid": 9, "ts": time, "dur": 1.0}


def pairs(*numbers: int) -> list[dict[str, Any]]:
    """Return launches with their device work."""
    return [event for number in numbers for event in (launch(number), kernel(number))]


def trace(events: list[dict[str, Any]], tail: dict[str, Any] | None = None, **head: Any) -> str:
    """Return the text of a trace with its span, `head` before the events and `tail` after them."""
    return json.dumps({**HEAD, **head, "traceEvents": [SPAN, *events], **(tail or {}), "traceName": "a.json"})


def read_text(folder: Path, text: str | bytes, name: str = "a.json") -> Recording:
    """Read a text as a Kineto trace."""
    from profwin.evidence.formats import kineto

    content = text.encode() if isinstance(text, str) else text
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return kineto.read(str(folder), name)


def codes_of(recording: Recording) -> list[str]:
    """Return the names of a recording's findings."""
    return [finding.code.name for finding in recording.findings]
