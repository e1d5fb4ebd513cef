"""verl's real fully async trainer and rollouter, bare and with the plan. See ``fully_async_driver``, ``README.md``."""

from __future__ import annotations

from typing import Any

import pytest
from clients_support import needs, run_json

from profwin.patch.reading import read_plan

pytestmark = [needs("verl"), pytest.mark.slow, pytest.mark.timeout(900)]

FAULTS = ("start fails", "start is slow", "start hangs", "stop fails", "stop is slow", "stop hangs")
"""Scenarios in which an engine's profiler does not do what it is told."""


NEEDED = {
    "FullyAsyncTrainer.fit@ends in a profiled step": "left_recording",
    "FullyAsyncTrainer.fit@plain": "unrecorded_generation",
    "FullyAsyncTrainer._fit_update_weights@two updates": "synced_inside",
    "FullyAsyncTrainer._fit_update_weights@validation": "beyond",
    "FullyAsyncTrainer._fit_validate@plain": "unrecorded_generation",
    "DynamicResourceController.activate_hybrid_replicas@dynamic, no": "unrecorded_generation",
    "DynamicResourceController.deactivate_hybrid_replicas@dynamic, two": "overlaps",
    "FullyAsyncRollouter._start_profiling@plain": "second_starts",
    "FullyAsyncRollouter._stop_profiling@plain": "stops_of_nothing",
    "DistProfilerExtension.start_profile@dynamic, one": "overlaps",
    "DistProfilerExtension.stop_profile@one recording": "stops_of_nothing",
    "ActorRolloutRefWorker.compute_log_prob@plain": "unrecorded_work",
    "ActorRolloutRefWorker.update_actor@plain": "unrecorded_work",
}
"""What is broken in a scenario without a target of the plan."""
VALIDATES = "FullyAsyncTrainer._trainer_side_validate@dynamic, validation"
SETTINGS = (
    "global_profiler.steps=[2,4] global_profiler.tool=torch global_profiler.profile_continuous_steps=True "
    "global_profiler.save_path=there actor_rollout_ref.actor.profiler.enable=True "
    "actor_rollout_ref.actor.profiler.all_ranks=True actor_rollout_ref.rollout.profiler.enable=True "
    "actor_rollout_ref.actor.profiler.tool_config.torch.discrete=True"
)
"""Overrides of verl's configuration."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of all scenarios, bare and with the plan, and of some with each target of the plan left out.

    And what a worker does by itself, and settings. All is from one process, since importing verl takes longer.
    """
    dropped = [argument for each in (*NEEDED, VALIDATES) for argument in ("--dropped", each)]
    found: dict[str, Any] = run_json(
        "-m", "fully_async_driver", "--json", "--how", "bare", "--how", "plan", *dropped,
        "--worker", "ActorRolloutRefWorker.update_weights", "--settings", "", "--settings", SETTINGS,
        cwd=tmp_path_factory.mktemp("driver"),
    )  # fmt: skip
    return found


def broken(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return which rules were broken, by scenario; without those in which an engine fails."""
    return {name: each["broken"] for name, each in results.items() if each["broken"] and name not in FAULTS}


def test_bare_verl_leaves_profilers_on_and_overlaps(tables):
    """Bare, nothing ends the last recording, validations are recorded, and lent devices record while they train."""
    bare = tables["bare"]
    left = {name for name, each in bare.items() if each["broken"].get("left_recording") and name not in FAULTS}
    assert left == {
        "ends in a profiled step", "ends between two syncs", "ends in a profiled step, last sync", "fault",
        *(name for name in bare if name.startswith("dynamic")),
    }  # fmt: skip
    assert {name for name, each in bare.items() if each["broken"].get("overlaps")} == {
        name for name in bare if name.startswith("dynamic")
    }
    assert all(each["broken"]["beyond"] for name, each in bare.items() if "validation" in name)
    assert {name: bare[name]["ended"] for name in FAULTS} == {
        "start fails": "engine", "start is slow": "hung", "start hangs": "hung",
        "stop fails": "engine", "stop is slow": "hung", "stop hangs": "hung",
    }  # fmt: skip


def test_with_the_plan_no_rule_is_broken(tables):
    """Windows end before each sync and begin after it; the last ends with the run; validations are not recorded."""
    assert broken(tables["plan"]) == {}
    for name, each in tables["plan"].items():
        if name not in FAULTS:
            assert (each["ended"], each["open"]) == ("fault" if name == "fault" else "", 0), name
            assert (each["findings"], each["skips"]) == ([], []), name


def test_each_version_has_one_window_a_device(tables):
    """A version's window is one, also with two updates a sync; one on lent devices lies beside it."""
    windows = {name: each["windows"] for name, each in tables["plan"].items()}
    for name in ("plain", "two updates a sync", "validation", "validation on lent devices", "dynamic, validation"):
        assert windows[name] == [[1, "rollout"], [2, "rollout"]], name
    for name in ("dynamic", "dynamic, two updates a sync", "dynamic, one recording a step"):
        assert windows[name] == [[1, "rollout"], [1, "rollout_hybrid"], [2, "rollout"], [2, "rollout_hybrid"]], name
    # verl syncs once more at the end; nothing is generated after it.
    assert windows["ends in a profiled step, last sync"] == [[1, "rollout"], [2, "rollout"], [2, "rollout"]]


def test_a_start_that_fails_or_is_late_costs_only_its_window(tables):
    """Training goes on within the wait budget; a late start is stopped at once, and never records another version."""
    plan = tables["plan"]
    assert all(plan[name]["ended"] == "" and plan[name]["open"] == 0 for name in FAULTS if "start" in name)
    assert plan["start fails"]["skips"] == [[1, "rollout", "engine"]]
    assert plan["start fails"]["broken"] == {"stops_of_nothing": 1, "unrecorded_generation": 1}
    assert plan["start is slow"]["skips"] == [[1, "rollout", "engine"], [2, "rollout", "engine"]]
    assert plan["start is slow"]["broken"] == {"unrecorded_generation": 2}, "version 3 is recorded, and that alone"
    assert plan["start hangs"]["broken"] == {"unrecorded_generation": 2}


def test_a_stop_that_fails_or_is_late_holds_no_sync_up(tables):
    """The sync is made within the wait budget; nothing is started on that engine until its stop is confirmed."""
    plan = tables["plan"]
    assert all(plan[name]["ended"] == "" for name in FAULTS if "stop" in name)
    # It is told once more before the next window, which then is recorded.
    assert plan["stop fails"]["broken"] == {"synced_inside": 1}
    assert plan["stop is slow"]["findings"] == plan["stop hangs"]["findings"] == ["late-stop"]
    assert plan["stop is slow"]["skips"] == plan["stop hangs"]["skips"] == [[2, "rollout", "unknown"]]
    assert plan["stop is slow"]["windows"] == [[1, "rollout"], [3, "rollout"]]
    # That one recording is late to end is said; no other began meanwhile.
    assert plan["stop is slow"]["broken"] == {"synced_inside": 1, "mixed": 1}


def test_every_line_of_the_plan_is_needed(tables):
    """Without one of its targets, the driver sees it."""
    for each, rule in NEEDED.items():
        assert any(rule in result["broken"] for result in tables[each].values()), each
    windows = tables[VALIDATES]["dynamic, validation"]["windows"]
    assert [1, "rollout_hybrid"] in windows, "it would be recorded on devices that sleep"


def test_a_worker_learns_its_step_from_weight_syncs(tables):
    """By itself, one recording a step ends before the weights go, after which its devices may be lent."""
    profiled = ["start training", "work training", "work training", "stop training", "sync weights"]
    expected = ["0 sync weights", *(f"{step} {what}" for step in (1, 2) for what in profiled)]
    expected += ["3 work training", "3 work training", "3 sync weights"]
    found, without = tables["worker"]
    assert found == expected
    assert "1 stop training" not in without


def test_settings_are_those_of_verls_configuration(tables):
    """What the user has in ``global_profiler`` and the roles' profilers, before the first actor is made."""
    nothing, found = tables["settings"]
    assert {name: found[name] for name in ("steps", "backend", "collect", "ranks", "roles", "continuous")} == {
        "steps": "2,4", "backend": ["torch"], "collect": "stage", "ranks": None, "roles": "actor,ref,rollout",
        "continuous": False,
    }  # fmt: skip
    assert found["output"].endswith("there")
    assert nothing == {}, "without steps profwin is off"


def test_its_workers_are_those_of_the_plan_for_verl():
    """Stages and silenced calls in workers, and the settings, are what the plan ``verl`` says of them."""
    own, others = (
        {each.target: (each.role, each.name, each.stage_role, each.when, each.unless) for each in plan.patches}
        for plan in (read_plan("verl-fully-async"), read_plan("verl"))
    )
    settings = [dict(read_plan(name).configure.settings) for name in ("verl-fully-async", "verl")]
    assert {**settings[1], "continuous": None} == {**settings[0], "continuous": None}
    workers = {target for target in others if target.startswith(("verl.workers", "verl.utils"))}
    assert workers
    assert {target: own.get(target) for target in workers} == {target: others[target] for target in workers}
