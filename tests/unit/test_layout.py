"""Where traces go: names that no two collections share, and files that say what they are."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import profwin
from profwin import rollout_window, training_stage
from profwin.run import Run, safe_name

OUTPUT = "/output"

# Few letters, and all that paths and patterns could trip over, so that names which are nearly the same come up often.
NAMES = st.text("ab_./~: -\\\n\0éß語\ud800", max_size=4) | st.text("x", min_size=78, max_size=84)
SMALL = st.integers(0, 12)


class Trace(NamedTuple):
    """What a trace is named after."""

    purpose: str
    step: int
    name: str
    role: str
    rank: int | None
    process: int
    occurrence: int
    segment: int
    attempt: int

    def stem(self) -> str:
        """Return the path that a process with these values gives its trace."""
        settings = SimpleNamespace(rank=self.rank, role=self.role, run="run", output=OUTPUT)
        run = Run(settings, {"PROFWIN_ATTEMPT": str(self.attempt)})
        run.process = f"p{self.process}-5f3a"
        return run.trace_stem(self.purpose, self.step, self.name, self.role, self.occurrence, self.segment)


TRACES = st.builds(
    Trace,
    st.sampled_from(["rollout", "training"]), SMALL, NAMES, NAMES, st.none() | SMALL, st.sampled_from([1, 12, 4711]),
    st.integers(1, 12), st.integers(1, 3), SMALL,
)  # fmt: skip


@given(TRACES, st.data())
def test_what_differs_gets_another_path(trace, data):
    """Two traces that differ in any one thing, or in all, have two paths, also where only odd characters differ."""
    field = data.draw(st.sampled_from(Trace._fields))
    other = data.draw(TRACES)
    one_apart = trace._replace(**{field: getattr(other, field)})
    for second in (other, one_apart):
        assert (trace.stem() == second.stem()) is (trace == second)


@given(NAMES, NAMES)
def test_two_names_are_never_one(first, second):
    """As parts of paths, two names stay two, whatever had to be changed in them."""
    assert (safe_name(first) == safe_name(second)) is (first == second)
    assert re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9._+~-]{0,88}", safe_name(first))


@pytest.mark.parametrize("name", ["actor_update", "update-2.5", "a+b", "UPPER", "x" * 80])
def test_plain_names_stay_as_they_are(name):
    """A name that can be part of a path is that part."""
    assert safe_name(name) == name


@given(TRACES)
def test_every_path_stays_in_its_step(trace):
    """A trace lies below its step's directory, is not hidden, and its temporary name is short enough for any disk."""
    stem = trace.stem()
    assert os.path.normpath(stem) == stem
    where = Path(stem).relative_to(f"{OUTPUT}/run/step_{trace.step:06d}").parts
    assert len(where) == (2 if trace.purpose == "rollout" else 3)
    assert not any(part.startswith(".") for part in where)
    assert len(where[-1]) < 240


@given(TRACES)
def test_tensorboard_takes_the_whole_name_for_the_worker(trace):
    """TensorBoard splits ``WORKER[.DIGITS].pt.trace.json[.gz]``; our names end so that no digits are split off."""
    assert re.fullmatch(r"(rank\d+|norank)_.+_p\d+-[0-9a-f]{4}_n\d+(\.\d+)?_a\d+", Path(trace.stem()).name)


@pytest.fixture(params=["json.gz", "json"])
def record(request, tmp_path):
    """Return a function that records one step with torch and returns its run's directory."""
    pytest.importorskip("torch")

    def run(*stages: str) -> Path:
        profwin.configure(
            steps="7", backend="torch", output=str(tmp_path), trace_format=request.param, devices="pretend:card",
            role="actor", rank=3, run="run",
        )  # fmt: skip
        with rollout_window(7, weight_version=4):
            pass
        for stage in stages:
            with training_stage(stage):
                pass
        profwin.shutdown()
        return tmp_path / "run"

    return run


def _traces(directory: Path) -> list[Path]:
    return sorted(directory.glob("step_000007/**/*.pt.trace.json*"))


def _read(path: Path) -> dict:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return json.load(file)


def test_files_say_what_they_are(record):
    """Each trace has the run, step, stage, device key and weight version under ``profwin``; no other files are left."""
    run = record("actor/update", "actor_update", "actor_update")
    traces = _traces(run)
    said = [_read(path)["profwin"] for path in traces]
    assert sorted((each["purpose"], each["name"], each["occurrence"]) for each in said) == [
        ("rollout", "rollout", 1),
        ("training", "actor/update", 1),
        ("training", "actor_update", 1),
        ("training", "actor_update", 2),
    ]
    for each in said:
        expected = {"run": "run", "attempt": 0, "step": 7, "devices": ["pretend-card"], "weight_version": 4, "rank": 3}
        assert expected.items() <= each.items()
        assert each["segment"] == 1
    for path in traces:
        assert _read(path)["traceEvents"]
    assert sorted(path for path in run.glob("step_*/**/*") if path.is_file()) == traces


def test_a_failed_export_leaves_no_file(record, monkeypatch):
    """If a trace cannot be written to its end, nothing of it stays, under any name, and the journal says why."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", full)
    run = record("update")
    monkeypatch.undo()
    assert not [path for path in run.glob("step_*/**/*") if path.is_file()]
    (journal,) = run.glob("journal/*.jsonl")
    exports = [json.loads(line) for line in journal.read_text().splitlines() if '"export"' in line]
    assert [export["error"] for export in exports] == ["[Errno 28] No space left on device"] * 2


def test_a_step_that_comes_again_overwrites_nothing(tmp_path):
    """A loop that counts its steps anew gets new files for a step that it recorded long before."""
    profwin.configure(steps="2", backend="torch", output=tmp_path, devices="pretend:0", run="r", trace_format="json")
    for step in (2, 13, 2, 30, 2):
        with rollout_window(step):
            pass
    profwin.shutdown()
    traces = [path.name for path in (tmp_path / "r" / "step_000002" / "rollout").iterdir()]
    assert len(traces) == 3, traces
