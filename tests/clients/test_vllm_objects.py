"""vLLM's own engine objects behind windows, on the CPU: in this process, in others, in another thread's event loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from vllm_support import HERE, PATIENCE, PYTHON, make_model, needs_vllm

from profwin.journal import read

pytestmark = needs_vllm
IN_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
OTHERS = ["VLLM::EngineCore", "VLLM::Worker"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the model that the engines serve."""
    return make_model(tmp_path_factory.mktemp("objects") / "model")


def run(kind, model, folder, **variables):
    """Run a loop; return what the adapter knew of its engine, and the journal."""
    traces = folder / "traces"
    traces.mkdir()
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PROFWIN_", "PYTHON", "VLLM_"))}
    done = subprocess.run(
        [PYTHON, str(HERE / "vllm_objects.py"), kind, str(model), str(folder / "out"), str(traces)],
        env={
            **kept, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **variables,
        },
        capture_output=True, check=False, text=True, timeout=2 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    (journal,) = (folder / "out" / "objects" / "journal").glob("*.jsonl")
    known = next(line for line in done.stdout.splitlines() if line.startswith('{"in_process"'))
    return json.loads(known), list(read(str(journal)))


def checked(folder):
    """Return the exit status of ``profwin check``, and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "profwin", "check", str(folder / "out" / "objects")],
        capture_output=True, check=False, text=True, timeout=PATIENCE,
    )  # fmt: skip
    return done.returncode, done.stdout


def of(journal, kind):
    """Return the records of a kind."""
    return [record for record in journal if record["kind"] == kind]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "variables", "here", "processes"),
    [
        ("LLM", IN_PROCESS, True, ["here"]),
        ("LLM", {}, False, OTHERS),
        ("AsyncLLM", {}, False, OTHERS),
        ("elsewhere", {}, False, OTHERS),
    ],
    ids=["LLM in this process", "LLM", "AsyncLLM", "AsyncLLM of another thread"],
)  # fmt: skip
def test_two_steps(model, tmp_path, kind, variables, here, processes):
    """Each window and stage has its trace, in its step's folder; no two recorded at once; the check is clean."""
    known, journal = run(kind, model, tmp_path, **variables)
    assert known == {"in_process": here, "processes": processes}
    assert of(journal, "skip") == []
    assert [record["code"] for record in of(journal, "finding")] == []
    order = [(record["kind"], record["collection"]) for record in journal if record["kind"] in ("open", "close")]
    assert [what for what, _ in order] == ["open", "close"] * 4
    assert [each for _, each in order[::2]] == [each for _, each in order[1::2]]
    places = [str(Path(record["path"]).parent) for record in of(journal, "export")]
    assert places == [
        f"step_00000{step}/{part}" for step in (1, 2) for part in ("rollout", "train/update")
    ]  # fmt: skip
    assert list((tmp_path / "traces").iterdir()) == []
    status, said = checked(tmp_path)
    assert status == 0, said


@pytest.mark.timeout(600)
def test_an_engine_of_this_process_obeys_its_rules(model, tmp_path):
    """Beside a foreign profiler it does not start; a stage of this process ends its window, and is recorded."""
    _, journal = run("crossed", model, tmp_path, **IN_PROCESS)
    assert [record["reason"] for record in of(journal, "skip")] == ["foreign"]
    assert [record["reason"] for record in of(journal, "close")] == ["failure", "handover", "end"]
    assert len(of(journal, "overlap")) == 1
    assert [record["backend"] for record in of(journal, "export")] == ["engine", "torch"]
