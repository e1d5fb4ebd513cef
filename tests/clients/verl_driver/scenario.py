"""The scenarios: three trainers, what verl's configuration asks for, and a fault."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

__all__ = ["MODES", "SCENARIOS", "Scenario", "StageFaultError"]

MODES = ("sync", "colocate_async", "separate_async")
"""verl's ``trainer.v1.trainer_mode``."""


class StageFaultError(Exception):
    """What a stage raises where a scenario asks for a fault."""


@dataclass(frozen=True)
class Scenario:
    """One run of three steps, of which the first two are profiled.

    Attributes:
        mode: of `MODES`.
        continuous: ``global_profiler.profile_continuous_steps``.
        discrete: ``discrete`` of the profiling tool: one recording a stage, not one a step.
        rounds: ``parameter_sync_step``: how often a step samples and updates.
        fault: whether the first update of the first step raises, which ends the run.
        critic: whether there is a critic, in a worker of its own on the same device.
        lend: ``hybrid_rollout.enable_switch`` of separate_async: whether training lends its devices to generation.
        validate: whether a validation follows each step.
    """

    mode: str
    continuous: bool = False
    discrete: bool = False
    rounds: int = 1
    fault: bool = False
    critic: bool = False
    lend: bool = False
    validate: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        words = [
            self.mode,
            "continuous" if self.continuous else "per-step",
            "discrete" if self.discrete else "step",
            f"x{self.rounds}",
            "fault" if self.fault else "no fault",
        ]
        return " ".join(words + [word for word in ("critic", "lend", "validate") if getattr(self, word)])


SCENARIOS = tuple(
    Scenario(mode, continuous, discrete, rounds, fault)
    for mode, continuous, discrete, rounds, fault in product(MODES, (False, True), (True, False), (1, 2), (False, True))
)
"""The 48."""
