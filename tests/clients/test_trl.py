"""TRL's GRPOTrainer, really training on the CPU: what the shipped plan records of it. See ``trl_train.py``.

What is expected of each step stands here as it was seen with a probe in TRL itself, without profwin.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from clients_support import PYTHON, needs, run

sys.path.append(str(Path(__file__).parents[1] / "integration"))
from check_support import report

if TYPE_CHECKING:
    import subprocess

pytestmark = [needs("trl"), pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = str(Path(__file__).parent / "trl_train.py")
STEPS = (2, 3)
LOSS = ["loss", "(log_prob)", "backward"]
UPDATE = [*LOSS, "optimizer"]
PLAIN = ["rollout", "reward", *UPDATE]
REFERENCE = ["rollout", "log_prob", "reward", *UPDATE]
EXPECTED: dict[str, tuple[list[str], list[str]]] = {
    "plain": (PLAIN, PLAIN),
    "accumulate": (["rollout", "reward", *LOSS, *UPDATE],) * 2,
    "two generations": (["rollout", "reward", *LOSS, "rollout", "reward", *UPDATE],) * 2,
    "every other step": (UPDATE, REFERENCE),
    "iterations": (UPDATE, REFERENCE),
    "accumulate, iterations": ([*LOSS, *UPDATE], ["rollout", "log_prob", "reward", *LOSS, *UPDATE]),
    "reference": (REFERENCE, REFERENCE),
    "reference, old": (UPDATE, ["rollout", "log_prob", "log_prob", "reward", *UPDATE]),
    "batching thread": (PLAIN, PLAIN),
    "evaluate": (PLAIN, PLAIN),
    "save": (PLAIN, PLAIN),
}
"""What steps 2 and 3 consist of, in order; in brackets what lies inside of what stands before it."""
MODES: dict[str, tuple[str, ...]] = {
    "profiled": ("--steps", "2-3", "--backend", "torch"),
    "joined": ("--steps", "2-3", "--backend", "torch", "--collect", "step", "--continuous"),
    "not selected": ("--steps", "100", "--backend", "torch"),
}
BROKEN = "broken reward"
settings = pytest.mark.parametrize("name", EXPECTED)


@dataclass(frozen=True)
class Training:
    """One training that is over: where it left its files, and what it says of itself."""

    directory: Path

    @property
    def outcome(self) -> dict[str, Any]:
        """What the program wrote."""
        found: dict[str, Any] = json.loads((self.directory / "outcome.json").read_text())
        return found

    @property
    def run(self) -> Path:
        """The directory of its run."""
        (journal,) = self.directory.parent.glob(f"outputs/profwin/*/journal/*_p{self.outcome['pid']}-*")
        return journal.parents[1]

    @property
    def journal(self) -> list[dict[str, Any]]:
        """The records of its process's journal."""
        (path,) = self.run.glob("journal/*.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def regions(self) -> list[dict[str, Any]]:
        """The windows and stages, in order: the record of each entry, with the time of its exit and its depth."""
        found: dict[int, dict[str, Any]] = {}
        for record in self.journal:
            if record["kind"] == "enter":
                depth = sum("end" not in each for each in found.values())
                found[record["id"]] = {**record, "depth": depth}
            elif record["kind"] == "exit":
                found[record["id"]]["end"] = record["t"]
        return list(found.values())

    @property
    def recordings(self) -> list[tuple[int, int]]:
        """When something recorded: the times at which each collection was opened and closed."""
        opened = {each["collection"]: each["t"] for each in self.journal if each["kind"] == "open"}
        closed = {each["collection"]: each["t"] for each in self.journal if each["kind"] == "close"}
        return [(begin, closed[collection]) for collection, begin in opened.items()]

    @property
    def traces(self) -> list[Path]:
        """The traces."""
        return sorted(self.run.glob("step_*/**/*.pt.trace.json.gz"))


def start(
    folder: Path, *names: str, options: tuple[str, ...] | None, plan: str = "trl"
) -> subprocess.CompletedProcess[str]:
    """Train with each of these settings; without options without profwin."""
    locks = folder / "locks"
    locks.mkdir()
    os.chmod(locks, 0o1777)
    launcher = [] if options is None else ["-m", "profwin", "run", "--plan", plan, *options]
    launcher += ["--devices", "pretend:card", "--", PYTHON] if options is not None else []
    return run(
        *launcher, PROGRAM, *names, cwd=folder, PROFWIN_LOCK_DIR=str(locks), OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="5"
    )


def train(folder: Path, *names: str, options: tuple[str, ...] | None, plan: str = "trl") -> dict[str, Training]:
    """Train to the end, but for the one whose reward breaks, which ends as it does by itself."""
    done = start(folder, *names, options=options, plan=plan)
    assert done.returncode == (BROKEN in names), done.stderr[-4000:]
    assert done.stderr.count("\nRuntimeError: the reward broke\n") == (BROKEN in names)
    assert "profwin: " not in done.stderr, done.stderr[-4000:]
    return {name: Training(folder / name) for name in names}


class Trainings:
    """All settings, trained when they are first asked for, without profwin (``bare``) or in one of `MODES`."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory, self._done = factory, dict[str, dict[str, Training]]()

    def __call__(self, mode: str, name: str) -> Training:
        """Return one that is over."""
        if mode not in self._done:
            self._done[mode] = train(self._factory.mktemp("trl"), *EXPECTED, BROKEN, options=MODES.get(mode))
        return self._done[mode][name]


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    """Return the trainings."""
    return Trainings(tmp_path_factory)


def shown(training: Training) -> tuple[list[str], ...]:
    """Return what each of the steps consists of, as in `EXPECTED`."""
    return tuple(
        [f"({each['name']})" if each["depth"] else each["name"] for each in training.regions if each["step"] == step]
        for step in STEPS
    )


def within(region: dict[str, Any], times: list[list[int]]) -> bool:
    """Say whether a region lies inside of one call."""
    return any(begin <= region["t"] and region["end"] <= end for begin, end in times)


@settings
@pytest.mark.parametrize("mode", ["profiled", "joined"])
def test_a_step_has_what_trl_does_in_it(trainings: Trainings, mode: str, name: str) -> None:
    """The windows and stages of both steps are those that TRL runs, in its order, each recorded, and no others."""
    training = trainings(mode, name)
    assert shown(training) == EXPECTED[name]
    assert {each["step"] for each in training.regions} == set(STEPS)
    assert all(each.get("collection") for each in training.regions)
    assert not [each for each in training.journal if each["kind"] in ("skip", "finding")]


@settings
def test_each_window_and_stage_has_its_trace(trainings: Trainings, name: str) -> None:
    """Each has a trace of its own, and generation is in the windows' alone, the backward pass in its stage's."""
    training = trainings("profiled", name)
    outer = Counter(each["name"] for each in training.regions if not each["depth"])
    assert Counter(path.parent.name for path in training.traces) == outer
    for path in training.traces:
        with gzip.open(path) as file:
            names = {event.get("name", "") for event in json.load(file)["traceEvents"]}
        assert ("aten::multinomial" in names) == (path.parent.name == "rollout")
        assert any("Backward0" in each for each in names) == (path.parent.name == "backward")


@settings
def test_regions_lie_where_trl_runs_them(trainings: Trainings, name: str) -> None:
    """Generation and the log-probs after it lie inside of TRL's training step, the optimizer's stage outside."""
    training = trainings("profiled", name)
    ran = training.outcome["ran"]
    calls = len(ran["training_step"]) // 4
    for each in training.regions:
        of_step = ran["training_step"][calls * (each["step"] - 1) : calls * each["step"]]
        assert within(each, of_step) == (each["name"] != "optimizer")
        scored = each["name"] in ("rollout", "reward") or (each["name"] == "log_prob" and not each["depth"])
        assert within(each, ran["generate_and_score"]) == scored


@settings
@pytest.mark.parametrize("mode", ["profiled", "joined"])
def test_the_profile_is_clean(trainings: Trainings, mode: str, name: str) -> None:
    """``profwin check`` finds nothing, but that there is no accelerator, also where a step reuses samples."""
    training = trainings(mode, name)
    answer = report(training.run)
    found = {each["code"] for each in answer["findings"] if each["severity"] != "remark"}
    assert found == set()
    assert {each["code"] for each in answer["findings"]} - found == {"host-only"}


@pytest.mark.parametrize("mode", ["profiled", "joined"])
@pytest.mark.parametrize(("name", "method", "times"), [("evaluate", "prediction_step", 16), ("save", "save_model", 4)])
def test_evaluation_and_checkpoints_are_not_recorded(
    trainings: Trainings, mode: str, name: str, method: str, times: int
) -> None:
    """Nothing records while TRL evaluates or saves, also where a recording goes on from step to step."""
    training = trainings(mode, name)
    assert len(training.outcome["ran"][method]) == times
    assert not disturbed(training, method)


def disturbed(training: Training, method: str) -> bool:
    """Say whether something recorded, or a window or stage began, while a method of TRL's ran."""
    times = [*training.recordings, *((each["t"], each["end"]) for each in training.regions)]
    calls = training.outcome["ran"][method]
    return any(first < end and begin < last for begin, end in calls for first, last in times)


WITHOUT = {
    'when = "self.model.training"\n': ("evaluate", "prediction_step"),
    'target = "transformers.trainer:Trainer.evaluation_loop"\nrole = "pause"\n': ("evaluate", "prediction_step"),
    'target = "transformers.trainer:Trainer._save_checkpoint"\nrole = "pause"\n': ("save", "save_model"),
}


@pytest.mark.parametrize("line", WITHOUT, ids=["when", "evaluation", "checkpoint"])
def test_each_line_that_keeps_them_out_is_needed(tmp_path: Path, line: str) -> None:
    """Without one of the plan's lines they are recorded, or their windows stand in the next step: the test can fail."""
    from profwin.patch import reading

    text = (Path(reading.__file__).parent / "plans" / "trl.toml").read_text()
    assert line in text
    another = 'target = "transformers.trainer:Trainer.hyperparameter_search"\nrole = "pause"\n'
    (tmp_path / "changed.toml").write_text(text.replace(line, another if "pause" in line else ""))
    name, method = WITHOUT[line]
    training = train(tmp_path, name, options=MODES["joined"], plan="changed.toml")[name]
    assert disturbed(training, method)


@settings
@pytest.mark.parametrize("mode", MODES)
def test_training_is_the_same_to_the_last_bit(trainings: Trainings, mode: str, name: str) -> None:
    """Losses, rewards, samples, weights and random states are those of a training without profwin."""
    bare = trainings("bare", name).outcome["computed"]
    assert bare["steps"] == 4
    assert len(set(bare["losses"])) > 1
    assert trainings(mode, name).outcome["computed"] == bare


@settings
def test_steps_that_are_not_selected_leave_no_trace(trainings: Trainings, name: str) -> None:
    """A run that comes to no selected step enters no window and no stage."""
    training = trainings("not selected", name)
    assert not training.regions
    assert not training.traces


@pytest.mark.parametrize("mode", ["profiled", "joined"])
def test_an_exception_passes_and_leaves_nothing_recording(trainings: Trainings, mode: str) -> None:
    """A reward function that raises in a profiled step ends the training as it does without profwin."""
    (path,) = trainings(mode, BROKEN).directory.parent.glob("outputs/profwin/broken-reward/journal/*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    counts = Counter(record["kind"] for record in records)
    assert counts["open"] == counts["close"] > 0
    assert counts["enter"] == counts["exit"]
    assert [record["status"] for record in records if record["kind"] == "exit"][-1] == "error"
