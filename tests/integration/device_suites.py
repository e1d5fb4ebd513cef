"""Suites of backends that need a process of their own; test_conformance_devices.py runs them in one."""

from __future__ import annotations

from profwin.testing import BackendConformance


class TestNvtx(BackendConformance):
    """The real package nvtx; under a tool that NVTX loads, where the process has one."""

    backend = "nvtx"
    writes = False


class TestTorchNpu(BackendConformance):
    """The stand-in for torch_npu, which the path must have."""

    backend = "torch_npu"
