"""Reported failures on the backends nsys and nvtx, each with its near twin.

The numbers are those under which the failures were collected, as in other tests. Case 58 is about the numbers of NPUs
and has no counterpart here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from check_support import codes, run_check
from core_support import Child, Evidence, run
from nvtx_support import heard, listen

from profwin.backends.nsys_options import options

UNIT = Path(__file__).resolve().parents[1] / "unit"

PRETEND = f"""
sys.path.append({str(UNIT)!r})
from pytest import MonkeyPatch
from cuda_support import pretend_cuda, taken
pretend_cuda(MonkeyPatch())
"""
CONFIGURE = """
profwin.configure(steps="1", backend={backend!r}, output={output!r}, run={role!r}, role={role!r},
                  devices="pretend:{device}")
"""
ROLLOUT = """
with rollout_window(1):
    say("inside")
    hear()
say(*taken())
profwin.shutdown()
"""
TRAINING = """
hear()
with training_step(1), training_stage("update"):
    say("updating")
say(*taken())
profwin.shutdown()
"""


def script(body: str, output: Path, **more: str) -> str:
    """Return a script that records in a process with a pretended device."""
    settings = {"backend": "nsys", "device": "card", "role": "train", "output": str(output), **more}
    return PRETEND + CONFIGURE.format(**settings) + body


@pytest.mark.slow
def test_case_1_a_capture_range_of_another_process(tmp_path):
    """Case 1: a stage's capture range on one device starts when the window's has stopped, and not before."""
    rollout = script(ROLLOUT, tmp_path, role="rollout")
    launched = {"NSYS_PROFILING_SESSION_ID": "7"}
    with Child(rollout, **launched) as first, Child(script(TRAINING, tmp_path), **launched) as second:
        assert first.hear() == "inside"
        second.say()
        with pytest.raises(TimeoutError):
            second.hear(1)
        first.say()
        assert first.hear() == "start device 3 synchronize stop"
        assert second.hear() == "updating"
        assert second.hear() == "start device 3 synchronize stop"
        assert [child.finish()[0] for child in (first, second)] == [0, 0]
    evidence = Evidence(tmp_path)
    evidence.check()
    assert evidence.recorded() == ["rollout", "update"]


@pytest.mark.slow
@pytest.mark.parametrize("twin", [{"device": "other"}, {"backend": "nvtx"}])
def test_case_1_no_needless_wait(tmp_path, twin):
    """Case 1: on another device, and with ranges alone, which disturb nobody, the stage does not wait."""
    launched = {"NSYS_PROFILING_SESSION_ID": "7"}
    with (
        Child(script(ROLLOUT, tmp_path, **twin | {"device": "card"}, role="rollout"), **launched) as first,
        Child(script(TRAINING, tmp_path, **twin), **launched) as second,
    ):
        assert first.hear() == "inside"
        second.say()
        assert second.hear() == "updating"
        second.hear()
        first.say()
        first.hear()
        assert [child.finish()[0] for child in (first, second)] == [0, 0]
    assert not codes(tmp_path) & {"overlap", "shared-device", "handover-order"}


def test_case_5_torch_under_nsys(tmp_path):
    """Case 5: under nsys, which has CUPTI, torch's profiler is not started; NVTX ranges stand in, and check says so."""
    body = """
import torch
def start(self):
    raise RuntimeError("CUPTI error 39: multiple subscribers")
torch.profiler.profile.start = start
with rollout_window(1) as window:
    say(window.recorded)
with training_step(1), training_stage("update"):
    pass
profwin.shutdown()
from profwin.registry.lock import Held, Registry
say(isinstance(Registry().take(("pretend-card",), kind="rollout", run="t", name="t", step=1), Held))
"""
    out, calls = listen(tmp_path, script(body, tmp_path / "out", backend="torch"), NSYS_PROFILING_SESSION_ID="7")
    assert out.split() == ["True", "True"]
    assert [each.name for each in heard(calls)] == ["rollout", "update"]
    (finding,) = Evidence(tmp_path / "out").of("finding")
    assert finding["code"] == "backend-replaced"
    assert "torch: nsys launched this process (NSYS_PROFILING_SESSION_ID is set) and has CUPTI" in finding["detail"]
    assert codes(tmp_path / "out") == {"backend-replaced"}


@pytest.mark.slow
def test_case_5_torch_without_a_device_under_nsys(tmp_path):
    """Case 5: a torch that has no device to lose records under nsys as ever."""
    run(
        CONFIGURE.format(backend="torch", output=str(tmp_path), device="card", role="train")
        + """
import torch
with rollout_window(1):
    torch.ones(3).sin()
with training_step(1), training_stage("update"):
    torch.ones(3).cos()
profwin.shutdown()
""",
        NSYS_PROFILING_SESSION_ID="7",
    )
    assert len(list(tmp_path.glob("train/**/*.pt.trace.json.gz"))) == 2
    assert codes(tmp_path) == set()


def test_case_8_a_report_that_was_never_finished(tmp_path):
    """Case 8: what nsys left of a report that it never made is an error; where none is there, it can be asked for."""
    body = """
with rollout_window(1):
    pass
with training_step(1), training_stage("update"):
    pass
profwin.shutdown()
"""
    run(script(body, tmp_path), NSYS_PROFILING_SESSION_ID="7")
    assert codes(tmp_path) == set()
    status, printed, _ = run_check(tmp_path, "--format", "nsys")
    assert (status, "nsys" in printed) == (1, True)
    (tmp_path / "profwin_host_7.qdstrm").write_bytes(b"half")
    assert codes(tmp_path, mildest="error") == {"nsys-unfinished"}


def test_case_8_a_number_of_capture_ranges_is_never_guessed():
    """Case 8: nsys is told to finish after a number of ranges only where the user says so: fewer would end nothing."""
    assert options()["capture-range-end"] == "repeat"
    assert options(6)["capture-range-end"] == "repeat-shutdown:6"


def test_case_8_the_process_ends_right_after_its_window(tmp_path):
    """Case 8: a process that ends inside a window has stopped its capture range before it is gone."""
    body = """
import cuda_support
class Aloud(list):
    def append(self, event):
        say(event)
cuda_support.EVENTS = Aloud()
window = rollout_window(1)
window.open()
"""
    out, _ = run(script(body, tmp_path), NSYS_PROFILING_SESSION_ID="7")
    assert out.split() == ["start", "device", "3", "synchronize", "stop"]
