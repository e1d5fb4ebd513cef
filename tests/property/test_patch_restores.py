"""Whatever is installed, taken back and reloaded, in whatever order: at the end everything is as it was."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profwin.patch import install, uninstall
from profwin.patch.reading import read_text
from profwin.patch.replacement import is_patched

SOURCE = (Path(__file__).parents[1] / "unit" / "patch_target.py").read_text()
HEAD = "format = 1\nname = {!r}\n"
PLANS = {
    "methods": '[[patch]]\ntarget = "restored:Trainer.up*"\nrole = "stage"\n'
    '[[patch]]\ntarget = "restored:Trainer.loss"\nrole = "silence"\n',
    "inherited": '[[patch]]\ntarget = "restored:Trainer.inherited"\nrole = "span"\n'
    '[[patch]]\ntarget = "restored:Trainer.make"\nrole = "pause"\n',
    "module": '[configure]\ntarget = "restored:free"\n[configure.settings]\nsteps = "batch"\n'
    '[[patch]]\ntarget = "restored:free"\nrole = "stage"\n',
    "base": '[[patch]]\ntarget = "restored:Base.*"\nrole = "stage"\n',
    "broken": '[[patch]]\ntarget = "restored:Trainer.sync"\nrole = "stage"\n'
    '[[patch]]\ntarget = "restored:nothing"\nrole = "stage"\n',
}
ACTIONS = st.lists(st.sampled_from([*PLANS, "uninstall", "reload", "alias"]), max_size=12)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A folder with the module to patch and one that takes names from it."""
    path = tmp_path_factory.mktemp("modules")
    (path / "restored.py").write_text(SOURCE)
    (path / "alias.py").write_text("from restored import free, Trainer\n")
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))
    for name in ("restored", "alias"):
        sys.modules.pop(name, None)


def holders(module):
    """Return the module and the classes that are its own."""
    return [module, module.Trainer, module.Base]


def names(module):
    """Return the names in each."""
    return [set(vars(holder)) for holder in holders(module)]


def original(value):
    """Return what lies below our wrappers."""
    inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return inspect.unwrap(inner, stop=lambda function: not is_patched(function)) if is_patched(inner) else inner


@settings(max_examples=150, deadline=None)
@given(ACTIONS)
def test_nothing_is_left(directory, actions):
    """Every name holds the object that its module made, and no name is there that was not."""
    module = importlib.import_module("restored")
    expected = names(module)
    classes = holders(module)[1:]
    for action in actions:
        if action == "uninstall":
            uninstall()
        elif action == "reload":
            importlib.reload(module)
            classes += holders(module)[1:]
        elif action == "alias":
            sys.modules.pop("alias", None)
            importlib.import_module("alias")
        else:
            install(read_text(HEAD.format(action) + PLANS[action]))
    wanted = [{name: original(value) for name, value in vars(holder).items()} for holder in holders(module)]
    uninstall()
    assert names(module) == expected
    for holder, values in zip(holders(module), wanted, strict=True):
        for name, value in values.items():
            if name in vars(holder):
                assert original(vars(holder)[name]) is value
    modules = [module, *([sys.modules["alias"]] if "alias" in sys.modules else [])]
    for holder in [*modules, *classes]:
        assert not [name for name, value in vars(holder).items() if is_patched(value)]
