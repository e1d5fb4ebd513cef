"""Writing: a `Plan` as the tables that it was made of, for JSON."""

from __future__ import annotations

from profwin.patch.plan import FORMAT, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profwin.patch.plan import Condition, Event, LoopPlan, Patch, Plan

__all__ = ["document"]


def document(plan: Plan) -> dict[str, Any]:
    """Return a plan as a document that :func:`profwin.patch.parsing.parse` takes: what is default is left out."""
    configure = plan.configure
    settings = {} if configure is None else {name: _setting(each) for name, each in configure.settings}
    return _given(
        format=FORMAT,
        name=plan.name,
        description=plan.description or None,
        package=[_given(name=each.name, versions=each.versions or None) for each in plan.packages] or None,
        configure=None if configure is None else {"target": configure.target, "settings": settings},
        loop=[_loop(each) for each in plan.loops] or None,
        patch=[_patch(each) for each in plan.patches] or None,
    )


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _loop(loop: LoopPlan) -> dict[str, Any]:
    return _given(
        name=loop.name,
        owner=_value(loop.owner),
        mode=loop.mode,
        engine=_value(loop.engine),
        hybrid_engine=_value(loop.hybrid_engine),
        devices=_devices(loop.devices),
        hybrid_devices=_devices(loop.hybrid_devices),
        actors=_value(loop.actors),
        hybrid_actors=_value(loop.hybrid_actors),
    )


def _patch(patch: Patch) -> dict[str, Any]:
    return _given(
        target=patch.target,
        role=patch.role,
        name=patch.name,
        step=_value(patch.step),
        version=_value(patch.version),
        engine=_value(patch.engine),
        devices=_devices(patch.devices),
        stage_role=patch.stage_role,
        window=None if patch.window else False,
        every_step=None if patch.every_step else False,
        when=_conditions(patch.when),
        unless=_conditions(patch.unless),
        optional=patch.optional or None,
        loop=patch.loop,
        before=_events(patch.before),
        after=_events(patch.after),
        error=_events(patch.error),
    )


def _setting(value: Value | tuple[Value, ...]) -> Any:
    return [_value(each) for each in value] if isinstance(value, tuple) else _value(value)


def _value(value: Value | None) -> Any:
    if value is None:
        return None
    written = _given(
        path=value.path,
        plus=value.plus or None,
        map=dict(value.map) or None,
        prefix=value.prefix or None,
        default=value.default,
        when=_conditions(value.when),
        unless=_conditions(value.unless),
    )
    return value.path if len(written) == 1 else written


def _devices(devices: tuple[str, ...] | Value | None) -> Any:
    return list(devices) if isinstance(devices, tuple) else _value(devices)


def _conditions(conditions: tuple[Condition, ...]) -> Any:
    written = [
        each.path if each.among is None else {"path": each.path, "among": list(each.among)} for each in conditions
    ]
    return written or None


def _events(events: tuple[Event, ...]) -> Any:
    written = [
        _given(
            event=each.event,
            number=_value(each.number),
            when=_conditions(each.when),
            unless=_conditions(each.unless),
        )
        for each in events
    ]
    return written or None
