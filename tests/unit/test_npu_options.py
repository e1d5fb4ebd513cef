"""Options of the ``torch_npu`` backend: what they may hold, and their way through a variable."""

from __future__ import annotations

import pytest

from profwin.errors import SettingError
from profwin.options import NPU_OPTIONS, TORCH_OPTIONS, npu_options, options_text
from profwin.settings import Settings

GIVEN = {
    "level": "Level1", "aic_metrics": "Memory", "export_type": ["Text", "Db"], "analysis": "async", "memory": True,
    "stack": False, "gc_detect_threshold": 0.5, "data_simplification": False, "host_sys": ["CPU"],
    "mstx_domain_exclude": ["communication", "mine"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("level", "level0", "Level_none, Level0, Level1, Level2"),
        ("level", 1, "Level0"),
        ("aic_metrics", "Pipe", "PipeUtilization"),
        ("export_type", "json", "Text, Db"),
        ("export_type", [], "Text, Db"),
        ("export_type", "Text+Csv", "Text, Db"),
        ("export_type", 5, "Text, Db"),
        ("analysis", "on", "off, async, sync"),
        ("memory", "perhaps", "True or False"),
        ("stack", 1, "True or False"),
        ("gc_detect_threshold", -1, "from 0"),
        ("gc_detect_threshold", "soon", "from 0"),
        ("gc_detect_threshold", True, "from 0"),
        ("gc_detect_threshold", float("nan"), "from 0"),
        ("host_sys", ["cpu"], "CPU, MEM, DISK, NETWORK, OSRT, NUMA"),
        ("mstx_domain_include", [""], "names without"),
        ("mstx_domain_include", ["a,b"], "names without"),
        ("mstx_domain_exclude", [3], "names without"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(option, value, allowed):
    """A wrong value raises a ValueError that names the option, the value and what it may be."""
    with pytest.raises(SettingError) as caught:
        Settings({"npu_options": {option: value}}, {})
    assert isinstance(caught.value, ValueError)
    assert caught.value.setting == f"npu_options: {option}"
    assert allowed in str(caught.value)


@pytest.mark.parametrize("value", [{"levels": "Level0"}, "levels=Level0", "level=Level0,what", ["level"], 3])
def test_an_unknown_option_is_named_with_those_there_are(value):
    """A key that is no option, or no dictionary, raises an error that lists the options."""
    with pytest.raises(SettingError, match="level, aic_metrics, export_type, analysis"):
        Settings({"npu_options": value}, {})


def test_metrics_need_a_level_that_has_them():
    """Metrics that torch_npu would silently leave out at a low level are refused, but for the name of none."""
    for level in ({}, {"level": "Level0"}, {"level": "Level_none"}):
        with pytest.raises(SettingError, match="level=Level1 or Level2"):
            npu_options("npu_options", {**level, "aic_metrics": "Memory"})
        assert npu_options("npu_options", {**level, "aic_metrics": "AiCoreNone"})["aic_metrics"] == "AiCoreNone"


def test_domains_are_included_or_excluded():
    """torch_npu drops the one where both are given, so both together are refused."""
    with pytest.raises(SettingError, match="but not both"):
        npu_options("npu_options", {"mstx_domain_include": ["a"], "mstx_domain_exclude": ["b"]})


def test_options_go_through_a_variable():
    """What is given comes out of the variable as it went in, also what is switched off and lists."""
    first = Settings({"npu_options": GIVEN}, {})
    variable = first.variables()["PROFWIN_NPU_OPTIONS"]
    assert variable == (
        "level=Level1,aic_metrics=Memory,export_type=Text+Db,analysis=async,memory,stack=0,gc_detect_threshold=0.5,"
        "data_simplification=0,host_sys=CPU,mstx_domain_exclude=communication+mine"
    )
    second = Settings({}, {"PROFWIN_NPU_OPTIONS": variable})
    assert second.npu_options == first.npu_options == GIVEN
    assert second.describe()["npu_options"] == GIVEN


def test_a_variable_by_hand():
    """Spaces and empty parts do not matter; a switch is on where it has no value; the error names the variable."""
    found = Settings({}, {"PROFWIN_NPU_OPTIONS": " memory , shapes=1,, stack=off , export_type=Db "}).npu_options
    assert found == {"memory": True, "shapes": True, "stack": False, "export_type": ["Db"]}
    with pytest.raises(SettingError, match="PROFWIN_NPU_OPTIONS: level"):
        Settings({}, {"PROFWIN_NPU_OPTIONS": "level"})


def test_none_stands_for_the_default_and_nothing_is_shared():
    """None leaves an option out, each default passes its own check, and what is parsed is a copy."""
    names = ["a"]
    found = npu_options("npu_options", {"level": None, "mstx_domain_include": names})
    names.append("b")
    assert found == {"mstx_domain_include": ["a"]}
    for name, (check, default) in NPU_OPTIONS.items():
        if default is not None:
            assert check(default) == default, name


def test_switches_of_torch_that_are_off_stay_out_of_the_variable():
    """What torch records beyond the usual is off unless named."""
    assert options_text({name: name == "with_stack" for name in TORCH_OPTIONS}) == "with_stack"
