"""What the backend ``torch_npu`` relies on, read out of torch_npu's source; nothing of it is imported or installed.

    python tests/clients/torch_npu_contract.py torch_npu-2.14.0-cp311-cp311-manylinux_2_28_x86_64.whl

writes ``contracts/torch_npu-2.14.0.json``: names, parameters with their defaults and kinds, decorators, attributes,
members of enumerations and constants; none of the source.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

CONTRACTS = Path(__file__).parent / "contracts"
VERSIONS = ("2.13.0", "2.14.0")
CALLS = {
    "profiler.profile": "profiler/profiler.py:profile.__init__",
    "profiler.profile.start": "profiler/profiler.py:profile.start",
    "profiler.profile.step": "profiler/profiler.py:profile.step",
    "profiler.profile.stop": "profiler/profiler.py:profile.stop",
    "profiler.profile.add_metadata_json": "profiler/profiler.py:_KinetoProfile.add_metadata_json",
    "profiler.tensorboard_trace_handler": "profiler/profiler.py:tensorboard_trace_handler",
    "profiler.profiler.analyse": "profiler/profiler.py:analyse",
    "profiler.schedule": "profiler/scheduler.py:Schedule.__init__",
    "profiler._ExperimentalConfig": "profiler/experimental_config.py:_ExperimentalConfig.__init__",
    "npu.synchronize": "npu/utils.py:synchronize",
    "npu.current_device": "npu/utils.py:current_device",
    "npu.device_count": "npu/__init__.py:device_count",
    "npu.is_initialized": "npu/__init__.py:is_initialized",
    "npu.mstx.range_start": "npu/mstx.py:mstx.range_start",
    "npu.mstx.range_end": "npu/mstx.py:mstx.range_end",
}
"""What the backend calls, below ``torch_npu``, and where it is defined."""
MEMBERS = {
    name: f"profiler/experimental_config.py:{name}"
    for name in ("ProfilerLevel", "AiCMetrics", "ExportType", "HostSystem")
}
ATTRIBUTES = {
    "profile": ("profiler/profiler.py:profile", ("prof_if", "step_rec_fn", "stopped")),
    "profile.prof_if": ("profiler/profiler_interface.py:_ProfInterface", ("prof_path",)),
    "ProfPathCreator": ("profiler/_profiler_path_creator.py:ProfPathCreator", ("get_prof_dir", "is_prof_inited")),
    "_DynamicProfile": ("profiler/dynamic_profile.py:_DynamicProfile", ("prof", "repeat_init")),
}
"""What the backend reads: of which class, and what."""
ORDERS = {
    "start": "profiler/profiler.py:profile.start",
    "step": "profiler/profiler.py:profile.step",
    "stop": "profiler/profiler.py:profile.stop",
    "init_trace": "profiler/profiler_interface.py:_ProfInterface.init_trace",
    "stop_trace": "profiler/profiler_interface.py:_ProfInterface.stop_trace",
    "finalize_trace": "profiler/profiler_interface.py:_ProfInterface.finalize_trace",
}
"""Of which functions it matters what they call, in which order."""
TRANSITIONS = ("NONE RECORD_AND_SAVE", "RECORD_AND_SAVE NONE", "RECORD_AND_SAVE None", "NONE NONE", "WARMUP None")
"""Of which changes of state it matters what is done."""
CONSTANTS = (
    "MSPROF_STATIC_ENV", "MSPROF_DYNAMIC_ENV", "MAX_WORKER_NAME_LENGTH", "MAX_FILE_NAME_LENGTH", "FRAMEWORK_DIR",
    "OUTPUT_DIR", "PROFILER_META_DATA", "END_INFO",
)  # fmt: skip
_CONSTANT = "profiler/analysis/prof_common_func/_constant.py"
_EXPORTED = ("profile", "tensorboard_trace_handler", "schedule", "ProfilerActivity", "_ExperimentalConfig", *MEMBERS)


class Source:
    """The source of torch_npu: of a wheel, or of a folder that holds the package.

    Args:
        place: a ``.whl`` file, or a folder with ``torch_npu`` in it.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._trees: dict[str, ast.Module] = {}

    def text(self, path: str) -> str:
        """Return a file's text, by its path below ``torch_npu``."""
        if self._place.is_dir():
            return (self._place / "torch_npu" / path).read_text(encoding="utf-8")
        with zipfile.ZipFile(self._place) as wheel:
            return wheel.read(f"torch_npu/{path}").decode("utf-8")

    def tree(self, path: str) -> ast.Module:
        """Return a file's syntax tree."""
        if path not in self._trees:
            self._trees[path] = ast.parse(self.text(path))
        return self._trees[path]

    def find(self, place: str) -> Any:
        """Return the node of ``file:Class.function``."""
        path, _, dotted = place.partition(":")
        node: Any = self.tree(path)
        for name in dotted.split("."):
            node = next(each for each in node.body if getattr(each, "name", None) == name)
        return node

    def constants(self) -> dict[str, Any]:
        """Return the literal values of the class ``Constant``."""
        found = {}
        for line in self.find(f"{_CONSTANT}:Constant").body:
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                found[line.targets[0].id] = line.value.value  # type: ignore[attr-defined]  # names alone are assigned
        return found

    def value(self, node: ast.expr) -> Any:
        """Return what an expression is: a literal, a constant of its classes, else its text."""
        text = ast.unparse(node)
        owner, _, name = text.rpartition(".")
        if owner == "Constant":
            return self.constants().get(name, text)
        if owner in MEMBERS:
            return self.members(owner)[name]
        try:
            return ast.literal_eval(node)
        except ValueError:
            return text

    def members(self, name: str) -> dict[str, Any]:
        """Return the members of an enumeration, with their values."""
        body = self.find(MEMBERS[name]).body
        return {line.targets[0].id: self.value(line.value) for line in body if isinstance(line, ast.Assign)}

    def signature(self, place: str) -> dict[str, Any]:
        """Return a function's parameters, without self, and its decorators."""
        node = self.find(place)
        given = node.args
        plain = [*given.posonlyargs, *given.args]
        missing = [None] * (len(plain) - len(given.defaults))
        pairs = [*zip(plain, [*missing, *given.defaults], strict=True)]
        parameters = [self._parameter(name, default, "plain") for name, default in pairs if name.arg != "self"]
        keywords = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        parameters += [self._parameter(name, default, "keyword") for name, default in keywords]
        decorators = [ast.unparse(each).partition("(")[0].lstrip("_") for each in node.decorator_list]
        return {"parameters": parameters, "decorators": decorators}

    def _parameter(self, name: ast.arg, default: ast.expr | None, kind: str) -> dict[str, Any]:
        found = {"name": name.arg, "kind": kind}
        return found if default is None else found | {"default": self.value(default)}

    def order(self, place: str) -> list[str]:
        """Return the names of what a function calls, in the order of its text."""
        calls = [each for each in ast.walk(self.find(place)) if isinstance(each, ast.Call)]
        found = sorted((each.func.end_lineno or 0, each.func.end_col_offset or 0, each.func) for each in calls)
        return [ast.unparse(function).rpartition(".")[2] for _, _, function in found]

    def actions(self) -> dict[str, list[str]]:
        """Return what is done at a change of state, by name."""
        path = "profiler/_profiler_action_controller.py"
        table = next(each for each in ast.walk(self.tree(path)) if isinstance(each, ast.Dict) and each.keys)
        found = {}
        for key, actions in zip(table.keys, table.values, strict=True):
            states = [ast.unparse(state).rpartition(".")[2] for state in getattr(key, "elts", [])]
            names = [each for each in getattr(actions, "elts", []) if not isinstance(each, ast.Call)]  # of messages
            found[" ".join(states)] = [ast.unparse(each).rpartition(".")[2] for each in names]
        return found

    def attributes(self, place: str) -> set[str]:
        """Return what a class defines or sets on itself."""
        node = self.find(place)
        found = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                found.add(each.attr)
        return found


def contract(source: Source) -> dict[str, Any]:
    """Return what is relied on, as one finds it in a source."""
    constants = source.constants()
    exported: dict[str, str] = {}
    for line in ast.walk(source.tree("profiler/__init__.py")):
        if isinstance(line, ast.ImportFrom):
            exported |= {alias.asname or alias.name: alias.name for alias in line.names}
    limit = re.search(r"self\.max_str_len = (\d+)", source.text("profiler/profiler.py"))
    name = re.search(r'"(\{\}_\{\}_ascend_pt)"', source.text("profiler/_profiler_path_creator.py"))
    return {
        "calls": {name: source.signature(place) for name, place in CALLS.items()},
        "exported": {name: exported[name] for name in _EXPORTED},
        "members": {name: source.members(name) for name in MEMBERS},
        "attributes": {
            name: sorted(set(wanted) & source.attributes(place)) for name, (place, wanted) in ATTRIBUTES.items()
        },
        "orders": {name: source.order(place) for name, place in ORDERS.items()},
        "transitions": {name: source.actions()[name] for name in TRANSITIONS},
        "constants": {name: constants[name] for name in CONSTANTS},
        "longest_metadata": int(limit[1]) if limit else None,
        "folder": name[1] if name else None,
        "transfer_to_npu": "_patch_profiler" in source.text("contrib/transfer_to_npu.py"),
        "autoload": "TORCH_DEVICE_BACKEND_AUTOLOAD" in source.text("__init__.py"),
    }


def kept(version: str) -> dict[str, Any]:
    """Return the contract that is kept of a version."""
    return dict(json.loads((CONTRACTS / f"torch_npu-{version}.json").read_text()))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        version = Path(argument).name.split("-")[1]
        text = json.dumps(contract(Source(Path(argument))), indent=1, sort_keys=True)
        (CONTRACTS / f"torch_npu-{version}.json").write_text(text + "\n")
