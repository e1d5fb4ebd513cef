"""Describing: a plan as text for a terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from profwin.patch.plan import Condition, Event, LoopPlan, Patch, Plan, Value

__all__ = ["described", "summary"]

_OF_LOOP = ("actors", "hybrid_actors", "engine", "hybrid_engine", "devices", "hybrid_devices")


def summary(plan: Plan, installed: Mapping[str, str | None]) -> str:
    """Return what a plan is for, and what of that is installed.

    Args:
        plan: the plan.
        installed: the version of each package of it, or None.
    """
    lines = [f"{plan.name}: {plan.description}" if plan.description else plan.name]
    for package in plan.packages:
        found = installed.get(package.name)
        here = f"{found!a}"[1:-1] if found is not None else "not installed"
        lines.append(f"  {package.name} {package.versions or 'of any version'} (here: {here})")
    return "\n".join(lines)


def described(plan: Plan) -> str:
    """Return all that a plan says, one line for each target and one for each thing that is found in its calls."""
    lines = [plan.name]
    if plan.description:
        lines.append(f"  {plan.description}")
    lines += [f"  for {package.name} {package.versions}".rstrip() for package in plan.packages]
    if plan.configure is not None:
        lines.append(f"settings, before the first call of {plan.configure.target}")
        for name, places in plan.configure.settings:
            each = places if isinstance(places, tuple) else (places,)
            lines += [f"  {name} = {_value(value)}" for value in each]
    for loop in plan.loops:
        lines.append(f"loop {loop.name}: {loop.mode}, {_owned(loop)}")
        lines += [f"  {line}" for line in _found(loop, _OF_LOOP)]
    for patch in plan.patches:
        lines.append(f"{patch.target}: {_role(patch)}")
        lines += [f"  {line}" for line in _details(patch)]
    return "\n".join(lines)


def _role(patch: Patch) -> str:
    role = patch.role.replace("_", " ")
    if patch.role == "events":
        role = f"events of loop {patch.loop}" if patch.loop is not None else "events of the step"
    elif patch.role == "silence":
        role = "not called while profwin is on"
    named = f" {patch.name!r}" if patch.name is not None else ""
    of_role = f" of role {patch.stage_role!r}" if patch.stage_role is not None else ""
    windows = "" if patch.window else " without windows"
    sometimes = "" if patch.every_step else ", not in every step"
    return f"{role}{named}{of_role}{windows}{sometimes}{' (optional)' if patch.optional else ''}"


def _owned(loop: LoopPlan) -> str:
    return f"one for each {loop.owner.path}" if loop.owner is not None else "one in the process"


def _details(patch: Patch) -> Iterator[str]:
    yield from _found(patch, ("step", "version", "engine", "devices"))
    yield from _conditions(patch)
    for key, moment in (("before", "before"), ("after", "after"), ("error", "if it raises")):
        for event in getattr(patch, key):
            number = f" of {_value(event.number)}" if event.number is not None else ""
            conditions = "".join(f", {line}" for line in _conditions(event))
            yield f"{moment}: {event.event}{number}{conditions}"


def _found(holder: object, keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        value = getattr(holder, key)
        if isinstance(value, tuple):
            yield f"{key} = {', '.join(value)}"
        elif value is not None:
            yield f"{key} = {_value(value)}"


def _value(value: Value) -> str:
    plus = f" {'+' if value.plus > 0 else '-'} {abs(value.plus)}" if value.plus else ""
    pairs = ", ".join(f"{found!a}: {replacement!a}" for found, replacement in value.map)
    prefix = f"{value.prefix!a} + " if value.prefix else ""
    default = f", else {value.default!a}" if value.default is not None else ""
    conditions = "".join(f", {line}" for line in _conditions(value))
    return f"{prefix}{value.path}{plus}" + (f" by {{{pairs}}}" if pairs else "") + default + conditions


def _conditions(holder: Patch | Event | Value) -> Iterator[str]:
    for condition in holder.when:
        yield f"when {_condition(condition)}"
    for condition in holder.unless:
        yield f"unless {_condition(condition)}"


def _condition(condition: Condition) -> str:
    if condition.among is None:
        return condition.path
    return f"{condition.path} is {' or '.join(ascii(each) for each in condition.among)}"
