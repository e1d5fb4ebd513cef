"""Plans: which callables of a program are windows, stages, step boundaries, weight syncs, pauses and loop events.

Plain frozen values, made by :mod:`profwin.patch.reading` alone, which has checked all that can be checked without the
program. They travel to other processes as JSON of the same shape as the TOML file, and are checked there again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    Scalar: TypeAlias = str | int | float | bool

__all__ = [
    "DEFAULT_LOOP",
    "FORMAT",
    "ROLES",
    "TRAINING_STEP",
    "Condition",
    "Configure",
    "Event",
    "LoopPlan",
    "Package",
    "Patch",
    "Plan",
    "Value",
    "dump_plans",
    "load_plans",
]

FORMAT = 1
"""The version of the plan format."""

ROLES = ("window", "stage", "step", "weight_sync", "pause", "span", "events", "silence")
"""What a target may be."""

TRAINING_STEP = ("training_step_begins", "training_step_ends")
"""Events beside those of ``profwin.loop``: a ``training_step`` entered and left, by owner; they need no loop."""

DEFAULT_LOOP = "loop"
"""The name of a loop that is given none, and the loop of events that name none."""

LONGEST = 120_000
"""Bytes of plans in one environment variable; Linux takes 131072, its name included."""


@dataclass(frozen=True)
class Value:
    """Something that is read from a call, when it is made.

    Attributes:
        path: ``parameter.part.part``: see :mod:`profwin.patch.reading`.
        plus: added to the number that is found.
        map: pairs of text and value; where there are any, what is found is replaced by the value beside its text
            (``true`` and ``false`` for booleans, else ``str()`` of it), in a list each element. What has no entry
            counts as not found.
        prefix: a text put in front of what is found, in a list of each element.
        default: what counts where None, an empty text or an empty list is found. In settings alone, as the next two.
        when: all must hold, `unless`: none may; else None is found, and no default counts.
    """

    path: str
    plus: int = 0
    map: tuple[tuple[str, Scalar], ...] = ()
    prefix: str = ""
    default: Scalar | None = None
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The path's parts; the first is a parameter of the target, or ``return``."""
        return tuple(self.path.split("."))


@dataclass(frozen=True)
class Condition:
    """Something that must hold for a call: that what is found is true, or is (among) these values.

    Attributes:
        path: as in `Value`.
        among: the values; None: any that is true.
    """

    path: str
    among: tuple[Scalar, ...] | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The path's parts, as in `Value`."""
        return tuple(self.path.split("."))


@dataclass(frozen=True)
class Event:
    """One event of a loop, told before or after a call.

    Attributes:
        event: one of ``profwin.loop.EVENTS`` or of `TRAINING_STEP`.
        number: the step or version, of the events that have one; None for the others.
        when: all must hold, `unless`: none may; else this event is not told.
    """

    event: str
    number: Value | None = None
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Package:
    """A package that the plan is for.

    Attributes:
        name: as it is installed.
        versions: PEP 440 bounds; empty: any.
    """

    name: str
    versions: str = ""


@dataclass(frozen=True)
class Configure:
    """Settings of the session that come from the program's own configuration.

    Attributes:
        target: ``module:qualname``; they are made before its first call.
        settings: pairs of a setting of ``profwin.configure`` and where it is found. Of several places all that give
            something count, where the setting is a list of names; else the first that does.
    """

    target: str
    settings: tuple[tuple[str, Value | tuple[Value, ...]], ...] = ()


@dataclass(frozen=True)
class LoopPlan:
    """A ``profwin.Loop``, made for each owner when the first event comes.

    Attributes:
        name: what patches call it.
        owner: path of the object that owns it and that is held weakly; None: one loop in the process.
        mode: a mode of ``profwin.Loop``.
        engine, hybrid_engine: paths, or None.
        devices, hybrid_devices: names of devices, or the path of an object that is or yields them, or None.
        actors, hybrid_actors: paths of Ray actors, or of replicas whose ``servers`` are such, or of an object whose
            ``replicas`` are these and may change, or None. Where they are, they are the engine, and each of them locks
            its devices itself.
    """

    name: str
    owner: Value | None
    mode: str
    engine: Value | None = None
    hybrid_engine: Value | None = None
    devices: tuple[str, ...] | Value | None = None
    hybrid_devices: tuple[str, ...] | Value | None = None
    actors: Value | None = None
    hybrid_actors: Value | None = None


@dataclass(frozen=True)
class Patch:
    """What one target, or all that match it, is.

    Attributes:
        place: where it stands, for messages: ``patch[0]``.
        target: ``module:qualname``, perhaps with wildcards in the qualname.
        role: one of `ROLES`.
        name: of a window, stage or span; None: as the decorators' default.
        step: of a window or step.
        version: of a weight sync.
        engine: of a window or weight sync.
        devices: of a window, stage or weight sync; as in `LoopPlan`.
        stage_role: ``role=`` of a stage.
        window: of a weight sync: whether it is the boundary of windows.
        every_step: of a window or stage: whether a step without it lacks something.
        when: all must hold, `unless`: none may; else the call is as without the patch.
        optional: whether a target that does not exist is only a note.
        loop: name of the loop of the events; None where all are of `TRAINING_STEP`.
        before, after, error: events before the call, after its return, and after it raised.
    """

    place: str
    target: str
    role: str
    name: str | None = None
    step: Value | None = None
    version: Value | None = None
    engine: Value | None = None
    devices: tuple[str, ...] | Value | None = None
    stage_role: str | None = None
    window: bool = True
    every_step: bool = True
    when: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()
    optional: bool = False
    loop: str | None = None
    before: tuple[Event, ...] = ()
    after: tuple[Event, ...] = ()
    error: tuple[Event, ...] = ()

    @property
    def module(self) -> str:
        """The module of the target."""
        return self.target.partition(":")[0]

    @property
    def qualname(self) -> str:
        """The target's name in its module."""
        return self.target.partition(":")[2]


@dataclass(frozen=True)
class Plan:
    """A plan: see the module's description and the concepts page on plans."""

    name: str
    description: str = ""
    packages: tuple[Package, ...] = ()
    configure: Configure | None = None
    loops: tuple[LoopPlan, ...] = ()
    patches: tuple[Patch, ...] = ()

    def modules(self) -> tuple[str, ...]:
        """Return the names of the modules that have targets, each once, in the plan's order."""
        named = [patch.module for patch in self.patches]
        if self.configure is not None:
            named.insert(0, self.configure.target.partition(":")[0])
        return tuple(dict.fromkeys(named))

    def loop(self, name: str) -> LoopPlan:
        """Return the loop of a name that a patch of this plan gives."""
        return next(loop for loop in self.loops if loop.name == name)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, in the shape of its TOML file."""
        from profwin.patch.writing import document

        return document(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Plan:
        """Return the plan that `to_json` gave.

        Raises:
            PlanError: it is no plan of this format.
        """
        from profwin.patch.parsing import parse

        return parse(value)


def dump_plans(plans: Iterable[Plan]) -> str:
    """Return plans as one JSON text that fits into an environment variable.

    Raises:
        PlanError: they are too large for that.
    """
    plans = tuple(plans)
    text = json.dumps([plan.to_json() for plan in plans], ensure_ascii=True, separators=(",", ":"))
    if len(text) > LONGEST:
        from profwin.errors import PlanError

        names = ",".join(plan.name for plan in plans)
        raise PlanError(
            names, "", len(text), f"takes more than {LONGEST} bytes of the environment", "shorten it, or use wildcards"
        )
    return text


def load_plans(text: str) -> tuple[Plan, ...]:
    """Return the plans that `dump_plans` gave.

    Raises:
        PlanError: the text is something else.
    """
    from profwin.errors import PlanError

    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError("plan", "", text, f"is not JSON: {error}", "pass the text of dump_plans") from None
    if not isinstance(values, list):
        raise PlanError("plan", "", values, "is no list of plans", "pass the text of dump_plans")
    return tuple(Plan.from_json(value) for value in values)
