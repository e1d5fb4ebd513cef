"""Traces open in the viewers that people use: Perfetto's engine and TensorBoard's profiler. See ``README.md`` here."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PYTHON = os.environ.get("VIEWERS_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="VIEWERS_PYTHON names no environment: see tests/clients/README.md")
perfetto = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

RECORD = """
import sys
import torch
import profwin
from profwin import rollout_window, span, training_stage

output, trace_format, lock_dir = sys.argv[1:]
profwin.configure(
    steps="2", backend="torch", output=output, trace_format=trace_format, lock_dir=lock_dir, devices="pretend:card",
    run="run", role="actor", rank=0,
)
x = torch.randn(64, 64)
for step in (1, 2):
    with rollout_window(step, weight_version=1):
        x.mm(x)
    for name in ("actor_update", "actor_update", "critic/update"):
        with training_stage(name), span("inside"):
            x.mm(x).sum()
profwin.shutdown()
"""
NAMES = {"rollout", "train/actor_update", "train/critic_update"}
FORMATS = ["json.gz", "json"]


@pytest.fixture(scope="module", params=FORMATS)
def run(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a run with four traces."""
    output, locks = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("locks")
    subprocess.run(
        [sys.executable, "-c", RECORD, str(output), request.param, str(locks)],
        check=True, capture_output=True, timeout=100, cwd=HERE.parents[1],
    )  # fmt: skip
    assert len(traces(output / "run")) == 4
    return output / "run"


def traces(run: Path) -> list[Path]:
    """Return a run's traces."""
    return sorted(run.glob("step_*/**/*.pt.trace.json*"))


def read(script: str, *arguments: str) -> Any:
    """Return what a script says in the viewers' environment."""
    command = [PYTHON, str(HERE / script), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def events(path: Path) -> Counter[str]:
    """Count the events that are slices, by name."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        found = json.load(file)["traceEvents"]
    return Counter(event["name"] for event in found if event["ph"] in "Xi")


@perfetto
def test_perfetto_imports_every_event(run: Path) -> None:
    """Perfetto's engine takes every trace without an error, loses no event, and shows windows, stages and spans."""
    queries = (
        "select name, count(*) as n from slice group by name",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    for path in traces(run):
        answer = read("read_perfetto.py", str(path), *queries)
        assert answer["error"] == ""
        slices, problems = answer["rows"]
        assert problems == []
        assert dict(slices) == events(path)
        names = {name for name, _count in slices}
        assert {"rollout"} <= names if "/rollout/" in str(path) else {"inside"} <= names
        assert "aten::mm" in names


@perfetto
def test_perfetto_refuses_half_a_trace(run: Path, tmp_path: Path) -> None:
    """The check above can fail: half of a trace gives an error."""
    whole = traces(run)[0]
    half = tmp_path / whole.name
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    assert read("read_perfetto.py", str(half))["error"]


def test_tensorboard_shows_every_trace(run: Path) -> None:
    """TensorBoard finds a run in each directory and a worker in each file, with its operators and its timeline."""
    answer = read("read_tensorboard.py", str(run), "3")
    expected: dict[str, set[str]] = {}
    for path in traces(run):
        worker = path.name.partition(".pt.trace.json")[0]
        expected.setdefault(str(path.parent.relative_to(run)), set()).add(worker)
    assert {name.partition("~")[0].partition("/")[2] for name in expected} == NAMES
    assert {name: set(workers) for name, workers in answer["runs"].items()} == expected
    for workers in answer["runs"].values():
        for worker in workers.values():
            assert {"Operator", "Trace"} <= set(worker["views"])
            assert "aten::mm" in worker["operators"]
