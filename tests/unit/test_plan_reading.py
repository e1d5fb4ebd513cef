"""Reading plans: what a plan is, and what every wrong one is told."""

from __future__ import annotations

import copy
import inspect
import math
import pickle

import pytest
from plan_text import PLAN

from profwin import Loop, PlanError
from profwin.loop import EVENTS
from profwin.patch.parsing import NUMBERED, check_together, parse
from profwin.patch.plan import TRAINING_STEP, Condition, Event, Plan, Value, dump_plans, load_plans
from profwin.patch.reading import read_text


def document():
    """Return the plan's tables, as its JSON has them."""
    return read_text(PLAN).to_json()


def refused(change):
    """Return the error of the plan after a change to its tables."""
    tables = copy.deepcopy(document())
    change(tables)
    with pytest.raises(PlanError) as caught:
        parse(tables)
    return caught.value


def test_a_plan_is_read_whole():
    """Every part of a plan's text is in the plan, with the defaults for what it leaves out."""
    plan = read_text(PLAN)
    window, stage, sync, events = plan.patches
    assert (plan.name, plan.modules()) == ("mine", ("trainer.main",))
    assert window.step == Value("self.state.step", 1)
    assert window.step is not None
    assert window.step.parts == ("self", "state", "step")
    assert window.when == (Condition("self.model.training"),)
    assert window.unless == (Condition("mode", ("eval",)), Condition("self.kinds.0", (1, True)))
    assert (stage.name, stage.module, stage.qualname, stage.window) == (None, "trainer.main", "*.update", True)
    assert (sync.version, sync.window, sync.optional) == (Value("self.version"), False, True)
    assert events.after == (Event("step_begins", Value("self.step"), (Condition("return.ok"),)),)
    loop = plan.loop("sync")
    assert (loop.devices, loop.hybrid_devices) == (("pretend:0",), Value("self.devices", prefix="pretend:"))
    assert plan.configure is not None
    settings = dict(plan.configure.settings)
    assert settings["collect"] == Value("self.config.discrete", map=(("true", "stage"), ("false", "step")))
    other = Value("config.roles", prefix="my-", default="actor", unless=(Condition("config.all"),))
    assert settings["roles"] == (Value("self.config.role"), other)


def test_a_plan_travels_as_json():
    """What comes out of the JSON text, and of its tables, is the same plan."""
    plan = read_text(PLAN)
    assert Plan.from_json(plan.to_json()) == plan
    assert load_plans(dump_plans([plan])) == (plan,)
    assert hash(pickle.loads(pickle.dumps(plan))) == hash(plan)


def test_events_alone_have_a_loop_of_the_default_name_or_none():
    """Events that name no loop belong to the loop without a name; those of the training step need none."""
    tables = document()
    del tables["loop"][0]["name"], tables["patch"][3]["loop"]
    assert parse(tables).patches[3].loop == parse(tables).loops[0].name == "loop"
    del tables["loop"]
    tables["patch"][3]["before"] = [{"event": "training_step_begins", "number": "self.step"}]
    tables["patch"][3]["after"] = tables["patch"][3]["error"] = ["training_step_ends"]
    assert parse(tables).patches[3].loop is None


def test_events_have_a_number_where_their_method_needs_one():
    """The events that need a number are those whose methods of `Loop` need an argument, and the training step's."""
    needed = [name for name in EVENTS if "step" in _needed(name) or "version" in _needed(name)]
    assert sorted((*needed, TRAINING_STEP[0])) == sorted(NUMBERED)


def _needed(event):
    parameters = inspect.signature(getattr(Loop, event)).parameters.values()
    return {each.name for each in parameters if each.default is each.empty}


LENT = {"path": "self.devices", "prefix": "pretend:"}
OF_INFINITY = {"path": "self.x", "equals": math.inf}
BAD = [
    ("patches", lambda t: t.update(patches=[]), [], "'patch'"),
    ("format", lambda t: t.pop("format"), None, "format = 1"),
    ("format", lambda t: t.update(format=2), 2, "format = 1"),
    ("format", lambda t: t.update(format=True), True, "format = 1"),
    ("format", lambda t: t.update(format="1"), "1", "format = 1"),
    ("name", lambda t: t.pop("name"), None, "name"),
    ("name", lambda t: t.update(name="a b"), "a b", "letters"),
    ("description", lambda t: t.update(description="\x1b[2J"), "\x1b[2J", "printable"),
    ("patch", lambda t: (t.pop("patch"), t.pop("loop"), t.pop("configure")), [], "[[patch]]"),
    ("patch", lambda t: t.update(patch={"target": "a:b"}), {"target": "a:b"}, "[[patch]]"),
    ("patch[1]", lambda t: t["patch"].insert(1, "x"), "x", "pairs"),
    ("package[0].versions", lambda t: t["package"][0].update(versions="=>1"), "=>1", "PEP 440"),
    ("package[0].versions", lambda t: t["package"][0].update(versions="banana"), "banana", "PEP 440"),
    ("package[0].name", lambda t: t["package"][0].update(name="../x"), "../x", "installed"),
    ("configure.settings.step", lambda t: t["configure"]["settings"].update(step="self.x"), "self.x", "'steps'"),
    ("configure.settings", lambda t: t["configure"].update(settings={}), {}, "setting"),
    ("configure.settings.steps", lambda t: t["configure"]["settings"].update(steps=3), 3, "dots"),
    ("configure.settings.steps", lambda t: t["configure"]["settings"].update(steps=[]), [], "path"),
    ("configure.settings.steps", lambda t: t["configure"]["settings"].update(steps=["x", None]), ["x", None], "path"),
    ("configure.settings.steps[1]", lambda t: t["configure"]["settings"].update(steps=["x", 1]), 1, "dots"),
    (
        "configure.settings.collect.default",
        lambda t: t["configure"]["settings"]["collect"].update(default=[]),
        [],
        "number",
    ),
    (
        "configure.settings.collect.prefix",
        lambda t: t["configure"]["settings"]["collect"].update(prefix=1),
        1,
        "quotes",
    ),
    ("configure.target", lambda t: t["configure"].update(target="a:*.b"), "a:*.b", "without wildcards"),
    ("loop[0].mode", lambda t: t["loop"][0].update(mode="asynch"), "asynch", "'sync'"),
    ("loop[0].hybrid_devices", lambda t: t["loop"][0].update(mode="sync"), LENT, "fully_async"),
    ("loop[1].name", lambda t: t["loop"].append({"name": "other", "mode": "sync"}), "other", "events"),
    ("loop[1].name", lambda t: t["loop"].append(dict(t["loop"][0])), "sync", "differently"),
    ("loop[0].devices", lambda t: t["loop"][0].update(devices=[]), [], "cuda:0"),
    ("patch[3].loop", lambda t: t["patch"][3].update(loop="snyc"), "snyc", "'sync'"),
    ("patch[0].role", lambda t: t["patch"][0].update(role="rollout"), "rollout", "window"),
    ("patch[0].role", lambda t: t["patch"][0].update(role="windo"), "windo", "'window'"),
    ("patch[0].role", lambda t: t["patch"][0].pop("role"), None, "stage"),
    ("patch[0].nmae", lambda t: t["patch"][0].update(nmae="x"), "x", "'name'"),
    ("patch[0].version", lambda t: t["patch"][0].update(version="self.x"), "self.x", "'window'"),
    ("patch[0].step", lambda t: t["patch"][0].pop("step"), None, "step"),
    ("patch[2].version", lambda t: t["patch"][2].pop("version"), None, "version"),
    ("patch[0].step.plus", lambda t: t["patch"][0]["step"].update(plus=True), True, "whole"),
    ("patch[0].step.plus", lambda t: t["patch"][0]["step"].update(plus=0.5), 0.5, "whole"),
    ("patch[0].step.map", lambda t: t["patch"][0]["step"].update(map={"1": 2}), {"1": 2}, "one of the two"),
    ("patch[0].step.prefix", lambda t: t["patch"][0]["step"].update(prefix="a"), "a", "one of the two"),
    ("patch[0].step.default", lambda t: t["patch"][0]["step"].update(default=1), 1, "path"),
    ("patch[0].step.when", lambda t: t["patch"][0]["step"].update(when="self.x"), "self.x", "path"),
    ("patch[0].step.path", lambda t: t["patch"][0]["step"].pop("path"), None, "parameter"),
    ("patch[0].step", lambda t: t["patch"][0].update(step="self.step()"), "self.step()", "dots"),
    ("patch[0].step", lambda t: t["patch"][0].update(step="self..step"), "self..step", "dots"),
    ("patch[0].step", lambda t: t["patch"][0].update(step="self[0]"), "self[0]", "dots"),
    ("patch[0].step", lambda t: t["patch"][0].update(step="1.self"), "1.self", "dots"),
    ("patch[0].step", lambda t: t["patch"][0].update(step="return.x"), "return.x", "dots"),
    ("patch[0].target", lambda t: t["patch"][0].update(target="a.b.c"), "a.b.c", "module:qualname"),
    ("patch[0].target", lambda t: t["patch"][0].update(target="a.*:b"), "a.*:b", "module"),
    ("patch[0].target", lambda t: t["patch"][0].update(target="a:f.<locals>.g"), "a:f.<locals>.g", "colon"),
    ("patch[0].target", lambda t: t["patch"][0].update(target="a:b:c"), "a:b:c", "colon"),
    ("patch[0].when", lambda t: t["patch"][0].update(when=[]), [], "path"),
    ("patch[0].when", lambda t: t["patch"][0].update(when=True), True, "dots"),
    ("patch[0].when[1]", lambda t: t["patch"][0].update(when=["self.x", 1]), 1, "dots"),
    ("patch[0].unless[0].among", lambda t: t["patch"][0]["unless"][0].update(among=[]), [], "value"),
    ("patch[0].unless[0].among[0]", lambda t: t["patch"][0]["unless"][0].update(among=[{}]), {}, "number"),
    ("patch[0].unless[0].equals", lambda t: t["patch"][0]["unless"].insert(0, OF_INFINITY), math.inf, "number"),
    ("patch[0].unless[0].equal", lambda t: t["patch"][0]["unless"][0].update(equal=1), 1, "'equals'"),
    ("patch[2].window", lambda t: t["patch"][2].update(window="no"), "no", "true or false"),
    ("patch[3].before", lambda t: t["patch"][3].update(before="step_ends"), "step_ends", "samples_in_hand"),
    ("patch[3].before[0].event", lambda t: t["patch"][3].update(before=["step_end"]), "step_end", "'step_ends'"),
    ("patch[3].before[0].number", lambda t: t["patch"][3].update(before=["step_begins"]), None, "number"),
    (
        "patch[3].error[0].number",
        lambda t: t["patch"][3].update(error=[{"event": "loop_fails", "number": "self.x"}]),
        "self.x",
        "remove",
    ),
    (
        "patch[3].error[0].when",
        lambda t: t["patch"][3].update(error=[{"event": "loop_fails", "when": "return"}]),
        "return",
        "dots",
    ),
    ("patch[3].before", lambda t: [t["patch"][3].pop(key) for key in ("before", "after", "error")], [], "event"),
]


@pytest.mark.parametrize(("place", "change", "value", "remedy"), BAD, ids=[f"{case[0]}-{case[2]}"[:40] for case in BAD])
def test_what_is_wrong_is_named(place, change, value, remedy):
    """A wrong field is refused by its full name, with its value, and with what is nearest or allowed."""
    error = refused(change)
    assert (error.plan, error.place, error.value) in [("mine", place, value), ("plan", place, value)]
    assert remedy in f"{error.problem}: {error.remedy}"
    assert str(error).isprintable()


def test_a_target_has_one_role():
    """A target that stands twice in a plan, or once in each of two, is refused with both places."""
    error = refused(lambda t: t["patch"].append({"target": "trainer.main:Trainer.sync", "role": "pause"}))
    assert (error.place, "weight_sync, in patch[2]" in error.problem) == ("patch[4].target", True)
    first = read_text(PLAN)
    second = parse({"format": 1, "name": "other", "patch": [{"target": first.patches[1].target, "role": "pause"}]})
    with pytest.raises(PlanError, match=r"stage, in patch\[1\] of plan 'mine'"):
        check_together((first, second))


@pytest.mark.parametrize(
    "text",
    ["", "format = ", "[[[", "a = " + "[" * 5000, "a = 1" + "0" * 5000, 'name = "x"\nname = "y"', "\0", "format = 1"],
    ids=["empty", "cut", "brackets", "deep", "digits", "twice", "nul", "nothing"],
)
def test_what_is_no_plan_is_refused(text):
    """A text that is no TOML, or TOML that is no plan, is a PlanError whatever the parser does."""
    with pytest.raises(PlanError) as caught:
        read_text(text, "file.toml")
    assert caught.value.plan == "file.toml"


@pytest.mark.parametrize("text", ["{", "{}", "[1]", "[" * 100_000, "null"])
def test_what_is_no_json_of_plans_is_refused(text):
    """A text that is no list of plans is a PlanError."""
    with pytest.raises(PlanError):
        load_plans(text)


def test_plans_that_no_environment_takes_are_refused():
    """Plans that are longer than a variable can be are refused before a process is started with them."""
    patch = {"target": "trainer.main:f", "role": "stage", "name": "x" * 300}
    patches = [{**patch, "target": f"trainer.main:f{index}"} for index in range(400)]
    with pytest.raises(PlanError, match="environment"):
        dump_plans([parse({"format": 1, "name": "long", "patch": patches})])


def test_errors_move_no_cursor():
    """What a plan's keys and values are is shown escaped and cut."""
    error = refused(lambda t: t["patch"][0].update({"\x1b[2J\u202e": 1}))
    assert "\\x1b" in str(error)
    assert str(error).isprintable()
    assert len(str(refused(lambda t: t["patch"][0].update(step="x" * 10_000)))) < 600
