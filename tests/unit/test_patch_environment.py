"""What ``profwin run`` leaves in the environment."""

from __future__ import annotations

from profwin.launch import Origin, launched
from profwin.patch.environment import patch_variables


def test_the_launch_names_this_process():
    """The run that is handed on began in the process that becomes the command, and is another one each time."""
    first, second = (patch_variables((), "all", {}) for _ in range(2))
    found = launched(first)
    assert found is not None
    name, origin = found
    assert origin.text == Origin.here(0).text
    assert not origin.gone()
    assert name != launched(second)[0]


def test_a_launch_whose_command_is_gone_means_nothing():
    """What a shell still has of a command that ended begins no run."""
    here = Origin.here(0).text
    gone = here.replace("-", "1-", 1)
    assert launched({"PROFWIN_LAUNCH": f"name/{gone}"}) is None
    assert launched({"PROFWIN_LAUNCH": f"name/{here}"}) is not None
    assert launched({"PROFWIN_LAUNCH": ""}) is None
    assert launched({}) is None
