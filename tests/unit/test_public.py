"""The public surface: what `profwin` offers, what importing it costs, what its errors carry."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import profwin
from profwin import errors

PACKAGE = Path(profwin.__file__).parent
HEAVY = {"torch", "ray", "nvtx", "numpy", "msgspec", "asyncio", "typing"}
HEAVY_FOR_DECORATORS = {"msgspec", "dataclasses", "inspect", "logging", "asyncio", "typing", "pathlib", "enum", "json"}
EXAMPLES = {
    "BackendError": ("torch", "open", "it is broken"),
    "DeviceBusyError": ("pretend-a", "stage 'x'", 1.5),
    "EngineError": ("LLM", "stop", "TimeoutError: 3 s"),
    "EngineRefusedError": ("vLLM at http://h:1", "409: a session is active"),
    "PlanError": ("trl", "patch[0].target", "a:b", "does not exist", "the nearest is 'c'"),
    "ProfwinError": ("something",),
    "RegistryError": ("locks", "is a link"),
    "SettingError": ("steps", "3-1", "numbers"),
    "StateError": ("window 'rollout'", "make a new one"),
    "WindowOverlapError": ("update", "train.py:3", "rollout", "train.py:1"),
}


def test_all_is_sorted_and_complete():
    """`__all__` lists, in order, exactly the names that have a home, and the version."""
    assert profwin.__all__ == sorted(profwin.__all__)
    assert set(profwin.__all__) == {*profwin._HOMES, "__version__"}
    assert dir(profwin) == profwin.__all__


def test_type_checkers_see_the_same_names():
    """What is imported for type checkers is what is loaded at run time, from the same modules."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == {name: f"profwin.{home}" for name, home in profwin._HOMES.items()}


@pytest.mark.parametrize("name", sorted(profwin._HOMES))
def test_names_load_from_their_homes(name):
    """Each public name loads, is declared public by its own module, and has a docstring that says something."""
    home = importlib.import_module(f"profwin.{profwin._HOMES[name]}")
    assert getattr(profwin, name) is getattr(home, name)
    assert name in home.__all__
    assert len(inspect.getdoc(getattr(profwin, name)) or "") > 20


def test_unknown_names_fail_as_in_any_module():
    """A name that does not exist raises AttributeError, so that `hasattr` works."""
    with pytest.raises(AttributeError, match="no attribute 'rollout_widow'"):
        profwin.rollout_widow  # noqa: B018  # the access is what is tested


def test_no_module_hides_a_public_name():
    """No module is called like a public name: once imported, it would stand in that name's place."""
    assert not {path.stem for path in PACKAGE.iterdir()} & set(profwin._HOMES)


def _modules() -> list[str]:
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py"]
    names = [".".join(("profwin", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files]
    return sorted(name.removesuffix(".__init__") for name in names)


def test_modules_declare_what_they_offer():
    """Every name in a module's `__all__` exists and stands there once."""
    for name in _modules():
        module = importlib.import_module(name)
        offered = list(getattr(module, "__all__", []))
        assert len(set(offered)) == len(offered), name
        assert not [each for each in offered if not hasattr(module, each)], name


def _loaded_after(code: str, *, environment: dict[str, str] | None = None) -> set[str]:
    """Return the modules that a fresh interpreter has loaded because of some code, and not before it."""
    script = (
        f"import sys; before = set(sys.modules)\n{code}\n"
        "loaded = set(sys.modules) - before\nimport json; print(json.dumps(sorted(loaded)))"
    )
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PROFWIN_", "COVERAGE_"))}
    # -S: an installation's own .pth files may load anything.
    command = [sys.executable, "-S", "-c", script]
    variables["PYTHONPATH"] = os.pathsep.join(path for path in (str(PACKAGE.parent), *sys.path) if path)
    done = subprocess.run(
        command, env={**variables, **(environment or {})}, capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


def test_import_loads_nothing_heavy():
    """`import profwin` loads no framework, no encoder, and none of the slow parts of the standard library."""
    loaded = _loaded_after("import profwin")
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("profwin")} == {"profwin"}


def test_decorators_load_nothing_heavy():
    """Decorating functions, and calling them while profwin is off, loads only small modules."""
    code = (
        "from profwin import rollout_window, training_stage, training_step, span, paused\n"
        "@training_stage\ndef update(): pass\n"
        "@training_stage('named')\ndef other(): pass\n"
        "with rollout_window(1): pass\n"
        "with training_step(1), span('part'), paused(): update(); other()"
    )
    assert not _loaded_after(code) & (HEAVY | HEAVY_FOR_DECORATORS)


def test_configured_processes_load_no_framework(tmp_path):
    """Recording with the `record` backend loads no framework and no event loop."""
    code = (
        "import profwin\n"
        "profwin.configure(steps='1', devices='pretend:a')\n"
        "with profwin.rollout_window(1): pass\n"
        "with profwin.training_stage('update'): pass\n"
        "profwin.shutdown()"
    )
    locks = tmp_path / "locks"
    environment = {"PROFWIN_OUTPUT": str(tmp_path / "output"), "PROFWIN_LOCK_DIR": str(locks)}
    loaded = _loaded_after(code, environment=environment)
    assert not loaded & {"torch", "ray", "nvtx", "numpy", "asyncio"}
    assert list((tmp_path / "output").glob("*/manifest.json")), "it did record"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_errors_travel_whole(name):
    """Every error pickles with its message and its attributes, and is what its docstring's tree says."""
    kind = getattr(errors, name)
    error = kind(*EXAMPLES[name])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert isinstance(again, errors.ProfwinError)
    builtin = next(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")
    assert f"{name} ({builtin})" in errors.__doc__ if name != "ProfwinError" else builtin == "Exception"


def test_every_error_has_an_example():
    """The errors tested here are all there are."""
    assert set(EXAMPLES) == set(errors.__all__)


def test_types_are_shipped():
    """The package carries the marker by which type checkers trust its annotations."""
    assert (PACKAGE / "py.typed").is_file()
