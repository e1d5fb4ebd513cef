"""The post-training loops as one small state machine: events of a trainer in, window actions out.

Pure: it starts nothing, reads no clock and keeps no handle. A loop's mode is a row of `PRESETS`, which says into
which parts its devices fall and what each event means for each of them; no other code knows a mode. What to do follows
from the state alone: a part's window is open exactly while a step is under way, that part generates, and no validation
runs. Therefore nothing is closed that was not open, nothing is opened twice, and nothing stays open after the step or
the loop, whatever events come, in whatever order, twice or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
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
    "Preset",
    "Resume",
    "parts_of",
]

EVENTS = (
    "step_begins",
    "samples_in_hand",
    "devices_to_training",
    "devices_to_generation",
    "weights_about_to_sync",
    "weights_synced",
    "validation_begins",
    "validation_ends",
    "step_ends",
    "loop_fails",
    "loop_ends",
)


@dataclass(frozen=True)
class Preset:
    """What a mode is.

    Attributes:
        parts: for each part of the devices, whether it generates from an event on; an event that is not listed leaves
            this as it was, and at first nothing generates.
        last: the event at which windows that are still open end as they should, if there is one.
        by_version: whether a weight sync is the boundary between two steps (verl's pull request 6461): step `n` is what
            is generated and trained up to the sync of version `n`.
    """

    parts: dict[str, dict[str, bool]]
    last: str | None = None
    by_version: bool = False


# Devices that only generate do so for as long as a step is under way.
_STANDALONE = {"step_begins": True}
# Devices that also train are lent and taken back, in a step or between two. After a failure or the end nobody knows
# who has them, until it is said again.
_LENT = {"devices_to_generation": True, "devices_to_training": False, "loop_fails": False, "loop_ends": False}

# sync: the engine has stopped generating when samples are in hand.
# colocate: requests that are only half done are still in flight then, until they are aborted before training.
# separate: rollout goes on through the step, on devices of its own and on those that training lends.
# fully_async: likewise, and a step ends where new weights are about to reach the engines.
PRESETS: dict[str, Preset] = {
    "sync": Preset(
        {
            "hybrid": {
                "step_begins": True,
                "devices_to_generation": True,
                "samples_in_hand": False,
                "devices_to_training": False,
            }
        }
    ),
    "colocate": Preset(
        {"hybrid": {"step_begins": True, "devices_to_generation": True, "devices_to_training": False}},
    ),
    "separate": Preset({"standalone": _STANDALONE, "hybrid": _LENT}, last="step_ends"),
    "fully_async": Preset({"standalone": _STANDALONE, "hybrid": _LENT}, last="weights_about_to_sync", by_version=True),
}
_BY_VERSION = {"weights_about_to_sync": "step_ends", "weights_synced": "step_begins"}
_NUMBERS = {"step_begins": "step", "weights_about_to_sync": "version", "weights_synced": "version"}
REASONS = {
    "step_begins": "step",
    "weights_synced": "step",
    "step_ends": "step",
    "validation_begins": "paused",
    "loop_fails": "failure",
    "loop_ends": "exit",
}


@dataclass(frozen=True)
class OpenWindow:
    """Open a rollout window of `step` on the devices of `part`: "standalone" or "hybrid"."""

    step: int
    part: str


@dataclass(frozen=True)
class CloseWindow:
    """Close the open rollout window of `part`, which is of `step`.

    `reason` is "end" where the loop is as it should be, "paused" at a validation, else what ended the window
    before its devices were handed over: "step" (its end or the next one's begin), "failure" or "exit" (of the
    loop).
    """

    step: int
    part: str
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
        mode: a key of `PRESETS`.
        parts: which of the mode's parts there are; default: all.

    Attributes:
        step: the step under way, or None.
        version: the weight version in use, as far as the events tell, or None.
        syncing: the version that is on its way to the engines, or None.
        generating: the parts that generate, as far as the events tell, whether or not a step is under way.
        validating: whether a validation runs.
        windows: for each part whose window is open, its step.

    Raises:
        ValueError: the mode is unknown, or has no such part.
    """

    def __init__(self, mode: str, parts: Iterable[str] | None = None) -> None:
        known = parts_of(mode)
        self.mode = mode
        self.parts = known if parts is None else tuple(part for part in known if part in set(parts))
        if not self.parts:
            raise ValueError(f"parts={parts!r} is not allowed: {mode} has {', '.join(known)}")
        self.step: int | None = None
        self.version: int | None = None
        self.syncing: int | None = None
        self.generating: frozenset[str] = frozenset()
        self.validating = False
        self.windows: dict[str, int] = {}
        self._newest = 0  # the highest step since the loop began

    def feed(self, event: str, number: int | None = None) -> tuple[Action, ...]:
        """Take one event and return what is to be done, in this order.

        A repeated event changes nothing, except that ``step_begins`` of the step under way says, where it means that
        devices generate, that they do so once more: that is how a step is retried.

        In "fully_async" ``step_begins`` of step `n` counts as ``weights_synced`` of version `n - 1`. What concerns a
        version lower than the one in use is late and changes nothing, until the loop fails or ends; what concerns the
        very same one is a retried sync. In other modes weight syncs only change `version`.

        Args:
            event: one of `EVENTS`.
            number: the step of ``step_begins``, the weight version of ``weights_about_to_sync`` and
                ``weights_synced``, 0 or more; of no meaning elsewhere.

        Raises:
            ValueError: the event is unknown, or the number is no such one; the state is then as it was.
        """
        if event not in EVENTS:
            raise ValueError(f"event={event!r} is not allowed: use one of {', '.join(EVENTS)}")
        preset, meaning = PRESETS[self.mode], event
        value = _checked(_NUMBERS[event], number) if event in _NUMBERS else 0
        following = value if event == "step_begins" else value + 1
        if preset.by_version and event in _NUMBERS:
            if following < self._newest:
                return ()
            meaning = _BY_VERSION.get(event, event)
        step, validating = self.step, self.validating
        if meaning == "step_begins":
            step, validating, self._newest = following, False, following
        elif meaning in ("step_ends", "loop_fails", "loop_ends"):
            step, validating = None, validating and meaning == "step_ends"
            self._newest = self._newest if meaning == "step_ends" else 0
        elif meaning in ("validation_begins", "validation_ends"):
            validating = meaning == "validation_begins"
        if event == "weights_about_to_sync":
            self.syncing = value
        elif event == "weights_synced" or (preset.by_version and event == "step_begins"):
            self.version, self.syncing = following - 1 if following else None, None
        elif event in ("loop_fails", "loop_ends"):
            self.syncing = None
        generating = frozenset(part for part in self.parts if preset.parts[part].get(meaning, part in self.generating))
        return self._move(step, generating, validating, "end" if event == preset.last else REASONS.get(event, "end"))

    def _move(self, step: int | None, generating: frozenset[str], validating: bool, reason: str) -> tuple[Action, ...]:
        windows = {part: step for part in self.parts if part in generating and step is not None and not validating}
        closed = [(part, old) for part, old in self.windows.items() if windows.get(part) != old]
        opened = [(part, new) for part, new in windows.items() if self.windows.get(part) != new]
        actions: list[Action] = [CloseWindow(old, part, reason) for part, old in closed]
        if self.step is not None and self.step != step:
            actions.append(EndStep(self.step))
        if self.validating != validating:
            actions.append(Pause() if validating else Resume())
        if step is not None and self.step != step:
            actions.append(BeginStep(step))
        actions += [OpenWindow(new, part) for part, new in opened]
        self.step, self.generating, self.validating, self.windows = step, generating, validating, windows
        return tuple(actions)


def parts_of(mode: str) -> tuple[str, ...]:
    """Return the parts into which a mode's devices fall.

    Raises:
        ValueError: the mode is unknown.
    """
    if mode not in PRESETS:
        raise ValueError(f"mode={mode!r} is not allowed: use one of {', '.join(PRESETS)}")
    return tuple(PRESETS[mode].parts)


def _checked(what: str, number: object) -> int:
    try:
        value = index(number)  # type: ignore[arg-type]  # its TypeError is the answer
    except TypeError:
        value = -1
    if value < 0 or isinstance(number, bool):
        raise ValueError(f"{what}={number!r} is not allowed: use an integer of 0 or more")
    return value
