"""Parsing: a plan's tables to a `Plan`; all that can be checked without the program is checked here."""

from __future__ import annotations

import re

from profwin.errors import PlanError
from profwin.loop import EVENTS, PRESETS, parts_of
from profwin.patch.fields import Table
from profwin.patch.nearest import nearest
from profwin.patch.plan import (
    DEFAULT_LOOP,
    FORMAT,
    ROLES,
    TRAINING_STEP,
    Configure,
    Event,
    LoopPlan,
    Package,
    Patch,
    Plan,
)
from profwin.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NUMBERED", "check_together", "parse"]

NUMBERED = ("step_begins", "weights_about_to_sync", "weights_synced", "training_step_begins")
"""Events that have a number: a step or a version."""

_SETTINGS = tuple(Settings.__annotations__)
_COMMON = ("target", "role", "when", "unless", "optional")
_OF_ROLE: dict[str, tuple[str, ...]] = {
    "window": ("name", "step", "engine", "devices", "every_step"),
    "stage": ("name", "devices", "stage_role", "every_step"),
    "step": ("step",),
    "weight_sync": ("name", "version", "engine", "devices", "window"),
    "pause": (),
    "span": ("name",),
    "events": ("loop", "before", "after", "error"),
    "silence": (),
}
_KEYS = tuple(dict.fromkeys((*_COMMON, *(key for keys in _OF_ROLE.values() for key in keys))))
_LOOP_KEYS = (
    "name",
    "owner",
    "mode",
    "engine",
    "hybrid_engine",
    "devices",
    "hybrid_devices",
    "actors",
    "hybrid_actors",
)


def parse(document: object, source: str = "plan") -> Plan:
    """Return the plan that the tables of a TOML or JSON document are.

    Args:
        document: what the file's parser gave.
        source: what errors call the plan until its name is known.

    Raises:
        PlanError: naming the field, what stands there, and what is nearest to it or may stand there.
    """
    name = document.get("name") if isinstance(document, dict) else None
    if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,60}", name):
        source = name
    keys = ("format", "name", "description", "package", "configure", "loop", "patch")
    table = Table(source, "", document, keys)
    _check_format(table)
    table.require("name", "give the plan a name")
    if source != name:
        raise table.error("name", name, "is no name", "write up to 60 letters, digits, '_', '.' and '-'")
    packages = tuple(_package(source, index, each) for index, each in enumerate(table.tables("package")))
    loops = tuple(_loop(source, index, each) for index, each in enumerate(table.tables("loop")))
    patches = tuple(_patch(source, index, each) for index, each in enumerate(table.tables("patch")))
    configure = _configure(source, table.get("configure")) if table.given("configure") else None
    if not patches and configure is None:
        raise table.error("patch", [], "is empty", "write at least one [[patch]]")
    plan = Plan(source, table.text("description") or "", packages, configure, loops, patches)
    _check_loops(plan)
    check_together((plan,))
    return plan


def check_together(plans: Iterable[Plan]) -> None:
    """Make sure that plans can be installed together: no two have one name, and no target stands twice in them.

    Two wildcards that match the same callable are seen where its module has loaded.

    Raises:
        PlanError: naming the second of the two.
    """
    seen: dict[str, tuple[Plan, Patch]] = {}
    names: set[str] = set()
    for plan in plans:
        if plan.name in names:
            raise PlanError(plan.name, "name", plan.name, "is the name of another plan too", "give one plan once")
        names.add(plan.name)
        for patch in plan.patches:
            other, first = seen.setdefault(patch.target, (plan, patch))
            if first is not patch:
                elsewhere = "" if other is plan else f" of plan {other.name!r}"
                problem = f"has a role already: {first.role}, in {first.place}{elsewhere}"
                raise PlanError(plan.name, f"{patch.place}.target", patch.target, problem, "remove one of the two")


def _check_format(table: Table) -> None:
    table.require("format", f"write format = {FORMAT}")
    value = table.get("format")
    if type(value) is not int or value != FORMAT:
        raise table.error("format", value, "is no format that this profwin knows", f"write format = {FORMAT}")


def _package(plan: str, index: int, value: object) -> Package:
    table = Table(plan, f"package[{index}]", value, ("name", "versions"))
    table.require("name", "write the name under which it is installed")
    name, versions = table.text("name") or "", table.text("versions") or ""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", name):
        raise table.error("name", name, "is no package's name", "write the name under which it is installed")
    try:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet
    except ImportError:  # the bounds are then not compared either, which `profwin.patch.versions` says
        return Package(name, versions)
    try:
        SpecifierSet(versions)
    except InvalidSpecifier:
        raise table.error("versions", versions, "are no version bounds", 'write, say, ">=1.16,<2" (PEP 440)') from None
    return Package(name, versions)


def _configure(plan: str, value: object) -> Configure:
    table = Table(plan, "configure", value, ("target", "settings"))
    target = table.target("target", wildcards=False)
    table.require("settings", "write a table [configure.settings]")
    settings = Table(plan, "configure.settings", table.get("settings"), _SETTINGS)
    found = tuple((name, each) for name in _SETTINGS if (each := settings.setting(name)) is not None)
    if not found:
        raise table.error("settings", {}, "is empty", "write at least one setting, or remove [configure]")
    return Configure(target, found)


def _loop(plan: str, index: int, value: object) -> LoopPlan:
    table = Table(plan, f"loop[{index}]", value, _LOOP_KEYS)
    mode = table.choice("mode", PRESETS)
    if len(parts_of(mode)) == 1:
        for key in ("hybrid_engine", "hybrid_devices", "hybrid_actors"):
            if table.given(key):
                with_hybrid = " or ".join(each for each in PRESETS if len(parts_of(each)) > 1)
                raise table.error(key, table.get(key), f"means nothing in mode {mode!r}", f"use mode {with_hybrid}")
    return LoopPlan(
        table.text("name") or DEFAULT_LOOP,
        table.value("owner"),
        mode,
        table.value("engine"),
        table.value("hybrid_engine"),
        table.devices("devices"),
        table.devices("hybrid_devices"),
        table.value("actors"),
        table.value("hybrid_actors"),
    )


def _patch(plan: str, index: int, value: object) -> Patch:
    place = f"patch[{index}]"
    table = Table(plan, place, value, _KEYS)
    target = table.target("target", wildcards=True)
    role = table.choice("role", ROLES)
    known = (*_COMMON, *_OF_ROLE[role])
    for key in _KEYS:
        if table.given(key) and key not in known:
            raise table.error(key, table.get(key), f"means nothing for role {role!r}", f"use {', '.join(known)}")
    if role in ("window", "step"):
        table.require("step", "write the path of the loop's step")
    if role == "weight_sync":
        table.require("version", "write the path of the version of the new weights")
    events = {key: _events(table, key) for key in ("before", "after", "error")}
    loop = table.text("loop")
    if role == "events":
        told = [event for each in events.values() for event in each]
        if not told:
            raise table.error("before", [], "is empty", "write at least one event in before, after or error")
        if loop is None and any(event.event not in TRAINING_STEP for event in told):
            loop = DEFAULT_LOOP
    return Patch(
        place,
        target,
        role,
        table.text("name"),
        table.value("step"),
        table.value("version"),
        table.value("engine"),
        table.devices("devices"),
        table.text("stage_role"),
        table.flag("window", True),
        table.flag("every_step", True),
        table.conditions("when"),
        table.conditions("unless"),
        table.flag("optional", False),
        loop,
        **events,
    )


def _events(table: Table, key: str) -> tuple[Event, ...]:
    given = table.get(key)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise table.error(key, given, "is no list of events", 'write ["samples_in_hand", { event = …, number = … }]')
    return tuple(_event(table.plan, f"{table.at(key)}[{index}]", each, key) for index, each in enumerate(given))


def _event(plan: str, place: str, given: object, key: str) -> Event:
    value = {"event": given} if isinstance(given, str) else given
    table = Table(plan, place, value, ("event", "number", "when", "unless"))
    event = table.choice("event", (*EVENTS, *TRAINING_STEP))
    result = key == "after"
    number = table.value("number", result=result)
    if event in NUMBERED:
        table.require("number", f"write {{ event = {event!r}, number = … }}: the path of the step or version")
    elif number is not None:
        raise table.error("number", number.path, f"means nothing for event {event!r}", "remove it")
    return Event(event, number, table.conditions("when", result=result), table.conditions("unless", result=result))


def _check_loops(plan: Plan) -> None:
    names = [loop.name for loop in plan.loops]
    told = {patch.loop: patch for patch in plan.patches if patch.loop is not None}
    for name, patch in told.items():
        if name not in names:
            raise PlanError(plan.name, f"{patch.place}.loop", name, "is no loop of this plan", nearest(name, names))
    for index, name in enumerate(names):
        if name in names[:index]:
            raise PlanError(plan.name, f"loop[{index}].name", name, "is another loop's too", "name each differently")
        if name not in told:
            raise PlanError(
                plan.name, f"loop[{index}].name", name, "is told no event", "let a patch of role 'events' name it"
            )
