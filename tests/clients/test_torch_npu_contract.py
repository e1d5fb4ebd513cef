"""The backend ``torch_npu``, and the stand-in that it is tested on, fit torch_npu's source.

torch_npu cannot be installed where there is no CANN: then torch itself cannot be imported. What the backend relies on
is kept in ``contracts/torch_npu-<version>.json``, and everything is held against that. With ``TORCH_NPU_WHEELS``, a
folder with the wheels, what is kept is held against them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch_npu_contract import ATTRIBUTES, CALLS, ORDERS, TRANSITIONS, VERSIONS, Source, contract, kept

from profwin.backends import npu_access, npu_recording
from profwin.options import NPU_OPTIONS, npu_options

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STAND_IN = ROOT / "tests" / "integration" / "npu_stand_in"
WHEELS = os.environ.get("TORCH_NPU_WHEELS", "")
every_version = pytest.mark.parametrize("version", VERSIONS)

ALL = {
    "level": "Level2", "aic_metrics": "MemoryUB", "export_type": ["Text", "Db"], "analysis": "sync", "memory": True,
    "shapes": True, "stack": True, "l2_cache": True, "op_attr": True, "record_op_args": True,
    "gc_detect_threshold": 1.5, "data_simplification": False, "host_sys": ["CPU", "MEM"], "sys_io": True,
    "sys_interconnection": True, "mstx_domain_include": ["mine"],
}  # fmt: skip

RECORDER = """
import json, sys, types
sys.path[:0] = [{root!r}, {here!r}]
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.version = types.SimpleNamespace(hip=None)
import torch_npu
from torch_npu_contract import CALLS

noted = []

def note(name, real, bound):
    def noting(*args, **keywords):
        if sys._getframe(1).f_globals["__name__"].startswith("profwin."):  # else the stand-in's own
            noted.append([name, len(args) - bound, sorted(keywords)])
        return real(*args, **keywords)
    return noting

for name in sorted(CALLS, key=lambda name: -name.count(".")):
    *owners, last = name.split(".")
    owner = torch_npu
    for each in owners:
        owner = getattr(owner, each)
    method = isinstance(owner, type) and not isinstance(vars(owner).get(last), staticmethod)
    ours = note(name, getattr(owner, last), int(method))
    setattr(owner, last, ours if method or not isinstance(owner, type) else staticmethod(ours))

import profwin
from profwin.backends.torch_npu import TorchNpuBackend
assert TorchNpuBackend.unusable() is None
torch_npu.npu._lazy_init()
for number, options in enumerate({options!r}):
    profwin.configure(steps="1", backend="torch_npu", output={output!r}, run=str(number), npu_options=options)
    with profwin.rollout_window(1):
        pass
    profwin.shutdown()
print(json.dumps(noted))
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Return each call of torch_npu that the backend makes, with how many arguments were positional, and keywords."""
    output = tmp_path_factory.mktemp("runs")
    excluding = {"level": "Level_none", "mstx_domain_exclude": ["theirs"]}
    script = RECORDER.format(root=str(ROOT), here=str(HERE), output=str(output), options=[ALL, excluding, {}])
    where = {**os.environ, "PYTHONPATH": str(STAND_IN), "PROFWIN_LOCK_DIR": str(tmp_path_factory.mktemp("locks"))}
    done = subprocess.run([sys.executable, "-c", script], env=where, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert len(list(output.rglob("*_ascend_pt"))) == 3, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@every_version
def test_what_is_called_is_there_and_takes_what_it_is_given(calls, version):
    """Each call is of a function that torch_npu has, by keywords that it takes, with all that it needs."""
    found = kept(version)["calls"]
    assert {name for name, _positional, _keywords in calls} == set(CALLS) == set(found)
    for name, positional, keywords in calls:
        parameters = found[name]["parameters"]
        assert positional == 0, f"{name}: orders differ from torch's"
        assert set(keywords) <= {each["name"] for each in parameters}, name
        assert {each["name"] for each in parameters if "default" not in each} <= set(keywords), name


@every_version
def test_every_option_reaches_torch_npu(calls, version):
    """Together the options set every argument that torch_npu has, but for the old name of one."""
    given = {
        keyword
        for name, _positional, keywords in calls
        if name == "profiler._ExperimentalConfig"
        for keyword in keywords
    }
    known = {each["name"] for each in kept(version)["calls"]["profiler._ExperimentalConfig"]["parameters"]}
    assert known - given == {"msprof_tx"}
    assert npu_options("npu_options", ALL) == ALL
    assert set(ALL) | {"mstx_domain_exclude"} == set(NPU_OPTIONS)


@every_version
def test_values_of_options_are_members(version):
    """The values that an option may have are those that torch_npu's enumeration has."""
    members = kept(version)["members"]
    high = {"level": "Level2"}
    for option, kind, further in (
        ("level", "ProfilerLevel", {}),
        ("aic_metrics", "AiCMetrics", high),
        ("export_type", "ExportType", {}),
        ("host_sys", "HostSystem", {}),
    ):
        for name in members[kind]:
            assert npu_options("npu_options", {**further, option: name})
        with pytest.raises(ValueError, match=option) as caught:
            npu_options("npu_options", {**further, option: "Neither"})
        allowed = str(caught.value).rpartition("one ")[2].partition("of ")[2].partition(", as a list")[0]
        assert set(allowed.split(", ")) == set(members[kind])


@every_version
def test_defaults_are_torch_npus(version):
    """What an option is when it is not given is torch_npu's own default."""
    found = kept(version)
    theirs = {}
    for call in ("profiler.profile", "profiler._ExperimentalConfig"):
        theirs |= {each["name"]: each.get("default") for each in found["calls"][call]["parameters"]}
    names = {"level": "profiler_level", "memory": "profile_memory", "shapes": "record_shapes", "stack": "with_stack"}
    for option, (_check, default) in NPU_OPTIONS.items():
        if option == "export_type":
            assert [found["members"]["ExportType"][name] for name in default] == [theirs["export_type"]]
        elif option not in ("aic_metrics", "analysis"):  # None: what fits the level; profwin's own
            assert theirs[names.get(option, option)] == default, option


@every_version
def test_what_is_read_is_there(version):
    """Attributes, names and limits that the backend reads are torch_npu's."""
    found = kept(version)
    assert found["attributes"] == {name: sorted(wanted) for name, (_place, wanted) in ATTRIBUTES.items()}
    constants = found["constants"]
    assert (constants["MSPROF_STATIC_ENV"], constants["MSPROF_DYNAMIC_ENV"]) == npu_access._MSPROF
    assert found["longest_metadata"] == npu_recording._LONGEST_METADATA
    assert found["exported"]["schedule"] == "Schedule"
    assert found["folder"] == "{}_{}_ascend_pt"
    assert (constants["FRAMEWORK_DIR"], constants["END_INFO"]) == ("FRAMEWORK", "end_info")
    assert found["transfer_to_npu"]
    assert found["autoload"]


@every_version
def test_what_the_backend_takes_for_granted_is_so(version):
    """Errors are swallowed; a start ends with the step's range; a stop waits for the device, and writes files last."""
    found = kept(version)
    for name in ("profile.start", "profile.step", "profile.stop", "profile.add_metadata_json", "profiler.analyse"):
        assert "no_exception_func" in found["calls"][f"profiler.{name}"]["decorators"]
    orders = found["orders"]
    assert orders["start"].index("transit_action") < orders["start"].index("record_function")
    assert orders["init_trace"].index("create_prof_dir") < orders["init_trace"].index("_init_profiler")
    assert orders["stop_trace"].index("synchronize") < orders["stop_trace"].index("_stop_profiler")
    assert orders["finalize_trace"].index("_finalize_profiler") < orders["finalize_trace"].index("_dump_profiler_info")
    ending = ["stop_trace", "finalize_trace", "_trace_ready"]
    assert found["transitions"] == {
        "NONE RECORD_AND_SAVE": ["init_trace", "start_trace"], "RECORD_AND_SAVE NONE": ending,
        "RECORD_AND_SAVE None": ending, "NONE NONE": [], "WARMUP None": ["finalize_trace", "delete_prof_dir"],
    }  # fmt: skip
    assert set(found["transitions"]) == set(TRANSITIONS)


@every_version
def test_the_stand_in_is_like_torch_npu(version):
    """Signatures, members, constants and changes of state are the same; what is called, is in the same order."""
    real, ours = kept(version), contract(Source(STAND_IN))
    orders = {name: (real["orders"].pop(name), ours["orders"].pop(name)) for name in ORDERS}
    assert ours == real
    for name, (theirs, mine) in orders.items():
        rest = iter(theirs)
        assert all(call in rest for call in mine), f"{name}: {mine} is no part of {theirs}"


@every_version
@pytest.mark.skipif(not WHEELS, reason="TORCH_NPU_WHEELS names no folder with torch_npu's wheels")
def test_what_is_kept_is_current(version):
    """The real wheel has what is kept; if not, python tests/clients/torch_npu_contract.py WHEEL writes it anew."""
    wheels = sorted(Path(WHEELS).glob(f"torch_npu-{version}-*.whl"))
    if not wheels:
        pytest.skip(f"no wheel of torch_npu {version} in {WHEELS}")
    assert contract(Source(wheels[0])) == kept(version)
