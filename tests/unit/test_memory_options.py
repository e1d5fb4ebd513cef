"""The options of the memory backend: what is allowed, and how they travel."""

from __future__ import annotations

import pytest

from profwin.errors import SettingError
from profwin.settings import Settings


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_entries": 0}, "a whole number from 1"), ({"max_entries": 1.5}, "a whole number from 1"),
        ({"max_entries": True}, "a whole number from 1"), ({"stacks": "c++"}, "one of python, all"),
        ({"context": None, "entries": 3}, "a dict with keys among max_entries, stacks, context, on_oom, device"),
        ("on_oom=maybe", "True or False"), ("device=tpu", "one of cuda, npu"),
        (["stacks"], "a dict"),
    ],
)  # fmt: skip
def test_wrong_options_say_what_is_allowed(given, said):
    """Whatever is wrong is said at once, with what is allowed."""
    with pytest.raises(SettingError, match="memory_options.*" + said):
        Settings({"memory_options": given}, {})


def test_options_travel_in_a_variable():
    """What is set here is what a child process reads from the variable."""
    given = {"max_entries": 5, "stacks": "all", "on_oom": False, "context": "none"}
    variables = Settings({"memory_options": given}, {}).variables()
    assert Settings({}, variables).memory_options == given
