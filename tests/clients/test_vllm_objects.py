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

sys.path.append(str(Path(__file__).parents[1] / "integration"))
from check_support import report

pytestmark = needs_vllm
OTHERS = ["VLLM::EngineCore", "VLLM::Worker"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the model that the engines serve."""
    return make_model(tmp_path_factory.mktemp("objects") / "model")


class Loops:
    """The loops with engines in one place, run when one of them is first asked for."""

    def __init__(self, factory):
        self._factory, self._model, self._done = factory, None, {}

    def __call__(self, where, loop):
        """Return the directory of a loop's run, and what the adapter knew of its engine."""
        if self._model is None:
            self._model = make_model(self._factory.mktemp("objects") / "model")
        if where not in self._done:
            self._done[where] = self._run(where, self._factory.mktemp(where))
        folder, known = self._done[where]
        return folder / "out" / loop.replace(" ", "-"), known[loop]

    def _run(self, where, folder):
        traces = folder / "traces"
        traces.mkdir()
        (folder / "locks").mkdir()
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PROFWIN_", "PYTHON", "VLLM_"))}
        done = subprocess.run(
            [PYTHON, str(HERE / "vllm_objects.py"), where, str(self._model), str(folder / "out"), str(traces)],
            env={
                **kept, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PROFWIN_LOCK_DIR": str(folder / "locks"),
                **({"VLLM_ENABLE_V1_MULTIPROCESSING": "0"} if where == "here" else {}),
            },
            capture_output=True, check=False, text=True, timeout=2 * PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        assert list(traces.iterdir()) == []
        return folder, dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """Return the loops."""
    return Loops(tmp_path_factory)


def journal_of(directory):
    """Return the records of the only process of a run."""
    (journal,) = (directory / "journal").glob("*.jsonl")
    return list(read(str(journal)))


def of(journal, kind):
    """Return the records of a kind."""
    return [record for record in journal if record["kind"] == kind]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("where", "loop", "processes"),
    [
        ("here", "LLM", ["here"]),
        ("others", "LLM", OTHERS),
        ("others", "AsyncLLM", OTHERS),
        ("others", "AsyncLLM of another thread", OTHERS),
    ],
)
def test_two_steps(loops, where, loop, processes):
    """Each window and stage has its trace, in its step's folder; no two recorded at once; the check is clean."""
    directory, known = loops(where, loop)
    journal = journal_of(directory)
    assert known == {"in_process": where == "here", "processes": processes}
    assert of(journal, "skip") == []
    assert [record["code"] for record in of(journal, "finding")] == []
    order = [(record["kind"], record["collection"]) for record in journal if record["kind"] in ("open", "close")]
    assert [what for what, _ in order] == ["open", "close"] * 4
    assert [each for _, each in order[::2]] == [each for _, each in order[1::2]]
    places = [str(Path(record["path"]).parent) for record in of(journal, "export")]
    assert places == [
        f"step_00000{step}/{part}" for step in (1, 2) for part in ("rollout", "train/update")
    ]  # fmt: skip
    answer = report(directory)
    assert answer["clean"], answer["findings"]


@pytest.mark.timeout(600)
def test_an_engine_of_this_process_obeys_its_rules(loops):
    """Beside a foreign profiler it does not start; a stage of this process ends its window, and is recorded."""
    journal = journal_of(loops("here", "crossed")[0])
    assert [record["reason"] for record in of(journal, "skip")] == ["foreign"]
    assert [record["reason"] for record in of(journal, "close")] == ["failure", "handover", "end"]
    assert len(of(journal, "overlap")) == 1
    assert [record["backend"] for record in of(journal, "export")] == ["engine", "torch"]
