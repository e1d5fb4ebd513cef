"""The backend ``memory``, and the stand-in that it is tested on, fit what torch and torch_npu have.

torch_npu cannot be installed where there is no CANN. With ``TORCH_NPU_WHEELS``, a folder with its wheels, what is
written down here is held against them.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest
from torch_npu_contract import VERSIONS, Source

sys.path.append(str(Path(__file__).parents[1] / "unit"))

import memory_support

WHEELS = os.environ.get("TORCH_NPU_WHEELS", "")
NPU = {
    "_record_memory_history": ["enabled", "args", "kwargs"],
    "_record_memory_history_impl": ["enabled", "context", "stacks", "max_entries", "device"],
    "_snapshot": ["device", "augment_with_fx_traces"],
}
"""Functions of ``torch_npu/npu/memory.py`` and their parameters, in 2.13.0 and 2.14.0."""
BOUND = ("record_memory_history", "isHistoryEnabled", "attach_out_of_memory_observer", "memorySnapshot")
"""Functions of C, after ``_npu_`` or ``_cuda_``."""


def test_torch_takes_what_it_is_given():
    """The function of torch has the parameters by which it is called, and its C functions are declared."""
    torch = pytest.importorskip("torch")
    import torch.cuda.memory as memory

    parameters = inspect.signature(memory._record_memory_history).parameters
    assert {"enabled", "context", "stacks", "max_entries"} <= set(parameters)
    stub = Path(torch.__file__).parent / "_C" / "__init__.pyi"
    declared = stub.read_text()
    assert all(f"def _cuda_{name}(" in declared for name in BOUND if name != "attach_out_of_memory_observer")
    # Not declared there; torch's own list of what a compiled program may call has it.
    from torch._dynamo import trace_rules

    assert "_cuda_attach_out_of_memory_observer" in Path(trace_rules.__file__).read_text()


def test_the_stand_in_has_no_more(monkeypatch):
    """The stand-in for torch_npu takes what torch_npu takes."""
    memory_support.npu(monkeypatch)
    history = sys.modules["torch_npu"].npu.memory
    assert list(inspect.signature(history._record_memory_history).parameters) == NPU["_record_memory_history"]
    closure = inspect.getclosurevars(history._record_memory_history).nonlocals["implemented"]
    assert list(inspect.signature(closure).parameters) == NPU["_record_memory_history_impl"]


@pytest.mark.skipif(not WHEELS, reason="TORCH_NPU_WHEELS names no folder with torch_npu's wheels")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_is_as_written_down(version):
    """The real wheel has these functions, parameters and bindings, and still a reason not to call _dump_snapshot."""
    (path,) = Path(WHEELS).glob(f"torch_npu-{version}-*.whl")
    source = Source(path)
    for name, expected in NPU.items():
        given = source.find(f"npu/memory.py:{name}").args
        names = [each.arg for each in (*given.args, given.vararg, *given.kwonlyargs, given.kwarg) if each is not None]
        assert names == expected, name
    called = ast.unparse(source.find("npu/memory.py:_record_memory_history_impl"))
    assert "_npu_record_memory_history(enabled, context, stacks, max_entries)" in called
    assert "_npu_memorySnapshot(None)" in ast.unparse(source.find("npu/memory.py:_snapshot"))
    assert "_start_profiler" in ast.unparse(source.find("npu/memory.py:_dump_snapshot"))
    with zipfile.ZipFile(path) as wheel:
        library = wheel.read("torch_npu/lib/libtorch_npu.so")
    missing = [name for name in BOUND if not re.search(b"\0_npu_" + name.encode() + b"\0", library)]
    assert not missing
