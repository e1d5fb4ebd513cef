"""Cases of overlapping profilers and broken traces from public issues, on the backend ``torch_npu`` and its stand-in.

What recorded when is taken from the stand-in's own log of the device, beside the journals.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from core_support import Child, Evidence
from npu_support import PRELUDE, WHERE, folders, record

from profwin.evidence.check import check
from profwin.registry.device import npu_key

if TYPE_CHECKING:
    from pathlib import Path

FAKE_TORCH = """
import types
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.version = types.SimpleNamespace(hip=None)
import torch_npu
torch_npu.npu._lazy_init()
"""
"""torch_npu in use, with a torch that is nothing but its name: which devices a process uses is asked of that."""


def witnessed(log: Path) -> list[dict[str, Any]]:
    """Return what the stand-in's devices noted, by time."""
    return sorted((json.loads(line) for line in log.read_text().splitlines()), key=lambda each: each["t"])


def codes(output: Path) -> set[str]:
    """Return the codes of what `profwin check` finds."""
    return {finding.code.name for finding in check(str(output)).findings}


ROLLOUT = """
configure(steps="1", role="engine")
with rollout_window(1):
    say("inside")
    hear()
say("left")
hear()
profwin.shutdown()
"""
TRAIN = """
configure(steps="1", devices={device!r})
say("trying")
with training_step(1), training_stage("update"):
    say("ran")
say("left")
hear()
profwin.shutdown()
"""


def two(tmp_path: Path, device: str) -> tuple[Child, Child]:
    """Start a process that is inside a window on one device, and another whose stage is on the given one."""
    where = {**WHERE, "OUT": str(tmp_path / "out"), "NPU_STAND_IN_LOG": str(tmp_path / "log")}
    engine = Child(PRELUDE + ROLLOUT, **where)
    assert "inside" in (engine.hear(), engine.hear())
    return engine, Child(PRELUDE + TRAIN.format(device=device), **where)


def heard(child: Child, word: str) -> None:
    """Wait until a child says a word; torch_npu's own lines are passed over."""
    while child.hear() != word:
        pass


def test_case_1_the_window_has_stopped_before_the_stage_starts(tmp_path):
    """Case 1: on one device the rollout's profiler stops, once, before the training's starts in another process."""
    engine, trainer = two(tmp_path, "pretend:card")
    with engine, trainer:
        heard(trainer, "trying")
        time.sleep(0.3)  # for a stage that would not wait
        engine.say()
        heard(trainer, "ran")
        heard(trainer, "left")
        for each in (engine, trainer):
            each.say()
            status, _, err = each.finish()
            assert status == 0, err
    log = witnessed(tmp_path / "log")
    assert [(each["what"], each["pid"]) for each in log] == [
        ("start", engine.pid), ("stop", engine.pid), ("start", trainer.pid), ("stop", trainer.pid),
    ]  # fmt: skip
    evidence = Evidence(tmp_path / "out")
    evidence.check()
    assert [record["what"] for record in evidence.of("enter")] == ["window", "stage"]
    assert len(folders(tmp_path / "out")) == 2


def test_case_1_another_device_does_not_wait(tmp_path):
    """Case 1: a stage on another device records while the window is still open."""
    engine, trainer = two(tmp_path, "pretend:other")
    with engine, trainer:
        heard(trainer, "left")
        for each in (trainer, engine):
            each.say()
        engine.say()
        for each in (trainer, engine):
            status, _, err = each.finish()
            assert status == 0, err
    log = witnessed(tmp_path / "log")
    assert [each["what"] for each in log] == ["start", "start", "stop", "stop"]
    assert [each["pid"] for each in log] == [engine.pid, trainer.pid, trainer.pid, engine.pid]
    Evidence(tmp_path / "out").check()


def test_case_1_in_one_process_a_stop_for_each_start(tmp_path):
    """Case 1: over steps of windows and stages in one process every start has one stop, before the next start."""
    script = """
configure(steps="1-3")
for step in (1, 2, 3):
    with training_step(step):
        window = rollout_window(step)
        window.open()
        with training_stage("update"):
            pass
        window.close()
        window.close()
"""
    record(tmp_path / "out", script, NPU_STAND_IN_LOG=str(tmp_path / "log"))
    log = witnessed(tmp_path / "log")
    assert [each["what"] for each in log] == ["start", "stop"] * 6
    assert all(first["t"] < second["t"] for first, second in pairwise(log))


def test_case_5_an_outer_profiler_leaves_the_training_alone(tmp_path):
    """Case 5: under msprof, CANN's own launcher, nothing records, the stage runs, and the device is free at once."""
    script = """
configure(steps="1", wait_budget=0)
with training_step(1), training_stage("update") as stage:
    say("ran")
    from profwin.registry.lock import Held, Registry
    taken = Registry().acquire(("pretend-card",), kind="training", run="x", name="y", step=1)
    say("free", isinstance(taken, Held))
    taken.release()
"""
    out, err = record(tmp_path, script, PROFILING_MODE="dynamic")
    assert out.splitlines()[-2:] == ["ran", "free True"]
    assert "launched under msprof" in err
    assert Evidence(tmp_path).skips() == [("update", "foreign")]
    assert "skipped-foreign" in codes(tmp_path)
    assert not check(str(tmp_path)).clean()


ONE = 'configure(steps="1", npu_options={options!r})\nwith training_step(1), rollout_window(1):\n    pass\n'


@pytest.mark.parametrize(
    ("fault", "analysis", "expected"),
    [
        ("", "off", "ascend-not-analysed"),
        ("no-device", "off", "ascend-no-device-data"),
        ("analysis", "sync", "ascend-analysis-failed"),
        ("no-cann-data", "off", "export-failed"),
    ],
)
def test_case_54_what_is_wrong_with_a_folder_is_told_apart(tmp_path, fault, analysis, expected):
    """Case 54: raw data alone, no data of a device, a failed analysis, and a half recording have codes of their own."""
    record(tmp_path, ONE.format(options={"analysis": analysis}), NPU_STAND_IN=fault)
    wrong = {"ascend-not-analysed", "ascend-no-device-data", "ascend-analysis-failed", "export-failed"}
    assert codes(tmp_path) & wrong - {"ascend-not-analysed"} == {expected} - {"ascend-not-analysed"}
    assert expected in codes(tmp_path)


def test_case_54_raw_data_is_analysed_later(tmp_path):
    """Case 54: what is raw only is analysed by the call that the finding names, in another process."""
    record(tmp_path, ONE.format(options={}))
    (folder,) = folders(tmp_path)
    assert "ascend-not-analysed" in codes(tmp_path)
    record(tmp_path, f"import torch_npu\ntorch_npu.profiler.profiler.analyse(profiler_path={str(folder)!r})\n")
    assert "ascend-not-analysed" not in codes(tmp_path)
    assert "trace-size" not in codes(tmp_path)


def test_case_58_numbers_go_through_the_mask(tmp_path):
    """Case 58: npu:1 is the second of the mask, without a name it is the current one: physical ones are locked."""
    mask = "4,5,6,7"
    script = 'configure(steps="1", devices=DEVICES)\nwith rollout_window(1):\n    pass\n'
    for number, (devices, physical) in enumerate((("npu:1", 5), ("npu-physical:5", 5), (None, 4))):
        output = tmp_path / str(number)
        record(output, FAKE_TORCH + script.replace("DEVICES", repr(devices)), ASCEND_RT_VISIBLE_DEVICES=mask)
        (opened,) = Evidence(output).of("open")
        assert opened["devices"] == [npu_key(physical)]
        assert len(folders(output)) == 1


def test_case_58_a_doubtful_mask_is_warned_of(tmp_path):
    """Case 58: ids that do not ascend are named in a warning, and the window records all the same."""
    script = 'configure(steps="1", devices="npu:0")\nwith rollout_window(1):\n    pass\n'
    _, err = record(tmp_path, FAKE_TORCH + script, ASCEND_RT_VISIBLE_DEVICES="3,1")
    assert "the ids [3, 1] do not ascend" in err
    assert len(folders(tmp_path)) == 1
