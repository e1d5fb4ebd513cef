"""Settings: arguments before variables, every wrong value named, everything that can travel travels."""

from __future__ import annotations

import pytest

from profwin import SettingError, steps
from profwin.settings import Settings


def test_defaults():
    """Without anything given, profwin is off and has the documented defaults."""
    found = Settings({}, {})
    assert found.steps is None
    assert (found.backend, found.collect, found.on_busy) == (("record",), "stage", "wait")
    assert (found.wait_budget, found.trace_format, found.strict) == (30.0, "json.gz", False)


def test_arguments_come_before_variables():
    """A variable counts only where the argument is not given, and an empty one not at all."""
    variables = {"PROFWIN_STEPS": "7", "PROFWIN_COLLECT": "step", "PROFWIN_ROLE": ""}
    found = Settings({"steps": "2"}, variables)
    assert 2 in found.steps
    assert 7 not in found.steps
    assert found.collect == "step"
    assert found.role is None


@pytest.mark.parametrize("value", ["none", "off", "OFF"])
def test_off_can_be_said(value):
    """A variable or argument can turn profwin off although another would turn it on."""
    assert Settings({"steps": value}, {"PROFWIN_STEPS": "1"}).steps is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("steps", "4-2"),
        ("steps", -1),
        ("backend", ""),
        ("backend", [1]),
        ("collect", "phase"),
        ("continuous", "maybe"),
        ("continuous", 1),
        ("ranks", "x"),
        ("roles", 3),
        ("on_busy", "ask"),
        ("wait_budget", -1),
        ("wait_budget", "soon"),
        ("wait_budget", float("nan")),
        ("finish_command", 5),
        ("strict", "perhaps"),
        ("role", "a/b"),
        ("rank", -1),
        ("rank", 1.5),
        ("devices", []),
        ("run", "../up"),
        ("run", ".hidden"),
        ("trace_format", "zip"),
        ("torch_options", {"acc_events": True}),
        ("torch_options", {"with_stack": "yes"}),
    ],
)
def test_a_wrong_value_is_named(setting, value):
    """A wrong setting raises a ValueError that names the setting, the value and what is allowed."""
    with pytest.raises(SettingError) as caught:
        Settings({setting: value}, {})
    assert isinstance(caught.value, ValueError)
    assert caught.value.setting == setting
    assert setting in str(caught.value)
    assert "use " in str(caught.value)


def test_a_wrong_variable_is_named_as_the_variable():
    """An error that comes from the environment says which variable to mend."""
    with pytest.raises(SettingError, match="PROFWIN_WAIT_BUDGET"):
        Settings({}, {"PROFWIN_WAIT_BUDGET": "long"})


def test_continuous_needs_whole_steps():
    """Joining steps has a meaning only where a recording spans a step."""
    with pytest.raises(SettingError, match="collect='step'"):
        Settings({"continuous": True}, {})
    assert Settings({"continuous": True, "collect": "step"}, {}).continuous


def test_variables_round_trip():
    """Another process that is given the variables has the same settings, but a role, rank and run of its own."""
    given = {
        "steps": "2,4-6,every:100", "backend": ["torch", "record"], "collect": "step", "continuous": True,
        "ranks": "0,2", "roles": "actor*", "stages": "update_*,!update_critic", "on_busy": "skip", "wait_budget": 1.5,
        "strict": True, "finish_command": "true",
        "devices": ["pretend:a", "pretend:b"], "trace_format": "json", "rank": 3, "role": "x",
        "torch_options": {"with_stack": True, "record_shapes": False}, "run": "mine",
    }  # fmt: skip
    first = Settings(given, {})
    second = Settings({}, first.variables())
    described, expected = second.describe(), first.describe()
    assert (described.pop("role"), described.pop("rank"), described.pop("run")) == (None, None, None)
    for own in ("role", "rank", "run"):
        expected.pop(own)
    expected["torch_options"] = {"with_stack": True}
    assert described == expected


def test_a_callable_selection_cannot_travel():
    """A selection by a function works here, and says so when it is asked to travel."""
    found = Settings({"steps": lambda step: step == 3}, {})
    assert 3 in found.steps
    with pytest.raises(SettingError, match="text form"):
        found.variables()


def test_the_rank_comes_from_the_launcher():
    """RANK, as torchrun sets it, is the rank where none is given."""
    assert Settings({}, {"RANK": "5"}).rank == 5
    assert Settings({"rank": 1}, {"RANK": "5"}).rank == 1
    assert Settings({}, {"RANK": "many"}).rank is None


def test_selections_are_taken_as_values():
    """A selection that was built in code is used as it is."""
    assert 8 in Settings({"steps": steps(8) | steps("20-")}, {}).steps
