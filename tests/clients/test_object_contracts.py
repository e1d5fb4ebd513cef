"""What the adapters of engine objects rely on is there in vLLM's and SGLang's source; nothing is imported.

vLLM's source is that of the interpreter that ``VLLM_PYTHON`` names, SGLang's the wheel that ``SGLANG_WHEEL`` names.
"""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest
from engine_contracts import Source, fields, find, texts

VLLM, SGLANG = os.environ.get("VLLM_PYTHON"), os.environ.get("SGLANG_WHEEL")
needs_vllm = pytest.mark.environment("VLLM_PYTHON", "vllm")
needs_sglang = pytest.mark.skipif(not SGLANG, reason="SGLANG_WHEEL names no wheel of SGLang")


@pytest.fixture(scope="module")
def vllm():
    """Return vLLM's source."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = subprocess.run([VLLM, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return Source(Path(place))


@pytest.fixture
def sglang():
    """Return SGLang's source."""
    return Source(Path(SGLANG))


def parameters(function):
    """Return the names of a function's parameters but the first."""
    return [each.arg for each in (*function.args.args[1:], *function.args.kwonlyargs)]


def attributes(tree):
    """Return the attributes that a class's methods set on their objects."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }


@needs_vllm
@pytest.mark.parametrize(("module", "name"), [("entrypoints/llm.py", "LLM"), ("v1/engine/async_llm.py", "AsyncLLM")])
def test_starts_of_vllm_take_a_prefix(vllm, module, name):
    """Both classes have the two methods, by these names."""
    found = find(vllm.tree(f"vllm/{module}"), name)
    assert parameters(find(found, "start_profile"))[0] == "profile_prefix"
    assert parameters(find(found, "stop_profile")) == []
    assert isinstance(find(found, "start_profile"), ast.AsyncFunctionDef) is (name == "AsyncLLM")


@needs_vllm
def test_where_vllm_keeps_its_core(vllm):
    """The core in this process, its executor, and the processes of one that is elsewhere."""
    client = vllm.tree("vllm/v1/engine/core_client.py")
    assert "llm_engine" in attributes(find(vllm.tree("vllm/entrypoints/llm.py"), "LLM"))
    assert {"vllm_config", "engine_core"} <= attributes(find(vllm.tree("vllm/v1/engine/llm_engine.py"), "LLMEngine"))
    assert "engine_core" in attributes(find(client, "InprocClient"))
    assert "model_executor" in attributes(find(vllm.tree("vllm/v1/engine/core.py"), "EngineCore"))
    assert "resources" in attributes(find(client, "MPClient"))
    assert {"engine_manager", "output_queue_task"} <= set(fields(find(client, "BackgroundResources")))
    manager = find(vllm.tree("vllm/v1/engine/utils.py"), "CoreEngineProcManager")
    assert "self.processes: list[BaseProcess]" in ast.unparse(manager)
    executors = vllm.tree("vllm/v1/executor/uniproc_executor.py")
    assert [base.id for base in find(executors, "ExecutorWithExternalLauncher").bases] == ["UniProcExecutor"]
    other = find(vllm.tree("vllm/v1/executor/multiproc_executor.py"), "MultiprocExecutor")
    assert [base.id for base in other.bases] == ["Executor"]


@needs_vllm
def test_what_vllm_says_of_its_profiler(vllm):
    """Its configuration's fields, its error for a session that is open, and the task that runs in its event loop."""
    config = find(vllm.tree("vllm/config/profiler.py"), "ProfilerConfig")
    assert {"profiler", "torch_profiler_dir", "proton_profiler_dir", "ignore_frontend"} <= set(fields(config))
    assert find(config, "should_profile_frontend")
    kinds = next(text for text in map(ast.unparse, vllm.tree("vllm/config/profiler.py").body) if "ProfilerKind" in text)
    assert kinds == "ProfilerKind = Literal['torch', 'cuda', 'proton']"
    said = texts(find(vllm.tree("vllm/exceptions.py"), "ProfilerAlreadyActiveError"))
    assert any("already active" in text for text in said)
    engine = ast.unparse(find(vllm.tree("vllm/v1/engine/async_llm.py"), "AsyncLLM"))
    assert "self.output_handler = asyncio.create_task(" in engine
    assert "self.vllm_config = vllm_config" in engine


@needs_sglang
def test_what_sglangs_engine_takes(sglang):
    """Any field of its request, in a plain method that runs its own event loop."""
    engine = find(sglang.tree("sglang/srt/entrypoints/engine.py"), "Engine")
    start = find(engine, "start_profile")
    assert start.args.kwarg.arg == "kwargs"
    assert isinstance(start, ast.FunctionDef)
    assert "self.loop.run_until_complete" in ast.unparse(start)
    known = fields(find(sglang.tree("sglang/srt/managers/io_struct.py"), "ProfileReq"))
    assert {"output_dir", "profile_id"} <= set(known)
    manager = sglang.tree("sglang/srt/managers/scheduler_components/profiler_manager.py")
    assert any("already in progress" in text for text in texts(find(manager, "_init_profile")))
    assert any("not in progress" in text for text in texts(find(manager, "_stop_profile")))


@needs_sglang
def test_where_sglang_keeps_its_processes(sglang):
    """Its watchdog has them."""
    assert "tokenizer_manager._subprocess_watchdog = " in ast.unparse(sglang.tree("sglang/srt/entrypoints/engine.py"))
    assert "_processes" in attributes(find(sglang.tree("sglang/srt/utils/watchdog.py"), "SubprocessWatchdog"))
