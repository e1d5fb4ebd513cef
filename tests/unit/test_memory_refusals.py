"""Where there is no allocator with a history, the memory backend says so."""

from __future__ import annotations

import memory_support
import pytest

from profwin import rollout_window
from profwin.backends import load
from profwin.backends.memory import BACKEND
from profwin.errors import BackendError
from profwin.testing import Host

torch = pytest.importorskip("torch")


@pytest.fixture
def host(tmp_path):
    """Return a pretend host."""
    with Host(tmp_path) as found:
        yield found


def test_a_build_without_an_allocator_refuses(host):
    """On a CPU build it says why it cannot record, and so does the window that asks for it."""
    if hasattr(torch._C, "_cuda_record_memory_history"):
        pytest.skip("this torch has CUDA")
    problem = "this torch is a build without CUDA: there is no history of an allocator"
    assert BACKEND.unusable() == problem
    assert load("memory") is BACKEND
    host.configure(backend="memory", strict=True)
    with pytest.raises(BackendError, match=problem), rollout_window(1):
        pass
    host.configure(backend="memory", memory_options={"device": "npu"}, strict=True)
    with pytest.raises(BackendError, match="torch_npu is not imported in this process"), rollout_window(1):
        pass


def test_unusable_without_a_device(monkeypatch):
    """A build with CUDA on a machine without a GPU is said to be without one."""
    memory_support.cuda(monkeypatch)
    assert BACKEND.unusable() is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert BACKEND.unusable() == "torch finds no CUDA device here"
