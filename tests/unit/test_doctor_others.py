"""What doctor sees of other profilers, on hosts that a test has made up."""

from __future__ import annotations

import os

import pytest
from doctor_support import by_name, make_host, states

from profwin.doctor.line import STATES
from profwin.doctor.others import kernel, others, variables_of_others

UNIX = "Num       RefCount Protocol Flags    Type St Inode Path\n0: 2 0 0 0002 01 123 {}\n0: 2 0 0 0002 01 124\n\n"


def test_a_quiet_host(tmp_path):
    """Nothing runs and nothing is set: all is well, and what cannot be seen is said."""
    host = make_host(tmp_path)
    assert states(others(host)) == {
        "torch.profiler": "note", "DCGM": "ok", "nsys": "ok", "ncu": "ok", "msprof": "ok", "dynolog": "ok",
    }  # fmt: skip
    assert states(variables_of_others(host)) == {"under nsys": "ok"}
    assert states(kernel(host)) == {}


@pytest.mark.parametrize(
    ("program", "name", "word"),
    [
        ("nv-hostengine", "DCGM", "dcgmi profile --pause"),
        ("dcgm-exporter", "DCGM", "dcgmi profile --pause"),
        ("nsys", "nsys", "--gpu-metrics-devices"),
        ("nsys-launcher", "nsys", "--gpu-metrics-devices"),
        ("nv-nsight-cu-cl", "ncu", "measure"),  # as the kernel cuts it
        ("msprof", "msprof", "record"),
    ],
)
def test_programs_that_get_in_the_way(tmp_path, program, name, word):
    """Each is a warning that says what to do, with the numbers of its processes."""
    programs = dict.fromkeys(range(20, 32), program) | {7: "nsysx"}
    line = by_name(others(make_host(tmp_path, programs=programs)))[name]
    assert (line.state, line.data) == ("warning", {"pids": list(range(20, 32))})
    assert "20, 21," in line.detail
    assert ", ..." in line.detail
    assert word in line.remedy


def test_dynolog_reaches_who_asked_for_it(tmp_path):
    """The variable's presence counts, whatever its value; a daemon without it is only noted."""
    host = make_host(tmp_path, {"KINETO_USE_DAEMON": ""})
    assert by_name(others(host))["dynolog"].state == "warning"
    host = make_host(tmp_path, programs={30: "dynolog"}, files={"/proc/net/unix": UNIX.format("@dynolog@@")})
    line = by_name(others(host))["dynolog"]
    assert line.state == "note"
    assert line.data == {"daemon": False, "pids": [30], "sockets": ["dynolog"]}
    host = make_host(tmp_path / "b", files={"/proc/net/unix": UNIX.format("@dynoconfigclient1@")})
    assert by_name(others(host))["dynolog"].state == "ok"
    host = make_host(tmp_path / "c", {"KINETO_IPC_SOCKET_DIR": "/run/dyno"})
    assert "sockets in /run/dyno" in by_name(others(host))["dynolog"].detail


@pytest.mark.parametrize(
    ("variable", "value", "name", "state"),
    [
        ("NSYS_PROFILING_SESSION_ID", "7", "under nsys", "warning"),
        ("PROFILING_MODE", "dynamic", "under msprof", "warning"),
        ("PROFILER_SAMPLECONFIG", "{}", "under msprof", "warning"),
        ("NVTX_INJECTION64_PATH", "/no/such/library.so", "NVTX_INJECTION64_PATH", "warning"),
        ("CUDA_INJECTION64_PATH", os.devnull, "CUDA_INJECTION64_PATH", "note"),
        ("NVTX_DISABLE", "1", "NVTX_DISABLE", "warning"),
    ],
)
def test_variables_that_get_in_the_way(tmp_path, variable, value, name, state):
    """Those of nsys, msprof, injected tools and NVTX; an empty one is none."""
    assert by_name(variables_of_others(make_host(tmp_path, {variable: value})))[name].state == state
    assert states(variables_of_others(make_host(tmp_path, {variable: ""}))) == {"under nsys": "ok"}


@pytest.mark.parametrize(("user", "state"), [(0, "ok"), (1000, "warning")])
def test_counters_for_administrators(tmp_path, monkeypatch, user, state):
    """The driver's setting matters to other users; a driver that does not say it is unknown."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    parameters = {"/proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\ntorn\n"}
    line = by_name(kernel(make_host(tmp_path, files=parameters)))["GPU counters"]
    assert (line.state, line.data) == (state, {"admin_only": True})
    for text, expected in (("RmProfilingAdminOnly: 0\n", "ok"), ("\n", "unknown")):
        host = make_host(tmp_path, files={"/proc/driver/nvidia/params": text})
        assert by_name(kernel(host))["GPU counters"].state == expected


@pytest.mark.parametrize(
    ("value", "user", "state"), [("2", 1000, "ok"), ("4", 1000, "note"), ("4", 0, "ok"), ("-1", 1000, "ok")]
)
def test_sampling_of_processors(tmp_path, monkeypatch, value, user, state):
    """Above 2 nsys does not sample for users without privileges."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    host = make_host(tmp_path, files={"/proc/sys/kernel/perf_event_paranoid": f"{value}\n"})
    line = by_name(kernel(host))["CPU sampling"]
    assert (line.state, line.data) == (state, {"perf_event_paranoid": int(value)})


def test_hostile_names_are_read(tmp_path):
    """A program may be called anything; what is no text is replaced."""
    host = make_host(tmp_path, programs={5: "a\x1b[31m"}, files={"/proc/6/comm": b"\xff\xfe\n", "/proc/7/comm": ""})
    assert host.programs() == {5: "a\x1b[31m", 6: "\ufffd\ufffd"}
    assert host.text("/proc/8/comm") is None


def test_every_state_is_explained():
    """The states are those that the documentation lists."""
    assert list(STATES) == ["ok", "no", "warning", "note", "unknown"]
