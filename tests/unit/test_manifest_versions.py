"""Weight versions in the manifest: what a step was generated with, trained at, and how stale it was."""

from __future__ import annotations

import json

import numpy as np
import pytest

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.errors import SettingError
from profwin.manifest import gather


@pytest.fixture
def steps(tmp_path):
    """Configure a run; return a function that ends it and returns the steps of its manifest."""
    profwin.configure(steps="1-3", output=tmp_path, run="r", devices="pretend:0")

    def steps():
        profwin.shutdown()
        written = json.loads((tmp_path / "r" / "manifest.json").read_text())["steps"]
        assert gather(str(tmp_path / "r"))["steps"] == written
        return written

    return steps


def versions(step):
    """Return what the manifest says of a step's versions."""
    return step["generated_with"], step["trained_at"], step["staleness"]


def train(step, **more):
    """Train a step with one stage."""
    with training_step(step, **more), training_stage("update"):
        pass


def test_one_step_off(steps):
    """Generated with one version and trained at the next one, a step is stale by one."""
    with rollout_window(1, weight_version=3):
        pass
    train(1, weight_version=4)
    assert versions(steps()["1"]) == ([3], [4], 1)


def test_in_turns(steps):
    """Where rollout and training take turns, the window's version is the one trained: not stale at all."""
    with rollout_window(1, weight_version=3):
        pass
    with training_stage("update"):
        pass
    assert versions(steps()["1"]) == ([3], [3], 0)


def test_several_versions(steps):
    """Staleness counts from the oldest version generated with to the newest trained at."""
    for version in (7, 5, 6, 5):
        with rollout_window(1, weight_version=version):
            pass
    for version in (8, 9):
        train(1, weight_version=version)
    assert versions(steps()["1"]) == ([5, 6, 7], [8, 9], 4)


@pytest.mark.parametrize(("told", "known"), [(2, [2]), ([4, 2, 4], [2, 4]), (iter([2]), [2]), (range(2, 4), [2, 3])])
def test_what_the_trainer_says_counts_more(steps, told, known):
    """Versions that the trainer names replace those of the step's windows, which may have run ahead."""
    with rollout_window(1, weight_version=5):
        pass
    train(1, weight_version=6, generated_with=told)
    assert versions(steps()["1"]) == (known, [6], 4)


@pytest.mark.parametrize("generated", [None, 1])
@pytest.mark.parametrize("trained", [None, 3])
def test_unknown_versions(steps, generated, trained):
    """Without one of the two sides there is no staleness, and what is known stands there all the same."""
    with rollout_window(2, weight_version=generated):
        train(1, weight_version=trained)
    train(2, weight_version=trained)
    known = [[version] if version is not None else [] for version in (generated, trained)]
    found = steps()
    assert versions(found["2"]) == (*known, 2 if generated and trained else None)
    assert versions(found["1"]) == ([], known[1], None)


def test_told_without_a_window(steps):
    """A trainer whose windows nobody recorded says both, and the manifest has the staleness."""
    train(1, weight_version=9, generated_with=7)
    assert versions(steps()["1"]) == ([7], [9], 2)


def test_a_step_that_recorded_nothing(steps):
    """A selected step without any stage has what was said of it, and no leftovers of how it was gathered."""
    with training_step(1, weight_version=9, generated_with=[7, 8]):
        pass
    found = steps()["1"]
    assert versions(found) == ([7, 8], [9], 2)
    assert set(found) == {"collections", "skips", "generated_with", "trained_at", "staleness"}


def test_steps_that_are_not_selected(steps):
    """A step that is not selected is not in the manifest, whatever was said of it."""
    train(1, weight_version=1, generated_with=0)
    train(4, weight_version=4, generated_with=3)
    assert set(steps()) == {"1"}


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "3"])
def test_wrong_versions(wrong):
    """What is no whole number from 0 is refused where it is given, naming the setting."""
    for given in (wrong, [1, wrong]):
        with pytest.raises(SettingError, match="generated_with"):
            training_step(1, generated_with=given)
    with pytest.raises(SettingError, match="weight_version"):
        training_step(1, weight_version=wrong)
    with pytest.raises(SettingError, match="weight_version"):
        rollout_window(1, weight_version=wrong)


def test_versions_that_only_count_like_numbers(steps):
    """Whole numbers of other types, such as numpy's, are numbers in the journal and the manifest."""
    with rollout_window(1, weight_version=np.int64(3)):
        pass
    train(1, weight_version=np.int64(5), generated_with=np.arange(3, 5))
    assert versions(steps()["1"]) == ([3, 4], [5], 2)
