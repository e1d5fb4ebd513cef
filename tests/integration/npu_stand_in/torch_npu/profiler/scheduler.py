"""Imitates ``profiler/scheduler.py``: the order wait, active, warmup, and a schedule that runs out."""

from enum import Enum

from .analysis.prof_common_func._constant import print_warn_msg


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class Schedule:
    """What is done in each step."""

    def __init__(
        self, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
    ) -> None:
        self.wait, self.active, self.warmup = wait, active, warmup
        self.repeat, self.skip_first, self.skip_first_wait = repeat, skip_first, skip_first_wait
        if not isinstance(active, int) or active <= 0:
            print_warn_msg("Invalid parameter active, reset it to 1.")
            self.active = 1
        if warmup == 0:
            print_warn_msg("Profiler won't be using warmup, this can skew profiler results")

    def __call__(self, step: int) -> ProfilerAction:
        """Return what is done in a step."""
        if step < self.skip_first:
            return ProfilerAction.NONE
        step -= self.skip_first
        count = self.wait + self.warmup + self.active
        if self.repeat > 0 and step / count >= self.repeat:
            return ProfilerAction.NONE
        within = step % count
        if within < self.wait:
            return ProfilerAction.NONE
        if within < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if within < count - 1 else ProfilerAction.RECORD_AND_SAVE


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD
