"""The demo's task and its engine's scheduler, without torch and without processes."""

from __future__ import annotations

import random

from profwin.demo.scheduler import Scheduler
from profwin.demo.task import END, LONGEST_ANSWER, expected_answer, held_out_prompts, prompts, reward


def test_the_expected_answer_earns_everything() -> None:
    """For every prompt the right answer, and only it, has the reward 1."""
    for prompt in held_out_prompts():
        answer = expected_answer(prompt)
        assert len(answer) <= LONGEST_ANSWER
        assert reward(prompt, answer) == 1.0
        assert reward(prompt, answer[:-1]) < 1.0
        assert reward(prompt, [*answer, END]) < 1.0
        assert reward(prompt, [answer[0] + 1, *answer[1:]]) < 1.0


def test_a_wrong_answer_earns_nothing() -> None:
    """Where no place is right, the reward is 0."""
    assert reward(3, [9, 9, 9, 9]) == 0.0


def test_prompts_follow_from_the_seed() -> None:
    """The same seed draws the same prompts, and all of them can be answered."""
    assert prompts(20, random.Random(5)) == prompts(20, random.Random(5))
    assert set(prompts(500, random.Random(5))) <= set(held_out_prompts())


def test_the_scheduler_fills_its_slots_in_order_of_arrival() -> None:
    """No more sequences than slots are decoded, the oldest unfinished ones first."""
    scheduler = Scheduler(slots=3)
    scheduler.submit([4, 5], 2)
    assert [sequence.tokens for sequence in scheduler.batch()] == [[4], [4], [5]]
    scheduler.batch()[0].tokens.append(END)
    assert [sequence.tokens for sequence in scheduler.batch()] == [[4], [5], [5]]


def test_only_whole_groups_are_handed_out() -> None:
    """A group is handed out with its last sequence and says which weights made it; others stay, with their tokens."""
    scheduler = Scheduler(slots=10)
    scheduler.submit([4, 5], 2)
    first, second, third, _fourth = scheduler.batch()
    first.tokens += [3, END]
    assert scheduler.finished_groups() == 0
    second.tokens.append(END)
    third.tokens += [4, 3]
    first.versions.update({0, 1})
    second.versions.add(0)
    third.versions.add(2)
    assert scheduler.finished_groups() == 1
    assert scheduler.take(5) == [{"prompt": 4, "answers": [[3, END], [END]], "versions": [0, 1]}]
    assert scheduler.carried() == (1, 2)
    assert scheduler.take(5) == []


def test_the_longest_answer_is_cut() -> None:
    """A sequence without an end finishes at the length limit, so that no group waits for ever."""
    scheduler = Scheduler(slots=1)
    scheduler.submit([4], 1)
    for _ in range(LONGEST_ANSWER):
        assert scheduler.finished_groups() == 0
        scheduler.batch()[0].tokens.append(7)
    assert scheduler.finished_groups() == 1
    assert scheduler.batch() == []
