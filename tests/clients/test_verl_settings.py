"""verl's configuration becomes profwin's settings. See ``verl_driver`` and ``README.md`` here."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from clients_support import needs, run_json

pytestmark = [needs("verl"), pytest.mark.timeout(900)]

ACTOR = "actor_rollout_ref.actor.profiler"
STEPS = "global_profiler.steps=[2,4]"
TORCH = "global_profiler.tool=torch"
JOINED = "global_profiler.profile_continuous_steps=True"
COMMAND = 'echo "$VERL_PROFILE_SAVE_PATH $VERL_PROFILE_TOOL $VERL_PROFILE_RANK $VERL_PROFILE_PID"'

CASES: dict[str, list[str]] = {
    "off": [TORCH],
    "plain": [STEPS, TORCH, f"{ACTOR}.enable=True"],
    "discrete": [STEPS, TORCH, f"{ACTOR}.tool_config.torch.discrete=True", JOINED],
    "continuous": [STEPS, TORCH, JOINED],
    "ranks": [STEPS, TORCH, f"{ACTOR}.enable=True", f"{ACTOR}.ranks=[0,8]"],
    "all ranks": [STEPS, TORCH, f"{ACTOR}.enable=True", f"{ACTOR}.all_ranks=True"],
    "critic": [STEPS, TORCH, "critic.profiler.enable=True"],
    "contents": [STEPS, TORCH, f"{ACTOR}.tool_config.torch.contents=[cuda,cpu,memory,shapes,stack]"],
    "finish": [STEPS, TORCH, f"global_profiler.finish_hook_cmd='{COMMAND}'"],
    "no tool": [STEPS],
    "separate": [STEPS, TORCH, "trainer.v1.trainer_mode=colocate_async"],
    "wins": [STEPS, TORCH, "PROFWIN_STEPS=7", "PROFWIN_COLLECT=stage", "PROFWIN_BACKEND=record"],
    "npu": [STEPS, "global_profiler.tool=npu"],
    "nsys": [STEPS, "global_profiler.tool=nsys", "global_profiler.global_tool_config.nsys.discrete=True"],
    "memory": [STEPS, "global_profiler.tool=torch_memory"],
    "debugger": [STEPS, "global_profiler.tool=precision_debugger"],
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what profwin makes of each case."""
    arguments = [argument for overrides in CASES.values() for argument in ("--", *overrides)][1:]
    results = run_json("-m", "verl_driver.settings", *arguments, cwd=tmp_path_factory.mktemp("settings"))
    return dict(zip(CASES, results, strict=True))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("plain", {"steps": "2,4", "backend": ["torch"], "collect": "step", "continuous": False, "ranks": "0"}),
        ("plain", {"roles": "actor,ref,rollout", "torch_options": None, "finish_command": None}),
        ("discrete", {"collect": "stage", "continuous": False}),
        ("continuous", {"collect": "step", "continuous": True, "ranks": None, "roles": None}),
        ("ranks", {"ranks": "0,8"}),
        ("all ranks", {"ranks": None}),
        ("critic", {"roles": "critic"}),
        ("contents", {"torch_options": {"profile_memory": True, "record_shapes": True, "with_stack": True}}),
        ("no tool", {"backend": ["record"], "collect": "stage"}),
        ("separate", {"steps": "2,4"}),
        ("memory", {"steps": "2,4", "backend": ["memory"], "collect": "stage", "torch_options": None}),
        ("wins", {"steps": "7", "collect": "stage", "backend": ["record"]}),
    ],
)
def test_setting_follows_the_configuration(found, case, expected):
    """Each of verl's settings becomes the one of profwin that the docs name; a variable of profwin's wins."""
    result = found[case]
    assert result["on"], result["said"]
    assert {name: result["settings"][name] for name in expected} == expected
    assert result["said"] == []


def test_save_path_is_the_output(found, tmp_path_factory):
    """Runs go below verl's save_path."""
    assert found["plain"]["settings"]["output"].endswith("/outputs/profile")


def test_workers_get_the_settings(found):
    """What stands in the controller's configuration alone is exported, before the workers are made."""
    exported = found["plain"]["exported"]
    assert exported["PROFWIN_STEPS"] == "2,4"
    assert exported["PROFWIN_RANKS"] == "0"
    assert "PROFWIN_RUN" in exported


def test_profwin_is_off_without_steps(found):
    """A configuration without steps leaves profwin off, and verl as it is."""
    assert not found["off"]["on"]
    assert found["off"]["said"] == []


def test_nsys_follows_the_configuration(found):
    """With the package that makes its ranges; without it profwin says which one that is, and is off."""
    result = found["nsys"]
    if result["on"]:
        assert result["said"] == []
        assert (result["settings"]["backend"], result["settings"]["collect"]) == (["nsys"], "stage")
    else:
        [message] = result["said"]
        assert "nvtx" in message


@pytest.mark.parametrize(("case", "named"), [("npu", "torch_npu"), ("debugger", "precision_debugger")])
def test_a_tool_that_is_not_there_leaves_verl_to_itself(found, case, named):
    """What profwin cannot record with turns it off, with one message, so that verl's own profiler does its work."""
    assert not found[case]["on"]
    [message] = found[case]["said"]
    assert named in message


def test_finish_command_has_the_variables_of_verl(found, tmp_path):
    """The user's command finds what verl would tell it, as far as profwin knows it."""
    command = found["finish"]["settings"]["finish_command"]
    environment = {**os.environ, "PROFWIN_RUN_DIRECTORY": f"{tmp_path}/a b/run", "PROFWIN_BACKEND": "torch"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.split() == [f"{tmp_path}/a", "b", "torch", "0", str(os.getpid())]
