"""Backends whose devices are not here keep the shared rules with a stand-in for them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from conformance_support import memory_support
from npu_support import WHERE
from nvtx_support import injection

from profwin.testing import BackendConformance
from profwin.testing.conformance.recordings import RecordingRules
from profwin.testing.conformance.suite import Suite
from profwin.testing.conformance.windows import WindowRules


class TestMemory(BackendConformance):
    """The allocator's history: torch's Python code above replaced functions of C."""

    backend = "memory"

    def prepare(self, monkeypatch):
        """Replace what a CPU build lacks."""
        pytest.importorskip("torch")
        self.allocator = memory_support.cuda(monkeypatch)

    def work(self):
        """Allocate."""
        self.allocator.allocate("work")


class TestMemoryOnNPU(RecordingRules, WindowRules):
    """The same with torch_npu's functions, all of them replaced."""

    backend = "memory"

    def prepare(self, monkeypatch):
        """Put a torch_npu in place."""
        pytest.importorskip("torch")
        self.allocator = memory_support.npu(monkeypatch)

    def work(self):
        """Allocate."""
        self.allocator.allocate("work")


class TestMemoryWithoutDevice(Suite):
    """On a build without CUDA all that it can do is refuse."""

    backend = "memory"

    def prepare(self, monkeypatch):
        """Run where there is no allocator."""
        torch = pytest.importorskip("torch")
        if hasattr(torch._C, "_cuda_record_memory_history"):
            pytest.skip("this torch has CUDA")


class TestNsys(BackendConformance):
    """Capture ranges, with torch's runtime calls replaced."""

    backend = "nsys"
    writes = False

    def prepare(self, monkeypatch):
        """Let torch find a device, and count starts and stops."""
        torch = pytest.importorskip("torch")
        pytest.importorskip("nvtx")
        monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "7")
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        found = {"is_available": True, "current_device": 0, "synchronize": None}
        for name, answer in found.items():
            monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
        monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
        monkeypatch.setattr(torch.cuda.profiler, "start", lambda: None)
        monkeypatch.setattr(torch.cuda.profiler, "stop", lambda: None)


def run_suite(name: str, **environment: str) -> None:
    """Run a suite of device_suites.py in a pytest of its own: all of it must pass, and nothing be skipped."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PROFWIN_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", f"device_suites.py::{name}"],
        cwd=Path(__file__).parent, env={**variables, **environment}, capture_output=True, text=True, timeout=500,
        check=False,
    )  # fmt: skip
    assert re.search(r"^\d+ passed in", done.stdout, re.MULTILINE), f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nvtx_under_a_tool():
    """The real package nvtx keeps the rules while a tool listens."""
    run_suite("TestNvtx", NVTX_INJECTION64_PATH=injection())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nvtx_without_a_tool():
    """It keeps them where nobody listens."""
    pytest.importorskip("nvtx")
    run_suite("TestNvtx")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_torch_npu_on_a_stand_in():
    """The stand-in for torch_npu keeps the rules; no NPU was there."""
    run_suite("TestTorchNpu", **WHERE)
