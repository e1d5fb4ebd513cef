"""The post-training loops as one small state machine: events of a trainer in, window actions out.

Pure: it starts nothing, reads no clock and keeps no handle. A loop's mode is a row of `PRESETS`, which says
what each event means for the devices; no other code knows a mode. What to do follows from the state alone: a
window is open exactly while a step is under way, its devices generate, and no validation runs. Therefore
nothing is closed that was not open, nothing is opened twice, and nothing stays open after the step or the
loop, whatever events come, in whatever order, twice or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "EVENTS",
    "PRESETS",
    "Action",
    "BeginStep",
    "CloseWindow",
    "EndStep",
    "LoopMachine",
    "OpenWindow",
    "Pause",
    "Resume",
]

EVENTS = (
    "step_begins",
    "samples_in_hand",
    "devices_to_training",
    "devices_to_generation",
    "validation_begins",
    "validation_ends",
    "step_ends",
    "loop_fails",
    "loop_ends",
)

# Whether the devices generate from that event on; an event that is not listed leaves this as it was.
# sync: the engine has stopped generating when samples are in hand.
# colocate: requests that are only half done are still in flight then, until they are aborted before training.
PRESETS: dict[str, dict[str, bool]] = {
    "sync": {
        "step_begins": True,
        "devices_to_generation": True,
        "samples_in_hand": False,
        "devices_to_training": False,
    },
    "colocate": {
        "step_begins": True,
        "devices_to_generation": True,
        "devices_to_training": False,
    },
}
LATER = ("separate", "fully_async")
REASONS = {
    "step_begins": "step",
    "step_ends": "step",
    "validation_begins": "paused",
    "loop_fails": "failure",
    "loop_ends": "exit",
}


@dataclass(frozen=True)
class OpenWindow:
    """Open a rollout window of `step`."""

    step: int


@dataclass(frozen=True)
class CloseWindow:
    """Close the open rollout window, which is of `step`.

    `reason` is "end" where the loop is as it should be, "paused" at a validation, else what ended the window
    before its devices were handed over: "step" (its end or the next one's begin), "failure" or "exit" (of the
    loop).
    """

    step: int
    reason: str


@dataclass(frozen=True)
class BeginStep:
    """Training of `step` begins in this process."""

    step: int


@dataclass(frozen=True)
class EndStep:
    """Training of `step`, which had begun, is over."""

    step: int


@dataclass(frozen=True)
class Pause:
    """Record nothing from now on."""


@dataclass(frozen=True)
class Resume:
    """Record again; comes once after each `Pause`."""


Action: TypeAlias = OpenWindow | CloseWindow | BeginStep | EndStep | Pause | Resume


class LoopMachine:
    """The state of one loop.

    Args:
        mode: "sync" or "colocate".

    Attributes:
        step: the step under way, or None.
        generating: whether its devices generate, as far as the events tell.
        validating: whether a validation runs.
        window: the step whose window is open, or None.

    Raises:
        ValueError: the mode is unknown, or comes later.
    """

    def __init__(self, mode: str) -> None:
        if mode in LATER:
            raise ValueError(f"mode={mode!r} is not there yet: this version has {', '.join(PRESETS)}")
        if mode not in PRESETS:
            raise ValueError(f"mode={mode!r} is not allowed: use one of {', '.join(PRESETS)}")
        self.mode = mode
        self.step: int | None = None
        self.generating = False
        self.validating = False
        self.window: int | None = None

    def feed(self, event: str, step: int | None = None) -> tuple[Action, ...]:
        """Take one event and return what is to be done, in this order.

        A repeated event changes nothing, except that ``step_begins`` of the step under way says that it
        generates once more: that is how a step is retried. Device events outside a step mean nothing.

        Args:
            event: one of `EVENTS`.
            step: for ``step_begins`` alone: its number, 0 or more.

        Raises:
            ValueError: the event is unknown, or the step is no such number; the state is then as it was.
        """
        if event not in EVENTS:
            raise ValueError(f"event={event!r} is not allowed: use one of {', '.join(EVENTS)}")
        preset = PRESETS[self.mode]
        under_way, generating, validating = self.step, self.generating, self.validating
        if event == "step_begins":
            under_way, generating, validating = _check(step), preset[event], False
        elif event == "step_ends":
            under_way = None
        elif event in ("loop_fails", "loop_ends"):
            under_way, validating = None, False
        elif event in ("validation_begins", "validation_ends"):
            validating = event == "validation_begins"
        else:
            generating = preset.get(event, generating)
        return self._move(under_way, generating and under_way is not None, validating, REASONS.get(event, "end"))

    def _move(self, step: int | None, generating: bool, validating: bool, reason: str) -> tuple[Action, ...]:
        window = step if generating and not validating else None
        actions: list[Action] = []
        if self.window is not None and self.window != window:
            actions.append(CloseWindow(self.window, reason))
        if self.step is not None and self.step != step:
            actions.append(EndStep(self.step))
        if self.validating != validating:
            actions.append(Pause() if validating else Resume())
        if step is not None and self.step != step:
            actions.append(BeginStep(step))
        if window is not None and self.window != window:
            actions.append(OpenWindow(window))
        self.step, self.generating, self.validating, self.window = step, generating, validating, window
        return tuple(actions)


def _check(step: object) -> int:
    try:
        number = index(step)  # type: ignore[arg-type]  # its TypeError is the answer
    except TypeError:
        number = -1
    if number < 0 or isinstance(step, bool):
        raise ValueError(f"step={step!r} is not allowed: use an integer of 0 or more")
    return number
