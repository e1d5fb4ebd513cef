"""Groups of actors in the place of one engine or one trainer: each gets a part of a step's samples."""

from __future__ import annotations

import pickle
from itertools import accumulate, pairwise

from profwin.demo.cluster.member import ask_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    from profwin.demo.cluster.member import Member

    T = TypeVar("T")

__all__ = ["EngineGroup", "RollouterGroup", "TrainerGroup", "shares"]


def shares(count: int, parts: int) -> list[int]:
    """Divide a number into parts that differ by one at the most."""
    return [count // parts + (part < count % parts) for part in range(parts)]


def _parts(items: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    return [list(items[start:end]) for start, end in pairwise([0, *accumulate(sizes)])]


class _Group:
    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)

    def evaluate(self, prompts: list[int]) -> list[dict[str, Any]]:
        """Return the likeliest answer to each prompt: all have the same weights."""
        groups: list[dict[str, Any]] = self.members[0].call("evaluate", prompts=prompts)
        return groups

    def recorder(self) -> list[Any]:
        """Return what profwin is given as ``engine=``."""
        from profwin.ray import actors

        return list(actors([member.handle for member in self.members]))


class EngineGroup(_Group):
    """Engines, used as :class:`profwin.demo.rollout.RolloutEngine` is by the loops.

    Args:
        members: their actors.
    """

    def generate(self, prompts: list[int], *, group: int, wanted: int) -> dict[str, Any]:
        """Return ``wanted`` finished groups."""
        return self.generated(self.begin(prompts, group=group, wanted=wanted))

    def begin(self, prompts: list[int], *, group: int, wanted: int) -> list[Any]:
        """Let them generate and do not wait; return what to ask :meth:`generated` for the result with."""
        sizes, goals = (shares(count, len(self.members)) for count in (len(prompts), wanted))
        return [
            member.send("generate", prompts=part, group=group, wanted=goal)
            for member, part, goal in zip(self.members, _parts(prompts, sizes), goals, strict=True)
        ]

    def generated(self, generation: list[Any]) -> dict[str, Any]:
        """Wait for the finished groups."""
        results = [member.receive(each) for member, each in zip(self.members, generation, strict=True)]
        return {
            "groups": [group for result in results for group in result["groups"]],
            "decoding_steps": sum(result["decoding_steps"] for result in results),
        }

    def abort(self) -> dict[str, int]:
        """Stop decoding; unfinished answers are kept for the next step. Return how much that is."""
        carried = ask_all(self.members, "abort")
        return {name: sum(each[name] for each in carried) for name in carried[0]}

    def sleep(self) -> None:
        """Give the devices' memory back."""
        ask_all(self.members, "sleep")

    def load_weights(self, weights: bytes, version: int) -> None:
        """Hand new weights to all of them."""
        ask_all(self.members, "load_weights", weights=weights, version=version)


class RollouterGroup(_Group):
    """Rollouters, each with its part of every batch.

    Args:
        members: their actors.
    """

    def samples(self) -> list[dict[str, Any]]:
        """Wait for the next batch and return it."""
        return [group for part in ask_all(self.members, "samples") for group in part]

    def pause(self) -> None:
        """Let none of them decode."""
        ask_all(self.members, "pause")

    def resume(self) -> None:
        """Let all of them decode."""
        ask_all(self.members, "resume")

    def load_weights(self, weights: bytes, version: int, seconds: float) -> dict[str, Any]:
        """Hand new weights to all of them; return what was done with those before."""
        parts = ask_all(self.members, "load_weights", weights=weights, version=version, seconds=seconds)
        return {
            "decoding_steps": sum(part["decoding_steps"] for part in parts),
            "rollout": max(part["rollout"] for part in parts),
        }


class TrainerGroup(_Group):
    """Trainers, used as the :class:`profwin.demo.child.Child` of one is by the loops.

    Each trains on its part of the samples; then all go on with the mean of their weights.

    Args:
        members: their actors.
    """

    def call(self, request: str) -> Any:
        """Return the answer of the first of them: all are the same between two steps."""
        return self.members[0].call(request)

    def send(self, request: str, *, step: int, groups: list[dict[str, Any]], rewards: list[float]) -> list[Any]:
        """Let all of them train and do not wait."""
        sizes = shares(len(groups), len(self.members))
        per_group = len(rewards) // len(groups)
        given = _parts(rewards, [size * per_group for size in sizes])
        return [
            member.send(request, step=step, groups=part, rewards=each)
            for member, part, each in zip(self.members, _parts(groups, sizes), given, strict=True)
        ]

    def receive(self, sent: list[Any]) -> dict[str, Any]:
        """Wait until all have trained."""
        replies = [member.receive(each) for member, each in zip(self.members, sent, strict=True)]
        weights = replies[0]["weights"]
        if len(replies) > 1:
            weights = _mean([reply["weights"] for reply in replies])
            ask_all(self.members, "load_weights", weights=weights)
        return {
            "weights": weights,
            "updates": sum(reply["updates"] for reply in replies),
            "generated_with": sorted({version for reply in replies for version in reply["generated_with"]}),
            "seconds": max(reply["seconds"] for reply in replies),
            "trainers": len(replies),
        }


def _mean(given: Sequence[bytes]) -> bytes:
    weights = [pickle.loads(each) for each in given]
    return pickle.dumps({name: sum(each[name] for each in weights) / len(weights) for name in weights[0]})
