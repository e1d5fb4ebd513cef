"""Plans, for any text and any tables: a plan or a PlanError, and JSON that gives the same plan."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from profwin import PlanError
from profwin.loop import EVENTS, PRESETS
from profwin.patch import plan as plans
from profwin.patch.describing import described, summary
from profwin.patch.parsing import parse
from profwin.patch.paths import of_configure, of_patch
from profwin.patch.plan import ROLES, TRAINING_STEP, Plan, dump_plans, load_plans
from profwin.patch.reading import read_text

KINDS = (plans.Plan, plans.Package, plans.Configure, plans.LoopPlan, plans.Patch, plans.Event, plans.Value)
KEYS = sorted({each.name for kind in KINDS for each in fields(kind)} | {"format", "package", "loop", "patch", "equals"})
TEXTS = ["self", "self.x.0", "return.x", "a:b", "a.b:C.*", "sync", "pretend:0", ">=1", *ROLES, *EVENTS, *PRESETS]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(TEXTS) | st.dates()
keys = st.sampled_from(KEYS) | st.text() | st.integers()
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)
paths = st.lists(names | st.sampled_from(["0", "some-key"]), max_size=2).map(lambda rest: ".".join(["self", *rest]))
simple = st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
values = paths | st.fixed_dictionaries({"path": paths}, optional={"plus": st.integers(-9, 9)})
pairs = st.dictionaries(st.text(), simple, min_size=1, max_size=2)
values |= st.fixed_dictionaries({"path": paths}, optional={"map": pairs, "prefix": names})
condition = (
    paths
    | st.fixed_dictionaries({"path": paths}, optional={"equals": simple})
    | st.fixed_dictionaries({"path": paths, "among": st.lists(simple, min_size=1, max_size=3)})
)
conditions = condition | st.lists(condition, min_size=1, max_size=2)
more = {"default": simple, "when": conditions, "unless": conditions, "map": pairs, "prefix": names}
setting = values | st.fixed_dictionaries({"path": paths}, optional=more)
setting |= st.lists(setting, min_size=1, max_size=2)
devices = st.lists(names, min_size=1, max_size=2) | values
common = {"when": conditions, "unless": conditions, "optional": st.booleans()}


def role(name, needed, /, **optional):
    """Return a strategy for patches of a role; their targets come later, since each must differ."""
    return st.fixed_dictionaries({"role": st.just(name), **needed}, optional={**common, **optional})


plain_events = st.sampled_from(["samples_in_hand", "step_ends", "loop_fails", "training_step_ends"])
events = st.lists(
    plain_events
    | st.fixed_dictionaries({"event": plain_events}, optional={"when": conditions, "unless": conditions})
    | st.fixed_dictionaries(
        {"event": st.sampled_from(["step_begins", "weights_synced", TRAINING_STEP[0]]), "number": values}
    ),
    min_size=1,
    max_size=3,
)
patches = st.one_of(
    role("window", {"step": values}, name=names, engine=values, devices=devices, every_step=st.booleans()),
    role("stage", {}, name=names, devices=devices, stage_role=names, every_step=st.booleans()),
    role("step", {"step": values}),
    role("weight_sync", {"version": values}, engine=values, devices=devices, window=st.booleans()),
    role("pause", {}),
    role("span", {}, name=names),
    role("silence", {}),
    role("events", {"before": events}, after=events, error=events),
)
loop = st.fixed_dictionaries(
    {"mode": st.sampled_from(["separate", "fully_async"])},
    optional={
        "owner": values,
        "engine": values,
        "hybrid_engine": values,
        "devices": devices,
        "hybrid_devices": devices,
        "actors": values,
        "hybrid_actors": values,
    },
)


@st.composite
def documents(draw):
    """Return the tables of a plan that is right."""
    drawn = draw(st.lists(patches, min_size=1, max_size=4))
    for index, patch in enumerate(drawn):
        patch["target"] = f"module.part:Class.method{index}"
    document = {"format": 1, "name": draw(names), "patch": drawn}
    told = [each for patch in drawn for key in ("before", "after", "error") for each in patch.get(key, ())]
    if any((each if isinstance(each, str) else each["event"]) not in TRAINING_STEP for each in told):
        document["loop"] = [draw(loop)]
    if draw(st.booleans()):
        settings = st.dictionaries(st.sampled_from(["steps", "collect", "ranks"]), setting, min_size=1)
        document["configure"] = {"target": "module:f", "settings": draw(settings)}
    if draw(st.booleans()):
        document["package"] = [{"name": draw(names).strip("_") or "lib", "versions": ">=1.0,<2"}]
    return document


def plan_or_error(make, given_value):
    """Return the plan that is made of a value, or None where it is refused with a readable message."""
    try:
        return make(given_value)
    except PlanError as error:
        refused = error
    assert str(refused).isprintable()
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)
    return None


@given(st.text() | st.text("[]{}=.\"'#\n abf1", max_size=60))
def test_any_text_is_a_plan_or_a_plan_error(text):
    """No text makes reading fail in another way."""
    plan_or_error(read_text, text)


@given(anything)
def test_any_value_is_a_plan_or_a_plan_error(value):
    """No value, of whatever types and keys, makes parsing fail in another way."""
    plan_or_error(parse, value)


@given(documents(), st.data())
def test_a_plan_with_one_thing_changed_is_a_plan_or_a_plan_error(document, data):
    """Whatever stands in place of one part of a plan, the outcome is a plan or a PlanError."""
    place = document
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(anything)
    plan_or_error(parse, document)


@given(documents())
def test_json_gives_the_same_plan(document):
    """A plan's JSON, through its text, is a plan that equals it; and all of it can be shown."""
    plan = parse(document)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert load_plans(dump_plans([plan])) == (plan,)
    assert all(line.isprintable() for text in (described(plan), summary(plan, {})) for line in text.splitlines())
    places = [place for patch in plan.patches for place, _path in of_patch(plan, patch)]
    assert len([*places, *of_configure(plan)]) >= len(plan.configure.settings if plan.configure else ())


@given(st.text() | anything.map(repr))
def test_any_json_text_is_plans_or_a_plan_error(text):
    """No text in the variable makes a child fail in another way."""
    plan_or_error(load_plans, text)
