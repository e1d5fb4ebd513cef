"""Recordings without journals: steps, stages, roles and ranks that are missing, there twice, or not asked for."""

from __future__ import annotations

import pytest

from profwin.evidence.check import make_options
from profwin.evidence.model import Clock, Name, Recording
from profwin.evidence.roster import roster

CLOCK = Clock("wall", "host")


def _recordings(*names: Name, window: tuple[int, int] | None = (0, 10)) -> list[Recording]:
    return [Recording("kineto", f"{number}.json", CLOCK, window=window, name=name) for number, name in enumerate(names)]


def _codes(recordings: list[Recording], **asked: str) -> dict[str, str]:
    return {each.code.name: each.detail for each in roster(recordings, make_options(**asked).expectation)}


TRAINED = [
    Name(step=step, rank=rank, world=2, purpose="training", stage="update") for step in (2, 4) for rank in (0, 1)
]


def test_what_was_asked_for_is_there():
    """Two steps of two ranks, asked for in every way, give no finding; nor do they where nothing is asked for."""
    recordings = _recordings(*TRAINED)
    assert _codes(recordings, steps="2,4", ranks="0-1", stages="update") == {}
    assert _codes(recordings) == {}
    assert _codes([], steps="2") == {}


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ({"steps": "2-4"}, "missing-step", "step 3"),
        ({"steps": "2-"}, "missing-step", "step 3"),
        ({"steps": "2"}, "unexpected-step", "step 4"),
        ({"ranks": "0-2"}, "missing-rank", "rank 2 of update, step"),
        ({"ranks": "0"}, "unexpected-rank", "rank 1"),
        ({"stages": "update,log_prob"}, "missing-stage", "of 'log_prob'"),
        ({"stages": "log_*"}, "unexpected-stage", "'update'"),
        ({"roles": "critic"}, "missing-role", "'critic'"),
    ],
    ids=str,
)
def test_what_was_asked_for_is_missing_or_more_is_there(asked, code, said):
    """Each option names what is missing of it, and what nobody asked for."""
    found = _codes(_recordings(*TRAINED), **asked)
    assert set(found) == {code}
    assert said in found[code]


def test_fewer_ranks_than_the_world_has():
    """A rank of the world that has no recording is a warning, unless the ranks that are there were asked for."""
    recordings = _recordings(*TRAINED[:3])
    assert "1 of 2 ranks of update, step 4; there is no recording of rank 1" in _codes(recordings)["fewer-ranks"]
    assert _codes(_recordings(*[name for name in TRAINED if name.rank == 0]), ranks="0") == {}


def test_steps_that_no_recording_says():
    """Where no recording says its step, that is the finding, and not each step."""
    found = _codes(_recordings(Name(rank=0)), steps="1-50")
    assert found == {"missing-step": "steps 1-50 were asked for, and no recording says which step it is of"}


def test_one_rank_twice_at_the_same_time():
    """Two recordings that claim one rank of one stage at one time are two processes of one name."""
    assert set(_codes(_recordings(*TRAINED, TRAINED[0]))) == {"doubled"}


@pytest.mark.parametrize(
    "names",
    [
        [Name(step=2, rank=0, stage="a"), Name(step=2, rank=0, stage="b")],
        [Name(step=2, rank=0, role="a"), Name(step=2, rank=0, role="b")],
        [Name(step=2, rank=0), Name(step=2, rank=0)],
        [Name(rank=0, stage="a"), Name(rank=0, stage="a")],
        [Name(step=2, rank=0, stage="a", replica=0), Name(step=2, rank=0, stage="a", replica=1)],
    ],
    ids=["stages", "roles", "no stage", "no step", "replicas"],
)
def test_what_may_be_two_things_is_not_twice(names):
    """Recordings that differ in anything, or do not say enough, are not called one thing."""
    assert _codes(_recordings(*names)) == {}


def test_parts_one_after_the_other_are_not_twice():
    """A stage may be recorded in several parts: only what overlaps in time is there twice."""
    first, second = _recordings(TRAINED[0]), _recordings(TRAINED[0], window=(10, 20))
    assert "doubled" not in _codes([*first, *second])
    assert "doubled" not in _codes(_recordings(TRAINED[0], TRAINED[0], window=None))


def test_many_recordings_of_many_steps_take_no_time():
    """A hostile folder with as many steps as files is compared in one pass."""
    names = [Name(step=step, rank=0, stage="update") for step in range(20_000)]
    assert _codes(_recordings(*names), steps="0-", stages="update") == {}
