"""Why torch_npu does not record: each reason is one sentence that says what to do, and the training goes on."""

from __future__ import annotations

import json

import pytest
from core_support import Evidence, run
from npu_support import WHERE, folders, record

from profwin.backends.npu_output import lacking

WINDOW = """
configure(steps="1")
with training_step(1), rollout_window(1) as window:
    say("ran", window.recorded)
"""


DYNAMIC = """
from torch_npu.profiler import dynamic_profile
os.makedirs(os.environ["OUT"] + "/dynamic")
dynamic_profile.init(os.environ["OUT"] + "/dynamic")
"""
OTHER = """
import torch_npu
handler = torch_npu.profiler.tensorboard_trace_handler(os.environ["OUT"] + "/theirs")
other = torch_npu.profiler.profile(on_trace_ready=handler)
other.start()
"""


def refused(tmp_path, script=WINDOW, **environment):
    """Run a script whose window must run unrecorded; return the reason of the skip, its detail, and the warnings."""
    out, err = record(tmp_path, script, **environment)
    assert "ran False" in out.splitlines(), out + err
    evidence = Evidence(tmp_path)
    evidence.check()
    (skip,) = evidence.of("skip")
    assert folders(tmp_path) == []
    assert skip["detail"] in err
    return skip["reason"], skip["detail"]


@pytest.mark.parametrize(
    ("environment", "reason", "words"),
    [
        (("NPU_STAND_IN", "cann"), "backend", ("CANN is not set up here (ImportError: libhccl.so", "set_env.sh")),
        (("NPU_STAND_IN", "cuda"), "backend", ("torch_npu cannot be imported (RuntimeError: Two accelerators",)),
        (("TORCH_DEVICE_BACKEND_AUTOLOAD", "0"), "backend", ("AUTOLOAD=0 keeps torch from", "unset that")),
        (("PROFILER_SAMPLECONFIG", "x"), "foreign", ("under msprof (PROFILER_SAMPLECONFIG is", "without msprof")),
        (("PROFILING_MODE", "dynamic"), "foreign", ("under msprof (PROFILING_MODE is", "unset PROFILING_MODE")),
    ],
)
def test_what_the_environment_forbids(tmp_path, environment, reason, words):
    """CANN that is absent, another accelerator, loading switched off, msprof: each is refused in its own words."""
    found, detail = refused(tmp_path, **dict([environment]))
    assert found == reason
    for each in words:
        assert each in detail
    assert "\n" not in detail


def test_a_package_that_is_not_there(tmp_path):
    """Without torch_npu the setting is wrong at once, and the error says what to install."""
    script = (
        'try:\n    profwin.configure(steps="1", backend="torch_npu")\nexcept ValueError as error:\n    say(error)\n'
    )
    out, _ = run(script)
    assert "torch_npu (no: no package 'torch_npu' here: install the torch_npu that fits your torch and CANN)" in out


def test_a_failed_import_leaves_the_environment_alone(tmp_path):
    """The variable that torch_npu's import switches off is as it was, so that children load their backends."""
    script = WINDOW + 'say(os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD"))\n'
    out, _ = record(tmp_path / "a", script, NPU_STAND_IN="cann")
    assert out.splitlines()[-1] == "None"
    out, _ = record(tmp_path / "b", script, NPU_STAND_IN="cann", TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert out.splitlines()[-1] == "1"


def test_a_failed_import_is_not_tried_again(tmp_path):
    """What half an import left behind is not built upon: later windows say the same, whatever has changed."""
    script = """
configure(steps="1-2")
for step in (1, 2):
    with rollout_window(step) as window:
        say("ran", window.recorded)
    os.environ["NPU_STAND_IN"] = ""
"""
    out, _ = record(tmp_path, script, NPU_STAND_IN="cann")
    assert out.splitlines() == ["ran False", "ran False"]
    assert len({skip["detail"] for skip in Evidence(tmp_path).of("skip")}) == 1


@pytest.mark.parametrize(
    ("prepare", "environment", "words"),
    [
        ("import torch_npu", {"PROF_CONFIG_PATH": "."}, ("dynamic_profile is on", "unset PROF_CONFIG_PATH")),
        ("import torch_npu", {"MSMONITOR_USE_DAEMON": "1"}, ("dynamic_profile is on", "MSMONITOR_USE_DAEMON")),
        (DYNAMIC, {}, ("dynamic_profile is on",)),
        (OTHER, {}, ("another torch_npu profiler is on in this process (", "theirs", "stop it before the window")),
    ],
    ids=["by_variable", "by_daemon", "by_call", "another"],
)  # fmt: skip
def test_other_profilers_of_torch_npu(tmp_path, prepare, environment, words):
    """dynamic_profile and a profiler of the program's own are in the way; the latter goes on unharmed."""
    ending = "if 'other' in globals():\n    other.stop()\n"
    out, err = record(tmp_path, prepare + WINDOW + ending, **environment)
    assert "ran False" in out.splitlines(), out + err
    (skip,) = Evidence(tmp_path).of("skip")
    assert skip["reason"] == "foreign"
    for each in words:
        assert each in skip["detail"]
    whole = [folder for folder in folders(tmp_path) if lacking(str(folder)) == []]
    assert len(whole) == int("theirs" in words)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        ("import torch_npu.contrib.transfer_to_npu", ("transfer_to_npu is in force", "ask for torch_npu alone")),
        ("", ("exclude each other in a thread", "ask for one of the two")),
    ],
)
def test_torch_asked_for_as_well(tmp_path, prepare, words):
    """Both backends together are refused; where transfer_to_npu has made them one, that is what is said."""
    pytest.importorskip("torch")
    script = WINDOW.replace('steps="1"', 'steps="1", backend=["torch_npu", "torch"]')
    reason, detail = refused(tmp_path, prepare + script)
    assert reason == "foreign"
    for each in words:
        assert each in detail


def test_transfer_to_npu_alone_is_no_obstacle(tmp_path):
    """Where torch_npu alone is asked for, torch.profiler may be torch_npu's."""
    record(tmp_path, "import torch_npu.contrib.transfer_to_npu" + WINDOW)
    assert len(folders(tmp_path)) == 1


def test_torchs_own_profiler_is_on(tmp_path):
    """A profiler of torch's, which excludes torch_npu's in a thread, is in the way while it is on, and not after."""
    pytest.importorskip("torch")
    script = """
from torch.profiler import ProfilerActivity, profile
configure(steps="1-2")
with profile(activities=[ProfilerActivity.CPU]):
    with rollout_window(1) as window:
        say("ran", window.recorded)
with rollout_window(2) as window:
    say("ran", window.recorded)
"""
    out, err = record(tmp_path, script)
    assert [line for line in out.splitlines() if line.startswith("ran")] == ["ran False", "ran True"]
    assert "torch's own profiler is on, which excludes torch_npu's in this thread" in err


@pytest.mark.parametrize("fault", ["init", "start"])
def test_a_start_that_fails_silently(tmp_path, fault):
    """torch_npu prints a failure and returns; it is seen, nothing is left of it, and the next window is free to try."""
    script = """
configure(steps="1-2")
os.environ["NPU_STAND_IN"] = FAULT
with rollout_window(1) as window:
    say("ran", window.recorded)
os.environ["NPU_STAND_IN"] = ""
with rollout_window(2) as window:
    say("ran", window.recorded)
"""
    out, err = record(tmp_path, script.replace("FAULT", repr(fault)))
    assert "Call start failed. Exception: Aclprof" not in err
    assert [line for line in out.splitlines() if line.startswith("ran")] == ["ran False", "ran True"]
    (skip,) = Evidence(tmp_path).of("skip")
    assert skip["reason"] == "backend"
    assert "torch_npu's start failed, and printed why" in skip["detail"]
    assert [each.parts[-3] for each in folders(tmp_path)] == ["step_000002"]


@pytest.mark.parametrize("blocked", ["rollout", ""])
def test_a_folder_that_cannot_be_made(tmp_path, blocked):
    """Where a file is in the way of the folder's path, or of one above it, it fails silently, and is noticed."""
    script = """
place = os.path.join(os.environ["OUT"], "r", "step_000001", BLOCKED).rstrip("/")
os.makedirs(os.path.dirname(place))
open(place, "w").close()
os.chdir(os.environ["OUT"])
"""
    reason, detail = refused(tmp_path, script.replace("BLOCKED", repr(blocked)) + WINDOW)
    assert reason == "backend"
    assert "failed, and printed why" in detail
    assert [path.name for path in tmp_path.iterdir()] == ["r"], "nothing was written to the current directory"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("stop", ("torch_npu's stop failed, and printed why", "it may record on until the process ends")),
        ("no-host", ("lacks FRAMEWORK: nothing of the host was recorded",)),
        ("no-cann-data", ("lacks PROF_*: nothing of CANN and the NPU was recorded",)),
    ],
)
def test_a_recording_that_fails_silently(tmp_path, fault, words):
    """A stop that fails, and a folder that lacks its parts, are failures of the export that name what is missing."""
    script = """
configure(steps="1")
with rollout_window(1) as window:
    os.environ["NPU_STAND_IN"] = FAULT
say("ran", window.recorded)
"""
    _, err = record(tmp_path, script.replace("FAULT", repr(fault)))
    evidence = Evidence(tmp_path)
    evidence.check()
    (export,) = evidence.of("export")
    assert "path" not in export
    for each in words:
        assert each in export["error"]
        assert each in err


def test_a_device_that_fails_is_the_failure_of_the_close(tmp_path):
    """What the device says when it is waited for is kept, the lock is released, and the next window says what is on."""
    script = """
configure(steps="1-2")
with rollout_window(1):
    os.environ["NPU_STAND_IN"] = "sync"
with rollout_window(2) as window:
    say("ran", window.recorded)
"""
    out, _ = record(tmp_path, script)
    evidence = Evidence(tmp_path)
    evidence.check()
    (close,) = evidence.of("close")
    assert "aclrtSynchronizeStream, error code is 507015" in close["error"]
    assert "ran False" in out.splitlines()
    (skip,) = evidence.of("skip")
    assert "or one did not finish" in skip["detail"]


def test_another_profiler_inside_the_recording(tmp_path):
    """One that the program starts inside ours ends it early: the window's recording is a failure that says so."""
    script = """
configure(steps="1")
with rollout_window(1):
    import torch_npu
    other = torch_npu.profiler.profile(
        on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(os.environ["OUT"] + "/theirs")
    )
    other.start()
    other.stop()
"""
    record(tmp_path, script)
    (export,) = Evidence(tmp_path).of("export")
    assert "another torch_npu profiler was started inside the recording" in export["error"]
    assert "theirs" in export["error"]


def test_ranges_that_mstx_refuses_do_no_harm(tmp_path):
    """Where mstx gives no range, the window is recorded without it."""
    out, _ = record(tmp_path, WINDOW + "import torch_npu\nsay(json.dumps(torch_npu._C.ranges))\n", NPU_STAND_IN="mstx")
    assert "ran True" in out.splitlines()
    assert json.loads(out.splitlines()[-1]) == []
    assert len(folders(tmp_path)) == 1


def test_a_failure_is_raised_under_strict(tmp_path):
    """Under strict a refusal is raised, before the body."""
    script = """
configure(steps="1", strict=True)
try:
    with rollout_window(1):
        say("ran")
except profwin.errors.BackendError as error:
    say(error.backend, error.action)
"""
    out, _ = record(tmp_path, "import profwin.errors\n" + script, PROFILING_MODE="dynamic")
    assert out.splitlines() == ["torch_npu open"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, None),
        ({"NPU_STAND_IN": "none"}, "torch_npu finds no NPU here"),
        ({"NPU_STAND_IN": "cann"}, "CANN is not set up here"),
        ({"PROFILING_MODE": "1"}, "launched under msprof"),
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "TORCH_DEVICE_BACKEND_AUTOLOAD=0"),
        ({"PYTHONPATH": ""}, "torch_npu is not installed"),
    ],
)
def test_whether_this_machine_can(environment, words):
    """The backend says, before anything is configured, why it cannot record on this machine, or nothing."""
    script = "from profwin.backends.torch_npu import TorchNpuBackend\nsay(TorchNpuBackend.unusable())\n"
    out, _ = run(script, **{**WHERE, **environment})
    assert out.strip() == "None" if words is None else words in out
