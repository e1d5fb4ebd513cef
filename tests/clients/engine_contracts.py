"""Contracts: what the adapters of HTTP servers rely on in vLLM and SGLang, kept as JSON beside the tests.

Read from source with ``ast`` alone, nothing is imported: from SGLang's wheel, and from vLLM as it is installed. Names,
numbers and messages are kept. Written anew::

    python tests/clients/engine_contracts.py vllm FOLDER    # that has vllm/
    python tests/clients/engine_contracts.py sglang WHEEL   # a wheel, or a folder that has sglang/
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "contracts"
KEPT = {"vllm": "vllm-0.32.0.json", "sglang": "sglang-0.5.23.json"}


class Source:
    """The source of a package, in a folder or in a wheel."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tree(self, name: str) -> ast.Module:
        """Return the syntax tree of a file."""
        if self._path.is_dir():
            return ast.parse((self._path / name).read_bytes())
        with zipfile.ZipFile(self._path) as wheel:
            return ast.parse(wheel.read(name))


def find(tree: ast.AST, name: str) -> Any:
    """Return the class or function of a name, anywhere inside.

    Raises:
        LookupError: there is none.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    raise LookupError(name)


def texts(tree: ast.AST) -> list[str]:
    """Return the texts inside, those of f-strings with ``{}`` for what is put in."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            found.append(node.value)
    return found


def fields(tree: ast.AST) -> list[str]:
    """Return the names of a class's annotated fields."""
    return [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]


def routes(tree: ast.AST, paths: tuple[str, ...]) -> dict[str, list[str]]:
    """Return what the decorators of functions that serve these paths say: the router's method, and what it is given."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            path = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
            if isinstance(path, ast.Constant) and path.value in paths:
                found[path.value] = [ast.unparse(each) for each in node.decorator_list]
    return found


def handled(tree: ast.AST) -> list[str]:
    """Return the exceptions that a FastAPI application has handlers for."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == "app.exception_handler"]
    return sorted(set(names))


def vllm(source: Source) -> dict[str, Any]:
    """Return what the adapter relies on in vLLM."""
    router = source.tree("vllm/entrypoints/serve/profile/api_router.py")
    errors = find(source.tree("vllm/exceptions.py"), "ProfilerAlreadyActiveError")
    config = source.tree("vllm/config/profiler.py")
    engine = find(source.tree("vllm/v1/engine/async_llm.py"), "AsyncLLM")
    start, stop = find(engine, "start_profile"), find(engine, "stop_profile")
    worker = find(find(source.tree("vllm/v1/worker/gpu_worker.py"), "Worker"), "profile")
    wrapper = source.tree("vllm/profiler/wrapper.py")
    guard = source.tree("vllm/entrypoints/serve/middleware/authenticate.py")
    suffix = find(source.tree("vllm/distributed/utils.py"), "get_worker_rank_suffix")
    return {
        "routes": routes(router, ("/start_profile", "/stop_profile")),
        "fields": fields(find(router, "StartProfileRequest")),
        "unknown fields": ast.unparse(find(router, "StartProfileRequest").body[1]),
        "without a profiler": ast.unparse(find(router, "attach_router").body[-1].test),
        "conflict": [text for text in texts(errors) if "session" in text][-1],
        "conflict's status": [ast.unparse(node) for node in ast.walk(errors) if isinstance(node, ast.Attribute)][-1],
        "prefix": [ast.unparse(find(config, "validate_profile_prefix").body[2].test)],
        "start while active": any(
            ast.unparse(node) == "raise ProfilerAlreadyActiveError()" for node in ast.walk(start)
        ),
        "stop of nothing": not [node for node in ast.walk(stop) if isinstance(node, ast.Raise)],
        "start that fails in the worker": [
            ast.unparse(node) for node in find(find(wrapper, "WorkerProfiler"), "_call_start").body[1].handlers
        ],
        "not enabled": [text for text in texts(worker) if text.startswith("Profiling is not enabled")],
        "file names": [text for text in texts(worker) if text.startswith("{}_")]
        + [text for text in texts(suffix) if text.startswith(("dp{}", "{}_rank", "rank{}"))]
        + [text for text in texts(find(wrapper, "TorchProfilerWrapper")) if "profiler_out" in text],
        "paths that want a key": ast.unparse(
            next(n.value for n in guard.body if isinstance(n, ast.Assign) and "GUARDED" in ast.unparse(n))
        ),
        "handlers": handled(source.tree("vllm/entrypoints/serve/exception_handling/register.py")),
    }


def sglang(source: Source) -> dict[str, Any]:
    """Return what the adapter relies on in SGLang."""
    server = source.tree("sglang/srt/entrypoints/http_server.py")
    manager = find(
        source.tree("sglang/srt/managers/scheduler_components/profiler_manager.py"), "SchedulerProfilerManager"
    )
    init, start, stop = (find(manager, name) for name in ("_init_profile", "_start_profile", "_stop_profile"))
    control = source.tree("sglang/srt/managers/tokenizer_control_mixin.py")
    reads = [ast.unparse(node) for node in find(manager, "_profile").body]
    predicate = ast.unparse(find(manager, "_profile_batch_predicate"))
    return {
        "routes": routes(server, ("/start_profile", "/stop_profile")),
        "answers": [
            text
            for name in ("start", "stop")
            for text in texts(find(server, f"{name}_profile_async"))
            if text.endswith("\n")
        ],
        "handlers": handled(server),
        "fields": fields(find(source.tree("sglang/srt/managers/io_struct.py"), "ProfileReq")),
        "messages": [text for text in texts(init) + texts(stop) if text.endswith("first.")],
        "failure": ast.unparse(find(control, "_execute_profile").body[1]),
        "refused starts": [
            ast.unparse(node.test) for node in ast.walk(find(manager, "_profile")) if isinstance(node, ast.If)
        ][1],
        "plain start": "return self._start_profile()" in reads[0],
        "activities": sorted(
            {
                text
                for text in texts(start) + texts(stop)
                if text in ("CPU", "GPU", "MEM", "RPD", "CUDA_PROFILER", "XPU")
            }
        ),
        "directory": [text for text in texts(init) if text in ("SGLANG_TORCH_PROFILER_DIR", "/tmp")],
        "file names": [
            ast.unparse(node.value)
            for node in ast.walk(stop)
            if isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) in ("filename", "filename_parts", "stage_prefix")
        ],
        "a stop of nothing forgets what is armed": "profiler_start_forward_ct" in ast.unparse(stop.body[1]),
        "a stop forgets what is armed": "self.profiler_start_forward_ct = None" in ast.unparse(stop),
        "by stage counts to": "self.profiler_prefill_ct > self.profiler_target_prefill_ct" in predicate,
    }


def kept(kind: str) -> dict[str, Any]:
    """Return the contract that is kept."""
    value: dict[str, Any] = json.loads((FOLDER / KEPT[kind]).read_text())
    return value


READ = {"vllm": vllm, "sglang": sglang}


def main(kind: str, path: str) -> None:
    """Write a contract anew."""
    (FOLDER / KEPT[kind]).write_text(json.dumps(READ[kind](Source(Path(path))), indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
