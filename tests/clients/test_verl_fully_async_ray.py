"""verl's fully async policy in actors of a real Ray: its windows are over the servers, which lock their own cards.

One run of `fully_async_driver.ray_program`: three steps, and an eleventh as the negative control, with the plan but for
its actors. In steps 3 and 11 something else begins to train on the card that is lent, while it is lent.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from clients_support import HERE, PYTHON, needs, run

from profwin.testing import assert_no_overlap, assert_rollout_before_training, read_record

pytestmark = [needs("verl"), pytest.mark.slow, pytest.mark.timeout(900)]

LENT = ("GPU-5",)
STANDALONE = {1: ["GPU-2", "GPU-3", "GPU-4"], 2: ["GPU-2", "GPU-3", "GPU-4", "GPU-6"], 3: ["GPU-3", "GPU-4", "GPU-6"]}
"""Cards of the servers that are there when a step begins: in step 1 a replica is added, in step 2 one is removed."""
CONTROL = 11


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what the servers were told, in the steps and in the negative control, and the record of both."""
    folder, locks = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("locks")
    locks.chmod(0o1777)
    done = run(
        "-m", "profwin", "run", "--plan", "verl-fully-async", "--steps", "1-3,11", "--backend", "record", "--output",
        str(folder), "--lock-dir", str(locks), "--", PYTHON, "-W", "ignore", "-m", "fully_async_driver.ray_program",
        cwd=folder, PYTHONPATH=f"{HERE}:{HERE.parent / 'integration' / 'card_stand_in'}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told, control = json.loads(done.stdout.splitlines()[-1])
    [directory] = [path for path in folder.iterdir() if (path / "journal").is_dir()]
    return SimpleNamespace(told=told, control=control, record=read_record(str(directory)))


def of_step(record: Any, step: int, name: str) -> list[Any]:
    """Return the windows of a name in a step that the servers' processes recorded, by their devices."""
    found = [each for each in record.collections if (each.step, each.name) == (step, name) and not each.elsewhere]
    return sorted(found, key=lambda each: each.devices)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_each_window_is_over_the_servers_that_are_there_when_it_begins(training, step):
    """Each of them records in its own process, on its own cards, once; so does one whose card is lent."""
    windows = of_step(training.record, step, "rollout")
    assert [each.devices for each in windows] == [(card,) for card in STANDALONE[step]]
    assert [each.devices for each in of_step(training.record, step, "rollout_hybrid")] == [LENT]
    assert len({each.process for each in windows}) == len(windows)


def test_a_replica_that_is_removed_is_told_to_stop(training):
    """What is open over it ends with the others' windows, and what is added waits for the next one."""
    assert training.told["two"] == [["start", "stop"] * 2]
    assert training.told["four"] == [["start", "stop"] * 3] * 2
    assert training.told["six"] == [["start", "stop"] * 2]


def test_lent_cards_are_recorded_only_while_they_are_lent(training):
    """Windows over them begin after the validation of a sync, and end before the servers sleep and training works."""
    step = ["validation", "start", "stop", "sleep", "work", "work"]
    disturbed = ["validation", "start", "disturb", "stop", "work", "sleep", "work", "work"]
    # They sleep before the first sync; there is no window of step 4, whose devices are lent, too.
    assert training.told["hybrid"] == [["sleep", *step, *step, *disturbed, "validation", "sleep"]]


def test_servers_and_workers_of_one_card_take_turns(training):
    """Nothing overlaps on a card, and all that trains on the lent one is recorded, after the server."""
    record = training.record
    assert record.findings == ()
    assert_no_overlap(record)
    for step in (1, 2):  # in step 3 some of it is asked for while the window is open
        assert_rollout_before_training(record, step)
    stages = [each for each in record.stages if each.step <= 3]
    assert len(stages) == 7
    assert {each.devices for each in stages} == {LENT}
    assert all(each.recorded for each in stages)


def test_who_needs_a_lent_card_has_it_from_the_servers_process(training):
    """A stage that begins too soon asks that process, which stops the server; the standalone ones record on."""
    [lent] = of_step(training.record, 3, "rollout_hybrid")
    assert lent.reason == "asked"
    assert {each.reason for each in of_step(training.record, 3, "rollout")} == {"end"}


def test_without_its_actors_the_plan_lets_both_record(training):
    """The negative control: the trainer's names lock no card, so that the stage is recorded beside the server."""
    told = training.control["hybrid"][0]
    assert told[told.index("start") :][:4] == ["start", "disturb", "work", "stop"]
    assert all(each.devices[0].startswith("pretend-") for each in of_step(training.record, CONTROL, "rollout_hybrid"))
    assert [each.recorded for each in training.record.stages if each.step == CONTROL] == [True] * 3
