"""What doctor says of the variables that set profwin up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doctor_support import by_name, make_host, states

import profwin
from profwin import settings
from profwin.doctor.variables import OF_CHILDREN, PRETENCE, asked_backends, variables


def test_none_is_set(tmp_path):
    """Which is said."""
    assert states(variables(make_host(tmp_path, {"PATH": "/bin"}))) == {"PROFWIN_*": "note"}


def test_each_is_judged_by_itself(tmp_path):
    """Right ones are shown, wrong ones say what is allowed, empty ones count for nothing, others are not ours."""
    found = by_name(variables(make_host(tmp_path, {
        "PROFWIN_STEPS": "2,4", "PROFWIN_WAIT_BUDGET": "soon", "PROFWIN_ROLE": "", "PROFWIN_PATCH_PLAN": "verl",
        "PROFWIN_BACKENDS": "torch", "PROFWIN_QQQQQQQQQQ": "1", "PROFWIN_PRETEND_HOST": "b",
    })))  # fmt: skip
    assert {name: line.state for name, line in found.items()} == {
        "PROFWIN_BACKENDS": "warning", "PROFWIN_PATCH_PLAN": "note", "PROFWIN_PRETEND_HOST": "warning",
        "PROFWIN_QQQQQQQQQQ": "warning",
        "PROFWIN_ROLE": "note", "PROFWIN_STEPS": "ok", "PROFWIN_WAIT_BUDGET": "no",
    }  # fmt: skip
    assert found["PROFWIN_STEPS"].detail == "'2,4'"
    assert "seconds, from 0 to 86400" in found["PROFWIN_WAIT_BUDGET"].detail
    assert found["PROFWIN_BACKENDS"].remedy == "did you mean PROFWIN_BACKEND?"
    assert "unset it" in found["PROFWIN_PRETEND_HOST"].remedy
    assert "settings" in found["PROFWIN_QQQQQQQQQQ"].remedy


def test_what_is_wrong_together(tmp_path):
    """Settings that exclude each other are refused as a whole, after each has been shown."""
    found = by_name(variables(make_host(tmp_path, {"PROFWIN_CONTINUOUS": "1"})))
    assert found["PROFWIN_CONTINUOUS"].state == "ok"
    assert found["PROFWIN_*"].state == "no"
    assert "continuous" in found["PROFWIN_*"].detail
    assert "PROFWIN_*" not in by_name(
        variables(make_host(tmp_path, {"PROFWIN_CONTINUOUS": "1", "PROFWIN_COLLECT": "step"}))
    )


def test_commands_are_not_shown(tmp_path):
    """They may hold a password; long values are cut."""
    host = make_host(tmp_path, {"PROFWIN_FINISH_COMMAND": "upload --key secret", "PROFWIN_OUTPUT": "/a" * 100})
    found = by_name(variables(host))
    assert "secret" not in found["PROFWIN_FINISH_COMMAND"].detail
    assert len(found["PROFWIN_OUTPUT"].detail) < 70


@pytest.mark.parametrize(
    ("value", "names"), [(None, ()), ("", ()), (" torch , nvtx,", ("torch", "nvtx")), ("record", ("record",))]
)
def test_backends_that_are_asked_for(value, names):
    """By the variable, as settings read it."""
    assert asked_backends({} if value is None else {"PROFWIN_BACKEND": value}) == names


def test_every_variable_is_known():
    """Each one that the package names is a setting or one of those for children, and each setting is one."""
    names = [name.upper() for name, _parse, _default in settings._TABLE]
    assert [name.upper() for name in settings.Settings.__annotations__] == names
    sources = Path(profwin.__file__).parent.rglob("*.py")
    used = {found for path in sources for found in re.findall(r"\bPROFWIN_[A-Z]+(?:_[A-Z]+)*\b", path.read_text())}
    assert used - {f"PROFWIN_{name}" for name in names} == {*OF_CHILDREN, PRETENCE}
