"""Presence: each code is raised by a run that lacks something, and not by one that is nearly the same."""

from __future__ import annotations

import pytest
from journal_builder import JournalBuilder, make_run
from presence_support import codes, found, steps

from profwin.errors import SettingError
from profwin.evidence.expectation import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def test_a_whole_run_has_no_finding(tmp_path: Path) -> None:
    """Nothing is missing in a run of four ranks and three steps, traces and all."""
    make_run(tmp_path, ranks=4, steps=3, traces=True)
    assert not found(tmp_path)


def test_a_run_that_recorded_nothing(tmp_path: Path) -> None:
    """Processes without windows and stages are no clean run."""
    JournalBuilder(tmp_path).end().save()
    assert codes(tmp_path)["nothing-recorded"] == 1
    steps(JournalBuilder(tmp_path), 2, 4)
    assert not codes(tmp_path)


@pytest.mark.parametrize(
    ("recorded", "last", "expected"),
    [
        ((2, 4), 5, {}),
        ((2,), 5, {"missing-step": 1}),
        ((2,), 3, {"step-not-reached": 1}),
        ((4,), 5, {"step-not-reached": 1}),
        ((2, 3, 4), 5, {"unexpected-step": 1}),
    ],
)
def test_steps(tmp_path: Path, recorded: tuple[int, ...], last: int, expected: dict[str, int]) -> None:
    """A step is missing if the run passed it, not reached if it ended before, and unexpected if nobody asked for it."""
    steps(JournalBuilder(tmp_path), *recorded, last=last)
    assert codes(tmp_path) == expected


def test_a_selection_without_end_is_never_missed_beyond_the_run(tmp_path: Path) -> None:
    """Of every second step, those that the run passed are asked for."""
    steps(JournalBuilder(tmp_path, settings={"steps": "every:2"}), 2, 4, 8, last=9)
    assert [finding.data for finding in found(tmp_path)] == [{"step": 6}]


def test_a_selection_by_code_is_known_by_what_processes_said(tmp_path: Path) -> None:
    """A callable cannot be read back: a remark says so, and the selected steps are those that were announced."""
    journal = JournalBuilder(tmp_path, settings={"steps": "<function choose>"})
    journal.step(3, 1)
    steps(journal, 2, 4)
    assert codes(tmp_path) == {"bad-setting": 1, "missing-step": 1}


def test_a_process_without_a_selection_asks_for_nothing(tmp_path: Path) -> None:
    """One process that was started without steps changes nothing in what the others were asked for."""
    JournalBuilder(tmp_path, "helper", None, pid=9, settings={"steps": None}).end().save()
    steps(JournalBuilder(tmp_path), 2)
    assert codes(tmp_path) == {"missing-step": 1}


def test_options_count_before_settings(tmp_path: Path) -> None:
    """What is asked of the check replaces what the run was asked for."""
    steps(JournalBuilder(tmp_path), 2, 4)
    assert codes(tmp_path, steps="2-4") == {"missing-step": 1}
    assert codes(tmp_path, steps="2") == {"unexpected-step": 1}
    with pytest.raises(SettingError, match="--steps"):
        options(steps="two")


def test_hostile_numbers_end_soon(tmp_path: Path) -> None:
    """Steps and worlds without measure are not counted through one by one."""
    journal = JournalBuilder(tmp_path, settings={"steps": "0-"}, world=2**62)
    journal.step(0, 1)
    journal.step(2**62, 1)
    journal.window(2**62 - 1, 2, 3)
    journal.save()
    assert codes(tmp_path)["missing-rank"] == 1
    assert codes(tmp_path)["missing-step"] == 101


def test_a_stage_that_was_asked_for_by_name(tmp_path: Path) -> None:
    """A named stage must be in each step; a pattern names none."""
    steps(JournalBuilder(tmp_path, settings={"stages": "up*"}), 2, 4)
    assert not codes(tmp_path)
    assert codes(tmp_path, stages="update,score") == {"missing-stage": 2}
    assert codes(tmp_path, stages="score*") == {"unexpected-stage": 1}


def test_a_stage_that_only_other_steps_have(tmp_path: Path) -> None:
    """A stage of one step that another lacks is uneven; a window of another name may come and go."""
    journal = JournalBuilder(tmp_path)
    journal.window(2, 15, 16, "reward")
    steps(journal, 2, last=None)
    assert "uneven-stage" not in codes(tmp_path)
    steps(journal, 4, stages=("update", "critic"))
    assert codes(tmp_path) == {"uneven-stage": 1}


@pytest.mark.parametrize("uneven", [False, True])
def test_what_a_plan_says_is_not_in_every_step(tmp_path: Path, uneven: bool) -> None:
    """A step may lack a window or stage of which the journal says that not every step has it."""
    journal = JournalBuilder(tmp_path)
    if uneven:
        journal.write("uneven", 15, what="window", name="rollout")
        journal.write("uneven", 15, what="stage", name="score")
    journal.stage(4, 45, 46)
    steps(journal, 2, stages=("update", "score"))
    assert codes(tmp_path) == ({} if uneven else {"missing-window": 1, "uneven-stage": 1})


def test_a_step_without_a_window(tmp_path: Path) -> None:
    """A step with stages alone is noticed where another step has a window."""
    journal = JournalBuilder(tmp_path)
    journal.stage(4, 45, 46)
    steps(journal, 2)
    assert codes(tmp_path) == {"missing-window": 1}
    journal.window(4, 44, 44.5)
    journal.save()
    assert not codes(tmp_path)


def test_ranks_of_a_world(tmp_path: Path) -> None:
    """A rank without a journal is missing from a world of four, unless it was not to record."""
    for rank in (0, 1, 3):
        steps(JournalBuilder(tmp_path, rank=rank, world=4), 2, 4)
    (finding,) = found(tmp_path)
    assert (finding.code.name, finding.data["ranks"]) == ("missing-rank", [2])
    assert not codes(tmp_path, ranks="0,1,3")
    assert codes(tmp_path, ranks="0") == {"unexpected-rank": 2}
    assert codes(tmp_path, ranks="1-4")["missing-rank"] == 2


def test_a_rank_beyond_its_world(tmp_path: Path) -> None:
    """Rank 1 of a world of one is not possible."""
    for rank in (0, 1):
        steps(JournalBuilder(tmp_path, rank=rank, world=2 - rank), 2, 4)
    assert codes(tmp_path)["unexpected-rank"] == 1


def test_a_rank_that_lacks_a_stage(tmp_path: Path) -> None:
    """A stage that other ranks have in a step is missing on one; the work of one rank alone is not."""
    for rank in range(3):
        journal = JournalBuilder(tmp_path, rank=rank)
        journal.stage(2, 28, 28.5, "score") if rank == 0 else None
        journal.stage(4, 48, 48.5, "score") if rank == 0 else None
        steps(journal, 2, 4)
    assert not codes(tmp_path)
    steps(JournalBuilder(tmp_path, rank=1), 2)
    (finding, other) = found(tmp_path)
    assert {finding.code.name, other.code.name} == {"missing-rank"}
    assert finding.data["ranks"] == other.data["ranks"] == [1]
    assert {"stage", "window"} <= finding.data.keys() | other.data.keys()


def test_an_attempt_with_fewer_ranks(tmp_path: Path) -> None:
    """Ranks are compared within their own attempt: a restart on fewer is whole."""
    for attempt, size in ((0, 3), (1, 2)):
        for rank in range(size):
            pid = 100 * attempt + rank
            steps(JournalBuilder(tmp_path, rank=rank, world=size, attempt=attempt, pid=pid), 2, 4)
    assert not codes(tmp_path)


def test_roles(tmp_path: Path) -> None:
    """A role that was asked for by name must have recorded, and no other may have."""
    steps(JournalBuilder(tmp_path), 2, 4)
    assert codes(tmp_path, roles="actor,critic") == {"missing-role": 1}
    assert codes(tmp_path, roles="crit*") == {"unexpected-rank": 1}
    assert not codes(tmp_path, roles="act*")


def repeated(directory: Path, rank: int, *occurrences: int) -> None:
    """Write a journal with a stage more than once in one step."""
    journal = JournalBuilder(directory, rank=rank, settings={"steps": "2"})
    for number in occurrences:
        journal.stage(2, 24 + number, 24.5 + number, "micro", occurrence=number)
    steps(journal, 2, last=3)


def test_occurrences(tmp_path: Path) -> None:
    """A gap in the numbers is a lost one; fewer than on other ranks is said; as many is fine."""
    repeated(tmp_path, 0, 1, 2, 3)
    repeated(tmp_path, 1, 1, 2, 3)
    assert not codes(tmp_path)
    repeated(tmp_path, 1, 1, 3)
    assert codes(tmp_path) == {"missing-occurrence": 1}
    repeated(tmp_path, 1, 1, 2)
    assert codes(tmp_path) == {"fewer-occurrences": 1}


def test_the_same_twice(tmp_path: Path) -> None:
    """Two processes that are one rank of one role and attempt double its recordings; a restart does not."""
    steps(JournalBuilder(tmp_path, pid=1), 2, 4)
    steps(JournalBuilder(tmp_path, pid=2, attempt=1), 2, 4)
    assert not codes(tmp_path)
    steps(JournalBuilder(tmp_path, pid=3, attempt=1), 2, 4)
    assert codes(tmp_path) == {"doubled": 4}
