"""The task of the demo: count down from the prompt's digit to zero, then stop.

It can be checked by a program (a *verifiable reward*), its answers differ in length, so that some sequences
are always finished before others, and a model of a few thousand parameters learns it within a dozen steps.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random
    from collections.abc import Iterable
    from typing import Any

__all__ = ["END", "LONGEST_ANSWER", "VOCABULARY", "expected_answer", "held_out_prompts", "prompts", "reward", "rewards"]

END = 10
"""The token that ends an answer; tokens 0 to 9 are the digits."""
VOCABULARY = 11
LONGEST_ANSWER = 10
"""Tokens after which an answer is cut; the longest right one (from 7) has 8."""
LOWEST, HIGHEST = 1, 7


def prompts(count: int, generator: random.Random) -> list[int]:
    """Draw the first digits of ``count`` countdowns."""
    return [generator.randint(LOWEST, HIGHEST) for _ in range(count)]


def held_out_prompts() -> list[int]:
    """Return the prompts of the validation: every digit once."""
    return list(range(LOWEST, HIGHEST + 1))


def expected_answer(prompt: int) -> list[int]:
    """Return the right answer, its end included: 3 becomes 2, 1, 0, end."""
    return [*range(prompt - 1, -1, -1), END]


def reward(prompt: int, answer: list[int]) -> float:
    """Say how right an answer is: the share of its places that hold the expected token, from 0.0 to 1.0.

    Places that one of the two lacks count as wrong, so an answer that is too long or too short is never
    perfect.
    """
    expected = expected_answer(prompt)
    right = sum(given == wanted for given, wanted in zip(answer, expected, strict=False))
    return right / max(len(expected), len(answer))


def rewards(groups: Iterable[dict[str, Any]]) -> list[float]:
    """Return the reward of each answer, in the groups' order."""
    return [reward(group["prompt"], answer) for group in groups for answer in group["answers"]]
