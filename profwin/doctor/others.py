"""Profilers and monitors that are not ours, and what else on this host keeps a profiler from recording.

What is seen is what shows outside of a process: variables, programs, sockets, what driver and kernel are set to. The
facts are in NVIDIA/DCGM issues 56 and 62, pytorch issue 112389 and torch_npu's ``check_msprof_env``; none of these
programs was at hand when this was written.
"""

from __future__ import annotations

import os

from profwin.backends.nsys_launch import launched
from profwin.doctor.line import NOTE, OK, UNKNOWN, WARNING, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.doctor.host import Host

__all__ = ["kernel", "others", "variables_of_others"]

_DAEMON = "KINETO_USE_DAEMON"
_SOCKET = "dynolog"
_MSPROF = ("PROFILER_SAMPLECONFIG", "PROFILING_MODE")
_INJECTIONS = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
_MOST_SHOWN = 8
_SAMPLING = 2
"""The highest ``perf_event_paranoid`` with which nsys samples CPUs for users without privileges."""


def others(host: Host) -> Iterator[Line]:
    """Look for the programs of other profilers and monitors."""
    host.say("other profilers")
    seen = (
        "whether one records shows in its own process only; a window or stage that finds one in its process is skipped"
    )
    yield Line("torch.profiler", NOTE, seen)
    yield _program(
        host, "DCGM", ("nv-hostengine", "dcgm-exporter", "dcgmi"),
        "while it collects profiling metrics it owns the counters that nsys's --gpu-metrics-devices needs (before "
        "Hopper those of the whole system)", "`dcgmi profile --pause`, and `--resume` afterwards",
    )  # fmt: skip
    yield _program(
        host, "nsys", ("nsys", "nsys-launcher", "nsys-ui"),
        "one that samples GPU metrics owns the counters of its cards while its collection is open",
        "end it, or leave --gpu-metrics-devices out of one of the two",
    )  # fmt: skip
    yield _program(
        host, "ncu", ("ncu", "nv-nsight-cu-cli"), "it serialises and replays the kernels of what it launched",
        "end it before you measure",
    )  # fmt: skip
    yield _program(
        host, "msprof", ("msprof",), "CANN does not support a second profiling task on a device",
        "end it before you record",
    )  # fmt: skip
    yield from _dynolog(host)


def _program(host: Host, name: str, programs: tuple[str, ...], danger: str, remedy: str) -> Line:
    found = sorted(host.running(*programs))
    data = {"pids": found}
    if not found:
        return Line(name, OK, "no process of it can be seen here", data=data)
    pids = ", ".join(map(str, found[:_MOST_SHOWN])) + (", ..." if len(found) > _MOST_SHOWN else "")
    return Line(name, WARNING, f"runs (pids {pids}): {danger}", remedy, data)


def _dynolog(host: Host) -> Iterator[Line]:
    asked = _DAEMON in host.environment  # whatever its value: its presence is what counts
    pids = sorted(host.running("dynolog"))
    listed = [line.split()[-1] for line in (host.text("/proc/net/unix") or "").splitlines() if line.strip()]
    # Its clients have sockets as well, "dynoconfigclient": this process is one where it uses torch.
    sockets = sorted({name.strip("@") for name in listed if _SOCKET in name})
    folder = host.environment.get("KINETO_IPC_SOCKET_DIR")
    signs = [f"pid {pid}" for pid in pids] + sockets[:_MOST_SHOWN] + ([f"sockets in {folder}"] if folder else [])
    data = {"daemon": asked, "pids": pids, "sockets": sockets}
    if asked:
        detail = f"{_DAEMON} is set: dynolog may start traces in this process; a window or stage cancels them"
        yield Line("dynolog", WARNING, "; ".join([detail, *signs]), f"unset {_DAEMON}, or leave the device to it", data)
    elif signs:
        detail = f"is here ({', '.join(signs)}), and reaches only processes with {_DAEMON}"
        yield Line("dynolog", NOTE, detail, data=data)
    else:
        yield Line("dynolog", OK, "no sign of it", data=data)


def variables_of_others(host: Host) -> Iterator[Line]:
    """Look for variables by which other profilers act in a process like this one."""
    sign = launched(host.environment, f"{host.root}/proc/self/maps")
    if sign is not None:
        detail = f"nsys launched this process: {sign}; CUPTI has one subscriber, so torch cannot record the device"
        yield Line("under nsys", WARNING, detail, "use the backend nsys or nvtx there")
    else:
        yield Line("under nsys", OK, "nothing shows that nsys launched this process")
    if given := [name for name in _MSPROF if host.environment.get(name)]:
        detail = f"{' and '.join(given)} set, as in what msprof launched: torch_npu's profiler does nothing there"
        yield Line("under msprof", WARNING, detail, "start the program without msprof")
    for name in _INJECTIONS:
        if path := host.environment.get(name):
            missing = "" if os.path.exists(path) else ", which is not there"
            yield Line(name, WARNING if missing else NOTE, f"a tool is loaded into CUDA programs: {path}{missing}")
    if host.environment.get("NVTX_DISABLE", "0") not in ("", "0"):
        yield Line("NVTX_DISABLE", WARNING, "no range of NVTX is marked in a process like this one", "unset it")


def kernel(host: Host) -> Iterator[Line]:
    """Look at what the driver and the kernel allow."""
    parameters = host.text("/proc/driver/nvidia/params")
    if parameters is not None:
        fields = dict(line.split(": ", 1) for line in parameters.splitlines() if ": " in line)
        admin = fields.get("RmProfilingAdminOnly", "").strip()
        if admin == "1" and os.geteuid() != 0:
            detail = "the driver lets only administrators read performance counters (tracing is not affected)"
            remedy = "load the module nvidia with NVreg_RestrictProfilingToAdminUsers=0"
            yield Line("GPU counters", WARNING, detail, remedy, {"admin_only": True})
        elif admin:
            detail = "for administrators, as which this runs" if admin == "1" else "for all users"
            yield Line("GPU counters", OK, detail, data={"admin_only": admin == "1"})
        else:
            yield Line("GPU counters", UNKNOWN, "the driver does not say who may read them")
    paranoid = (host.text("/proc/sys/kernel/perf_event_paranoid") or "").strip()
    if not paranoid:
        return
    if int(paranoid) > _SAMPLING and os.geteuid() != 0:
        detail = f"perf_event_paranoid is {paranoid}: nsys records, but does not sample CPUs"
        remedy = f"sysctl kernel.perf_event_paranoid={_SAMPLING}"
        yield Line("CPU sampling", NOTE, detail, remedy, {"perf_event_paranoid": int(paranoid)})
    else:
        detail = f"allowed (perf_event_paranoid is {paranoid})"
        yield Line("CPU sampling", OK, detail, data={"perf_event_paranoid": int(paranoid)})
