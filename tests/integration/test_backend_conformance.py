"""Backends that need no device keep the shared rules; those for others are in test_conformance_devices.py."""

from __future__ import annotations

import pytest
from conformance_support import compute

from profwin.testing import BackendConformance


class TestRecord(BackendConformance):
    """The journal alone."""

    backend = "record"
    writes = False


class TestTesting(BackendConformance):
    """The fake of profwin.testing."""

    backend = "testing"


class TestTorch(BackendConformance):
    """The real torch.profiler, on the CPU."""

    backend = "torch"

    def prepare(self, monkeypatch):
        """Skip where torch is not installed."""
        pytest.importorskip("torch")

    def work(self):
        """Compute."""
        compute()
