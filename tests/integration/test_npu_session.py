"""Windows and stages on the backend ``torch_npu``, on a stand-in that imitates what was read in torch_npu's source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from core_support import Evidence
from npu_support import folders, metadata, record

from profwin.evidence.check import check

if TYPE_CHECKING:
    from pathlib import Path

STEPS = """
for step in (1, 2):
    with training_step(step):
        with rollout_window(step):
            pass
        with training_stage("update"), span("inner"):
            pass
"""
SHOW = """
profwin.shutdown()
import torch_npu
say(json.dumps(torch_npu._C.ranges))
"""


def marks(out: str) -> list[list[object]]:
    """Return our ranges, in order, of what the stand-in noted: ["begin", name] and ["end", name]."""
    found, names = [], {}
    for kind, number, *rest in json.loads(out.splitlines()[-1]):
        if rest[-1] != "profwin":
            continue
        if kind == "begin":
            names[number] = rest[0]
        found.append([kind, names[number]])
    return found


def codes(output: Path) -> set[str]:
    """Return the codes of what `profwin check` finds."""
    return {finding.code.name for finding in check(str(output)).findings}


def test_each_window_and_stage_gets_a_folder_of_its_own(tmp_path):
    """Folders lie in their steps' folders, say what they are, are named by the journal and known to the check."""
    out, err = record(tmp_path, 'configure(steps="1-2")' + STEPS + SHOW)
    assert "failed" not in out + err
    evidence = Evidence(tmp_path)
    evidence.check()
    found = folders(tmp_path)
    assert [str(each.parent.relative_to(tmp_path)) for each in found] == [
        "r/step_000001/rollout", "r/step_000001/train/update", "r/step_000002/rollout", "r/step_000002/train/update",
    ]  # fmt: skip
    told = [(each["step"], each["purpose"], each["name"], each["devices"]) for each in map(metadata, found)]
    assert told == [
        (step, *part, ["pretend-card"]) for step in (1, 2) for part in (("rollout", "rollout"), ("training", "update"))
    ]
    exports = evidence.of("export", backend="torch_npu")
    assert [each["path"] for each in exports] == [str(each.relative_to(tmp_path / "r")) for each in found]
    assert not any("bytes" in each or "error" in each for each in exports)
    assert codes(tmp_path) == {"ascend-not-analysed"}
    assert marks(out)[:6] == [
        ["begin", "rollout"], ["end", "rollout"],
        ["begin", "update"], ["begin", "inner"], ["end", "inner"], ["end", "update"],
    ]  # fmt: skip


def test_a_whole_step_is_one_recording_that_ends_with_the_step(tmp_path):
    """With collect="step" the stages of a step are ranges of one folder, which the end of training_step closes."""
    script = """
configure(steps="1-2", collect="step")
for step in (1, 2):
    with training_step(step):
        with rollout_window(step):
            pass
        with training_stage("log_prob"):
            pass
        with training_stage("update"):
            pass
        say(len(profwin.configuration.current().owner.collections))
    say(len(profwin.configuration.current().owner.collections))
"""
    out, _ = record(tmp_path, script + SHOW)
    assert [line for line in out.splitlines() if line in "01"] == ["1", "0", "1", "0"]
    evidence = Evidence(tmp_path)
    evidence.check()
    assert [each["reason"] for each in evidence.collections(purpose="training")] == ["step", "step"]
    names = [each.parent.name for each in folders(tmp_path)]
    assert names == ["rollout", "step", "rollout", "step"]
    assert marks(out)[2:6] == [["begin", "log_prob"], ["end", "log_prob"], ["begin", "update"], ["end", "update"]]
    assert codes(tmp_path) == {"ascend-not-analysed"}


def test_a_window_between_stages_splits_the_step(tmp_path):
    """A window of the step ends the step's recording, and the next stage opens another part, with a new profiler."""
    script = """
configure(steps="1", collect="step")
with training_step(1):
    with training_stage("a"):
        pass
    with rollout_window(1, name="reward"):
        pass
    with training_stage("b"):
        pass
"""
    record(tmp_path, script)
    Evidence(tmp_path).check()
    assert sorted((each.parent.name, metadata(each)["segment"]) for each in folders(tmp_path)) == [
        ("reward", 1), ("step", 1), ("step", 2),
    ]  # fmt: skip


def test_a_stage_inside_an_open_window_ends_it(tmp_path):
    """The handover is enforced: the window has stopped, and left its folder, before the stage's body."""
    script = """
configure(steps="1")
with training_step(1), rollout_window(1):
    with training_stage("update"):
        say(len(list(__import__("pathlib").Path(os.environ["OUT"]).rglob("profiler_info.json"))))
"""
    out, _ = record(tmp_path, script)
    assert "1" in out.splitlines()
    Evidence(tmp_path).check()
    assert len(folders(tmp_path)) == 2


def test_a_body_that_fails_keeps_its_recording(tmp_path):
    """The exception passes unchanged, the folder is whole, and the next window records."""
    script = """
configure(steps="1-2")
for step in (1, 2):
    try:
        with rollout_window(step):
            raise LookupError("mine")
    except LookupError as error:
        say(repr(error), error.__context__)
"""
    out, _ = record(tmp_path, script)
    assert out.count("LookupError('mine') None") == 2
    assert len(folders(tmp_path)) == 2
    assert codes(tmp_path) <= {"ascend-not-analysed", "failed-body", "no-stages"}


@pytest.mark.parametrize(("analysis", "analysed"), [("off", False), ("async", True), ("sync", True)])
def test_analysis_is_off_or_asked_for(tmp_path, analysis, analysed):
    """Results are there only where analysis was asked for; after ``sync`` the device was free while it ran."""
    script = f"""
configure(steps="1", npu_options={{"analysis": {analysis!r}}})
import torch_npu
from torch_npu.profiler import profiler
real = profiler.analyse
def analyse(*args, **keywords):
    locks = profwin.configuration.current().owner.collections
    say("analysing", [each.held for each in locks], os.listdir(keywords["profiler_path"]))
    return real(*args, **keywords)
profiler.analyse = analyse
with rollout_window(1):
    pass
"""
    out, _ = record(tmp_path, script)
    (folder,) = folders(tmp_path)
    assert (folder / "ASCEND_PROFILER_OUTPUT").is_dir() == analysed
    assert ("analysing [] [" in out) == (analysis == "sync")
    assert out.count("ASCEND_PROFILER_OUTPUT") == 0, "it was analysed before the device was free"
    assert ("ascend-not-analysed" in codes(tmp_path)) == (not analysed)


def test_options_reach_the_folder(tmp_path):
    """What is asked for stands in profiler_info.json, as the check reads it; call stacks are off unless asked for."""
    script = 'configure(steps="1")\nwith rollout_window(1):\n    pass\n'
    record(tmp_path / "a", script, PROFWIN_NPU_OPTIONS="level=Level1,memory,export_type=Db,mstx_domain_include=mine")
    record(tmp_path / "b", script, RANK="3", WORLD_SIZE="8")
    told = {}
    for name, file in (("a", "profiler_info.json"), ("b", "profiler_info_3.json")):
        (folder,) = folders(tmp_path / name)
        told[name] = json.loads((folder / file).read_text())["config"]
    assert told["a"]["common_config"]["profile_memory"]
    assert told["a"]["experimental_config"]["_profiler_level"] == "Level1"
    assert told["a"]["experimental_config"]["_aic_metrics"] == "ACL_AICORE_PIPE_UTILIZATION"
    assert told["a"]["experimental_config"]["_export_type"] == ["db"]
    assert set(told["a"]["experimental_config"]["_mstx_domain_include"]) == {"mine", "profwin"}
    assert told["b"]["experimental_config"]["_aic_metrics"] == "ACL_AICORE_NONE"
    assert not any(told["b"]["common_config"][name] for name in ("with_stack", "profile_memory", "record_shapes"))
    assert all(each["experimental_config"]["_mstx"] for each in told.values())
    assert metadata(folders(tmp_path / "b")[0])["rank"] == 3


def test_links_in_the_output_path(tmp_path):
    """torch_npu resolves links; the journal names the folder inside the run all the same, and the check finds it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    record(tmp_path / "link", 'configure(steps="1")\nwith rollout_window(1):\n    pass\n')
    (export,) = Evidence(tmp_path / "link").of("export")
    assert export["path"].startswith("step_000001/rollout/norank_rollout_")
    assert "trace-missing" not in codes(tmp_path / "link")


def test_many_devices_fit_into_the_metadata(tmp_path):
    """What torch_npu would skip as too long is shortened, so that the folder still says what it is."""
    devices = [f"pretend:{'x' * 180}{number}" for number in range(30)]
    record(tmp_path, f'configure(steps="1", devices={devices!r})\nwith rollout_window(1):\n    pass\n')
    said = metadata(folders(tmp_path)[0])
    assert (said["step"], said["devices"]) == (1, [])


def test_a_folder_of_another_step_is_noticed(tmp_path):
    """A folder whose metadata says another step than the journal that names it is a finding."""
    record(tmp_path, 'configure(steps="1")\nwith rollout_window(1):\n    pass\n')
    file = folders(tmp_path)[0] / "profiler_metadata.json"
    told = json.loads(file.read_text())
    told["profwin"]["step"] = 4
    file.write_text(json.dumps(told))
    assert "trace-of-another" in codes(tmp_path)
