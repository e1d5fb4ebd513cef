"""Continuous batching for the demo's engine: sequences wait for a slot and are decoded token by token.

Groups of answers to one prompt are handed out when all of their sequences have finished. What has not
finished stays, with the tokens it has, until decoding goes on: a *partial rollout*.
"""

from __future__ import annotations

from profwin.demo.task import END, LONGEST_ANSWER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DECODING", "Group", "Scheduler", "Sequence"]

DECODING = "decode with weights"
"""Name of a decoding step in a trace, before the version of its weights."""


class Sequence:
    """One answer on its way.

    Attributes:
        tokens: the prompt's token, then those of the answer so far.
        versions: of the weights that generated them.
    """

    __slots__ = ("tokens", "versions")

    def __init__(self, prompt: int) -> None:
        self.tokens = [prompt]
        self.versions: set[int] = set()

    @property
    def finished(self) -> bool:
        """Whether the answer has ended or is as long as it may be."""
        return self.tokens[-1] == END or len(self.tokens) > LONGEST_ANSWER


class Group:
    """All answers to one prompt."""

    __slots__ = ("prompt", "sequences")

    def __init__(self, prompt: int, size: int) -> None:
        self.prompt = prompt
        self.sequences = [Sequence(prompt) for _ in range(size)]

    def result(self) -> dict[str, Any]:
        """Return the group as the driver gets it."""
        return {
            "prompt": self.prompt,
            "answers": [sequence.tokens[1:] for sequence in self.sequences],
            "versions": sorted(set().union(*[sequence.versions for sequence in self.sequences])),
        }


class Scheduler:
    """Decide which sequences the next decoding step extends.

    Args:
        slots: how many sequences are decoded together.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._groups: list[Group] = []

    def submit(self, prompts: list[int], group: int) -> None:
        """Queue ``group`` answers to each prompt, behind what is already there."""
        self._groups += [Group(prompt, group) for prompt in prompts]

    def batch(self) -> list[Sequence]:
        """Return the unfinished sequences that hold the slots, oldest first; empty when all is finished."""
        unfinished = [sequence for group in self._groups for sequence in group.sequences if not sequence.finished]
        return unfinished[: self._slots]

    def finished_groups(self) -> int:
        """Return how many groups have finished and were not taken yet."""
        return sum(all(sequence.finished for sequence in group.sequences) for group in self._groups)

    def take(self, count: int) -> list[dict[str, Any]]:
        """Remove and return the results of the ``count`` oldest finished groups."""
        taken = [group for group in self._groups if all(sequence.finished for sequence in group.sequences)][:count]
        self._groups = [group for group in self._groups if group not in taken]
        return [group.result() for group in taken]

    def carried(self) -> tuple[int, int]:
        """Return how many groups are still here, and how many tokens of them exist already."""
        tokens = sum(len(sequence.tokens) - 1 for group in self._groups for sequence in group.sequences)
        return len(self._groups), tokens
