"""A case of a stop that comes twice, from a public issue, on the backend ``memory``."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest
from conformance_support import memory_support

import profwin
from profwin.testing import Host

pytest.importorskip("torch")


@pytest.mark.parametrize("device", ["cuda", "npu"])
def test_case_6_stopped_by_many_threads(tmp_path, monkeypatch, device):
    """Eight threads close a window: one snapshot is taken, once, and it is whole; closing one never opened is fine."""
    allocator = getattr(memory_support, device)(monkeypatch)
    with Host(tmp_path) as host:
        host.configure(backend="memory", strict=True)
        window = profwin.rollout_window(1)
        window.open()
        allocator.allocate("inside")
        threads = [threading.Thread(target=window.close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        window.close()
        profwin.rollout_window(2).close()
        assert allocator.snapshots == 1
        assert [call[0] for call in allocator.calls] == ["all", None]
        (path,) = Path(host.output).glob("*/step_*/**/*.pickle")
        assert len(pickle.loads(path.read_bytes())["device_traces"][0]) == 1
