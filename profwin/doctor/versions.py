"""What runs here: versions, and the clocks that journals and traces are laid on one timeline by."""

from __future__ import annotations

import os
import platform
import sys
import time

from profwin.doctor.engines import version_of
from profwin.doctor.line import NOTE, OK, WARNING, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.doctor.host import Host

__all__ = ["clocks", "versions"]

_PACKAGES = ("torch", "torch-npu", "triton", "ray", "msgspec", "nvtx", "nvidia-ml-py", "httpx", "wrapt")
_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_FAST = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
_COARSE = 1e-6


def versions(host: Host) -> Iterator[Line]:
    """Name the versions of profwin, Python, the system, the driver and the packages that matter."""
    import profwin

    yield Line("profwin", OK, profwin.__version__, data={"version": profwin.__version__})
    implementation = f"{platform.python_implementation()} {platform.python_version()}"
    yield Line("Python", OK, f"{implementation}, {sys.executable}", data={"version": platform.python_version()})
    system = f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs"
    yield Line("system", OK, system, data={"release": platform.release(), "cpus": os.cpu_count()})
    driver = (host.text("/proc/driver/nvidia/version") or "").splitlines()[:1]
    if driver:
        yield Line("NVIDIA driver", OK, driver[0].removeprefix("NVRM version:").strip())
    for name in _PACKAGES:
        found = version_of(name)
        yield Line(name, OK if found else NOTE, found or "not installed", data={"version": found})


def clocks(host: Host) -> Iterator[Line]:
    """Look at the two clocks that journals have: the monotonic one, and the wall clock."""
    for name in ("monotonic", "time"):
        info = time.get_clock_info(name)
        state = OK if info.resolution <= _COARSE else WARNING
        detail = f"{info.implementation}, resolution {info.resolution:.1e} s"
        yield Line(f"clock {name}", state, detail, data={"resolution": info.resolution})
    source = (host.text(_SOURCE) or "").strip()
    if source:
        slow = "" if source in _FAST else "; reading it is a system call, so all that is timed costs more"
        yield Line("clock source", NOTE if slow else OK, source + slow, data={"source": source})
