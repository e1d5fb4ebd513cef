"""What is C++ in torch_npu: the profiler's state of a thread, the device, and the raw files.

Imitated of ``npu_profiler.cpp`` (Ascend/pytorch) and of strings in the library: a second start in a thread is logged
and nothing else; a stop takes the state that is there, whosever it is; a stop without state is logged.

``NPU_STAND_IN`` may hold: ``cann``, ``cuda`` (the import fails), ``init``, ``start``, ``stop``, ``sync`` (that call
raises), ``no-host`` and ``no-cann-data`` (no FRAMEWORK, no PROF_*), ``no-device`` (no device_* below PROF_*), ``mstx``
(no range begins), ``none`` (no NPU), ``analysis`` (it fails, silently). ``NPU_STAND_IN_LOG`` names a file that gets a
line for each start and stop of a device, as a witness beside profwin's own journal; ``NPU_STAND_IN_LAST_WORDS`` one
that gets, when the NPUs are shut down, what CANN's log would have.
"""

import json
import os
import threading
import time
from enum import Enum

_state = threading.local()
said = []
"""What CANN's log would have."""
ranges = []
"""mstx: ("begin", number, message, domain) and ("end", number, domain)."""
initialized = False
shut = False
_numbers = iter(range(1, 1 << 30))


class ProfilerActivity(Enum):
    """What is recorded."""

    CPU = 0
    NPU = 1


def fails(word):
    """Say whether something is to go wrong."""
    return word in os.environ.get("NPU_STAND_IN", "").split(",")


def witness(what):
    """Write down, in one write, that a device started or stopped to be recorded."""
    path = os.environ.get("NPU_STAND_IN_LOG")
    if path:
        line = json.dumps({"t": time.monotonic_ns(), "pid": os.getpid(), "what": what, "device": current_device()})
        with open(path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")


def current_device():
    """Return the physical number of the NPU of this process."""
    mask = os.environ.get("ASCEND_RT_VISIBLE_DEVICES", "0")
    return int(mask.split(",")[0] or 0)


def synchronize():
    """Wait for the device, which may have failed."""
    if fails("sync"):
        raise RuntimeError(
            "synchronize:build/CMakeFiles NPU function error: aclrtSynchronizeStream, error code is 507015"
        )


def init_profiler(path):
    """Tell CANN where its raw data goes."""
    if fails("init"):
        raise RuntimeError("AclProfilingInit failed, error code is 200005")
    said.append(f"init {path}")


def start_profiler(path):
    """Begin to record, unless this thread records already."""
    if fails("start"):
        raise RuntimeError("AclProfilingStart failed, error code is 507033")
    if getattr(_state, "recording", None) is not None:
        said.append("[PTA]:Profiler is already enabled.")
        return
    _state.recording = path
    witness("start")


def stop_profiler():
    """End whatever this thread records."""
    if fails("stop"):
        raise RuntimeError("AclProfilingStop failed, error code is 507033")
    path = getattr(_state, "recording", None)
    if path is None:
        said.append("[PTA]:Can't stop Ascend Pytorch Profiler when it's not started.")
        return
    if shut:
        said.append("stopped after the NPUs were shut down")
    ended = {each[1] for each in ranges if each[0] == "end"}
    said.extend(f"open at the stop: {each[2]}" for each in ranges if each[0] == "begin" and each[1] not in ended)
    _state.recording = None
    witness("stop")
    _write(path)


def _write(path):
    if not fails("no-host"):
        os.makedirs(os.path.join(path, "FRAMEWORK"), exist_ok=True)
        for name in ("torch.op_range", "torch.op_mark"):
            with open(os.path.join(path, "FRAMEWORK", name), "wb") as file:
                file.write(b"raw")
    if fails("no-cann-data"):
        return
    raw = os.path.join(path, "PROF_000001_20261130120000000_ABCDEFGHIJKLMNOP")
    parts = ["host"] if fails("no-device") else ["host", f"device_{current_device()}"]
    for part in parts:
        os.makedirs(os.path.join(raw, part, "data"))
        for name in ("aprof.slice_0", "aprof.slice_0.done"):
            with open(os.path.join(raw, part, "data", name), "wb") as file:
                file.write(b"raw")
    with open(os.path.join(raw, "host", "info.json"), "w", encoding="utf-8") as file:
        json.dump({"hostUid": "123456", "hostname": "node"}, file)


def range_start(message, domain):
    """Begin an mstx range on the host; 0 where that fails."""
    if fails("mstx"):
        return 0
    number = next(_numbers)
    ranges.append(("begin", number, message, domain))
    return number


def range_end(number, domain):
    """End an mstx range."""
    ranges.append(("end", number, domain))


def shut_down():
    """Shut the NPUs down, at exit."""
    global shut
    shut = True
    if getattr(_state, "recording", None) is not None:
        said.append("recording when the NPUs were shut down")
    if os.environ.get("NPU_STAND_IN_LAST_WORDS"):
        with open(os.environ["NPU_STAND_IN_LAST_WORDS"], "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in said)
