"""Ray's runtime environments as profwin fills them, and the names of the devices that Ray gives out."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="ray is not installed: profwin.ray refuses to work")

import profwin
import profwin.ray
from profwin.errors import SettingError
from profwin.ray.devices import granted


def test_of_a_session(tmp_path):
    """Workers get this process's settings and run; what the user set stays, and is not changed."""
    profwin.configure(steps="1", output=tmp_path, run="r", devices="pretend:0")
    given = {"pip": ["x"], "env_vars": {"PROFWIN_STEPS": "7", "MINE": "1"}}
    found = profwin.ray.environment(given)
    assert found == {"pip": ["x"], "env_vars": {**profwin.environment(), "PROFWIN_STEPS": "7", "MINE": "1"}}
    assert given["env_vars"] == {"PROFWIN_STEPS": "7", "MINE": "1"}
    assert profwin.ray.environment()["env_vars"]["PROFWIN_DEVICES"] == "pretend:0"


def test_real_devices_stay_here(tmp_path):
    """The devices of this process are not those of workers, unless they are said to be."""
    profwin.configure(steps="1", output=tmp_path, devices=["pretend:0", "npu-physical:1"])
    assert "PROFWIN_DEVICES" in profwin.environment()
    assert "PROFWIN_DEVICES" not in profwin.ray.environment()["env_vars"]
    assert profwin.ray.environment(devices="cuda:0")["env_vars"]["PROFWIN_DEVICES"] == "cuda:0"


def test_settings_of_its_own(tmp_path):
    """A setting that is given wins over the session's, also where it is the default, and may be role, rank or run."""
    profwin.configure(steps="1", output=tmp_path, run="r", backend="testing", devices="pretend:0")
    found = profwin.ray.environment(backend="record", role="actor", rank=3, steps="2-3")["env_vars"]
    assert (found["PROFWIN_BACKEND"], found["PROFWIN_ROLE"], found["PROFWIN_RANK"]) == ("", "actor", "3")
    assert (found["PROFWIN_STEPS"], found["PROFWIN_RUN"], found["PROFWIN_OUTPUT"]) == ("2-3", "r", str(tmp_path))


def test_without_a_session(tmp_path):
    """Settings alone make an environment; without them it has nothing, and this process stays off."""
    assert profwin.ray.environment() == {"env_vars": {}}
    found = profwin.ray.environment(steps="1", output=str(tmp_path))["env_vars"]
    assert (found["PROFWIN_STEPS"], found["PROFWIN_OUTPUT"]) == ("1", str(tmp_path))
    assert profwin.environment() == {}


@pytest.mark.parametrize("settings", [{"steps": "3-1"}, {"step": "1"}, {"steps": lambda step: True}])
def test_wrong_settings(settings):
    """A setting that is wrong, unknown or cannot travel is refused here and not in the workers."""
    with pytest.raises(SettingError):
        profwin.ray.environment(**settings)


def test_kind_is_kept():
    """Ray's own RuntimeEnv stays one, and Ray takes what it gets."""
    from ray.runtime_env import RuntimeEnv

    found = profwin.ray.environment(RuntimeEnv(env_vars={"A": "1"}), steps="1")
    assert type(found) is RuntimeEnv
    assert (found["env_vars"]["A"], found["env_vars"]["PROFWIN_STEPS"]) == ("1", "1")
    found = profwin.ray.nsight(2, runtime_env=found, steps="1")
    assert type(found) is RuntimeEnv
    assert found.nsight()["capture-range-end"] == "repeat-shutdown:2"


def test_nsight(tmp_path):
    """Workers under nsys have the options of capture ranges over the user's, and the backend that makes the ranges."""
    given = {"nsight": {"cuda-graph-trace": "node", "capture-range": "none"}}
    found = profwin.ray.nsight(4, mode="async", output="/here/mine", runtime_env=given, steps="1")
    assert found["nsight"]["cuda-graph-trace"] == "node"
    assert found["nsight"]["capture-range"] == "cudaProfilerApi"
    assert (found["nsight"]["capture-range-end"], found["nsight"]["o"]) == ("repeat-shutdown:4:async", "mine")
    assert found["env_vars"]["PROFWIN_BACKEND"] == "nsys"
    profwin.configure(steps="1", output=tmp_path, run="r", backend=["nsys", "nvtx"], devices="pretend:0")
    assert profwin.ray.nsight()["env_vars"]["PROFWIN_BACKEND"] == "nsys,nvtx"
    assert profwin.ray.nsight(backend="nvtx")["env_vars"]["PROFWIN_BACKEND"] == "nvtx"


NOSET = "RAY_EXPERIMENTAL_NOSET_"


@pytest.mark.parametrize(
    ("ids", "variables", "names"),
    [
        ({"GPU": ["3"]}, {"CUDA_VISIBLE_DEVICES": "3"}, ("cuda:0",)),
        ({"GPU": ["3", "1"], "NPU": []}, {"CUDA_VISIBLE_DEVICES": "3,1"}, ("cuda:0", "cuda:1")),
        ({"GPU": ["3"]}, {}, ("cuda:3",)),
        ({"GPU": ["3"]}, {"CUDA_VISIBLE_DEVICES": "0, 3"}, ("cuda:1",)),
        ({"GPU": ["3"]}, {"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"GPU": ["GPU-12"]}, {"CUDA_VISIBLE_DEVICES": "GPU-12"}, ("GPU-12",)),
        ({"NPU": ["2"]}, {"ASCEND_RT_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "2"}, ("npu:0",)),
        ({"GPU": [], "NPU": [], "TPU": ["0"]}, {}, ()),
        ({"GPU": []}, {"CUDA_VISIBLE_DEVICES": "4,5"}, ()),
        ({"GPU": []}, {"CUDA_VISIBLE_DEVICES": "4,5", f"{NOSET}CUDA_VISIBLE_DEVICES": "1"}, ("cuda:0", "cuda:1")),
        ({"GPU": []}, {"ASCEND_RT_VISIBLE_DEVICES": "4", f"{NOSET}ASCEND_RT_VISIBLE_DEVICES": "1"}, ("npu:0",)),
        ({"GPU": ["3"]}, {"CUDA_VISIBLE_DEVICES": "4,5", f"{NOSET}CUDA_VISIBLE_DEVICES": "1"}, ()),
        ({}, {f"{NOSET}CUDA_VISIBLE_DEVICES": "1"}, ()),
    ],
)
def test_devices_of_ray(ids, variables, names):
    """Each id is named as the worker numbers it, whether Ray has set the worker's list or was told not to."""
    assert granted(ids, variables) == names


@pytest.mark.parametrize("handles", [[], object(), [object()]])
def test_no_actors(handles):
    """What is no handle is refused at once."""
    with pytest.raises(SettingError, match="handle"):
        profwin.ray.actors(handles)


@pytest.mark.parametrize("call", ["environment(steps='1')", "nsight(steps='1')", "actors([])"])
def test_without_ray(call):
    """Where there is no Ray each function says what to install; importing the package needs neither."""
    program = f"""
import sys
import profwin.ray
assert not {{"ray", "torch"}} & set(sys.modules)
sys.modules["ray"] = None
try:
    profwin.ray.{call}
except profwin.ProfwinError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "profwin.ray needs Ray, which is not installed here: pip install ray\n"
