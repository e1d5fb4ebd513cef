"""Installing plans and taking them back: everything is as it was, and nothing is ever patched in part."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import logging
import math
import os
import pickle
import re
import sys

import pytest
from patch_support import installed, patch, plan_of, standing

import profwin
from profwin.errors import PlanError
from profwin.patch import install, uninstall
from profwin.patch.finder import FINDER
from profwin.patch.plan import dump_plans

STEP = '"self.step"'
EVERY = "".join(
    patch(f"mod:{name}", "stage")
    for name in (
        "Trainer.update", "Trainer.decorated", "Trainer.sync", "Trainer.batches", "Trainer.loss", "Trainer.make",
        "Trainer.inherited", "free",
    )
)  # fmt: skip


@pytest.fixture
def stand(tmp_path):
    """Give modules to patch."""
    with standing(tmp_path) as stand:
        yield stand


def contents(module):
    """Return everything that a module and its classes hold, by identity."""
    holders = [module, *(value for value in vars(module).values() if isinstance(value, type))]
    return [{key: id(value) for key, value in vars(holder).items()} for holder in holders]


def test_everything_is_put_back(stand):
    """Entries are the very same objects again, and what was made for an inherited method is gone."""
    module = stand.load("mod")
    before = contents(module)
    with installed(EVERY, strict=True):
        assert contents(module) != before
        assert "inherited" in vars(module.Trainer)
        assert not hasattr(module.Base.inherited, "__wrapped__")
    assert contents(module) == before


def test_a_patched_function_is_still_itself(stand):
    """Kind, signature, names, attributes, pickle, copies and source are those of the original."""
    module = stand.load("mod")
    names = ("update", "decorated", "sync", "batches", "loss", "make", "inherited")
    before = {name: inspect.getattr_static(module.Trainer, name) for name in names}
    with installed(EVERY, strict=True):
        for name, old in before.items():
            new = inspect.getattr_static(module.Trainer, name)
            assert type(new) is type(old)
            if isinstance(old, staticmethod | classmethod):
                new, old = new.__func__, old.__func__
            assert new is not old
            for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
                assert getattr(new, attribute) == getattr(old, attribute)
            assert {**vars(new), **vars(old), "__wrapped__": old} == vars(new)
            assert inspect.signature(new) == inspect.signature(old)
            assert inspect.iscoroutinefunction(new) == inspect.iscoroutinefunction(old)
            assert inspect.isgeneratorfunction(new) == inspect.isgeneratorfunction(old)
            assert inspect.getsource(new) == inspect.getsource(old)
        for thing in (module.free, module.Trainer.update, module.Trainer().update, module.Trainer.make):
            assert pickle.loads(pickle.dumps(thing)).__func__ is thing.__func__ if inspect.ismethod(thing) else True
            assert copy.deepcopy(thing).__qualname__ == thing.__qualname__
        assert pickle.loads(pickle.dumps(module.free)) is module.free
        assert copy.copy(module.free) is module.free


def test_patched_once_however_often_it_is_installed(stand):
    """A second install of the plan, and another one over the same inherited method, wrap nothing again."""
    module = stand.load("mod")
    install(plan_of(EVERY), strict=True)
    first = contents(module)
    install(plan_of(EVERY), strict=True)
    install(plan_of(patch("mod:Trainer.?nherited", "span"), "other"), strict=True)
    assert contents(module) == first
    uninstall()


def test_the_same_target_in_two_plans_is_refused(stand):
    """Two roles for one target are an error, and the first plan stays as it is."""
    module = stand.load("mod")
    install(plan_of(patch("mod:free", "stage")))
    first = contents(module)
    with pytest.raises(PlanError, match="mod:free"):
        install(plan_of(patch("mod:free", "span"), "other"))
    assert contents(module) == first


def test_a_module_that_comes_later(stand):
    """It is patched when it has loaded, again when it is reloaded, and not any more after uninstall."""
    stand.write("mod")
    with installed(EVERY, strict=True):
        assert "mod" not in sys.modules
        module = importlib.import_module("mod")
        first = module.free
        assert hasattr(first, "__wrapped__")
        assert importlib.reload(module) is module
        assert hasattr(module.free, "__wrapped__")
        assert module.free is not first
        assert not hasattr(module.free.__wrapped__, "__wrapped__")
    assert not hasattr(module.free, "__wrapped__")
    assert not hasattr(importlib.reload(module).free, "__wrapped__")
    assert FINDER not in sys.meta_path


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (patch("mod:Trainer.updat", "stage"), "update"),
        (patch("mod:Trainer.size", "stage"), "property"),
        (patch("mod:Trainer.step", "stage"), "instances"),
        (patch("mod:Trainer", "stage"), "class"),
        (patch("mod:missing", "stage"), "missing"),
        (patch("mod:Trainer.generate", "window", step='"promts.0"'), "patch[1].step"),
        (patch("mod:Trainer.batches", "silence"), "generator"),
        (patch("mod:Trainer.*pdate", "stage") + patch("mod:Trainer.up*", "span"), "is what patch[1] matches too"),
        (patch("builtins:dict.get", "stage"), "C"),
        ('[[package]]\nname = "pytest"\nversions = "<1"\n', "pytest"),
    ],
)
def test_a_plan_that_does_not_fit_is_taken_back_whole(stand, caplog, bad, words):
    """Nothing of it stays; it is said once, profwin is off for children too; under strict it is raised."""
    module = stand.load("mod")
    before = contents(module)
    text = patch("mod:free", "stage") + bad if "package" not in bad else bad + patch("mod:free", "stage")
    stand.configure()
    os.environ["PROFWIN_STEPS"] = "2"
    with installed(text), caplog.at_level(logging.WARNING, "profwin"):
        assert contents(module) == before
        (warning,) = caplog.messages
        assert words in warning
        assert "not profiled" in warning
        assert "PROFWIN_STEPS" not in os.environ
        assert profwin.environment() == {}
        with profwin.training_step(2):
            module.free(1)
    (finding,) = stand.records("finding")
    assert finding["code"] == "plan-target"
    with pytest.raises(PlanError, match=re.escape(words)):
        install(plan_of(text), strict=True)
    assert contents(module) == before


def test_a_target_that_is_missing_in_a_later_module(stand, caplog):
    """The plan is taken out of the modules that came before it, and the import goes on."""
    module = stand.load("mod")
    before = contents(module)
    stand.write("later")
    with installed(EVERY + patch("later:nothing", "stage")), caplog.at_level(logging.WARNING, "profwin"):
        assert contents(module) != before
        assert importlib.import_module("later").free(1)
        assert contents(module) == before
        assert len(caplog.messages) == 1
    del sys.modules["later"]
    with installed(EVERY + patch("later:nothing", "stage"), strict=True), pytest.raises(PlanError, match="nothing"):
        importlib.import_module("later")
    assert contents(module) == before


def test_an_optional_target_may_be_missing(stand, caplog):
    """It is a note and the rest is patched; what is there and cannot be patched is an error all the same."""
    module = stand.load("mod")
    with caplog.at_level(logging.INFO, "profwin"):
        with installed(patch("mod:free", "stage") + patch("mod:Trainer.updat", "stage", optional="true"), strict=True):
            assert hasattr(module.free, "__wrapped__")
            assert "updat" in caplog.text
            stand.configure()
            with profwin.training_step(2):
                module.free(1)
            assert [record["code"] for record in stand.records("finding")] == ["plan-note"]
        with pytest.raises(PlanError, match="property"):
            install(plan_of(patch("mod:Trainer.size", "stage", optional="true")), strict=True)


def test_names_bound_before_the_patch_are_named(stand, caplog):
    """`from mod import free` before it: a note; after it, the name is put back by uninstall."""
    stand.load("mod")
    early = stand.load("early", "from mod import free as alias\n")
    with caplog.at_level(logging.WARNING, "profwin"), installed(patch("mod:free", "stage"), strict=True):
        assert "early.alias" in caplog.text
        late = stand.load("late", "from mod import free\n")
        assert late.free is sys.modules["mod"].free is not early.alias
        held = late.free
    assert late.free is sys.modules["mod"].free is early.alias
    stand.configure()
    with profwin.training_step(2):
        assert held(1) == ("free", 1, 1)  # whoever holds a wrapper calls through
    assert stand.entered() == []


def test_what_is_no_python_function(stand):
    """C functions and callable objects of a module get a proxy that is one of their kind, and come back."""
    module = stand.load("own", "import functools\n@functools.lru_cache\ndef cached(x):\n    return x\n")
    sqrt, cached = math.sqrt, module.cached
    with installed(patch("math:sqrt", "stage", name='"root"') + patch("own:cached", "stage"), strict=True):
        assert math.sqrt is not sqrt
        assert type(sqrt) is math.sqrt.__class__
        assert pickle.loads(pickle.dumps(math.sqrt)) is math.sqrt
        assert copy.deepcopy(math.sqrt)(9) == 3
        stand.configure()
        with profwin.training_step(2):
            assert math.sqrt(4) == 2
            assert module.cached(3) == module.cached(3) == 3
            assert module.cached.cache_info().hits == 1
        install(plan_of(patch("math:sq*t", "span"), "again"))
        assert not isinstance(math.sqrt.__wrapped__, type(math.sqrt))
    assert math.sqrt is sqrt
    assert module.cached is cached
    assert stand.entered() == [("stage", "root"), ("stage", "cached"), ("stage", "cached")]


def test_what_somebody_else_put_there_since_stays(stand):
    """Uninstall does not take away a wrapper of another tool that lies around ours; ours calls through."""
    module = stand.load("mod")
    with installed(patch("mod:Trainer.update", "stage")):
        ours = module.Trainer.update
        theirs = module.Trainer.update = lambda self, batch: ours(self, batch)
    assert module.Trainer.update is theirs
    stand.configure()
    with profwin.training_step(2):
        assert module.Trainer().update(1) == ("updated", 1)
    assert stand.entered() == []


def test_plans_of_the_environment(stand, monkeypatch):
    """module_loaded reads them once and patches the module that it is given; a broken one turns profwin off."""
    from profwin.patch import installation

    module = stand.load("mod")
    monkeypatch.setenv("PROFWIN_PATCH_PLAN", dump_plans([plan_of(patch("mod:free", "stage"))]))
    monkeypatch.setattr(installation, "_read", None)
    installation.module_loaded(json)
    assert not hasattr(module.free, "__wrapped__")
    installation.module_loaded(module)
    wrapper = module.free
    assert hasattr(wrapper, "__wrapped__")
    installation.module_loaded(module)
    assert module.free is wrapper
    uninstall()
    monkeypatch.setenv("PROFWIN_PATCH_PLAN", "[{}]")
    installation.module_loaded(module)
    assert "PROFWIN_PATCH_PLAN" not in os.environ


def test_functions_of_main(stand, monkeypatch):
    """What `__main__` defines is patched as its `def` ends, in classes too; wildcards stop at a dot."""
    from profwin.patch import installation

    module = stand.load("mod")
    text = patch("__main__:train", "stage") + patch("prog:Trainer.*", "stage") + patch("prog:Late.size", "span")
    monkeypatch.setenv("PROFWIN_STRICT", "1")
    monkeypatch.setenv("PROFWIN_PATCH_PLAN", dump_plans([plan_of(text)]))
    monkeypatch.setattr(installation, "_read", None)
    defined = installation.function_defined
    assert defined("__main__", "train", module.free).__wrapped__ is module.free
    assert defined("prog", "other", module.free) is module.free
    assert defined("prog", "Trainer.Inner.free", module.free) is module.free
    method = defined("prog", "Trainer.loss", staticmethod(module.free))
    assert isinstance(method, staticmethod)
    assert defined("prog", "Trainer.loss", method) is method
    size = property(module.free)
    assert defined("prog", "Trainer.size", size) is size
    with pytest.raises(PlanError, match="property"):
        defined("prog", "Late.size", size)


def test_two_roles_in_main(stand, monkeypatch):
    """A function of ``__main__`` that two patterns match is refused as elsewhere; the message names both."""
    from profwin.patch import installation

    function = stand.load("mod").free
    text = patch("__main__:tra*", "stage") + patch("__main__:*ain", "span")
    monkeypatch.setenv("PROFWIN_STRICT", "1")
    monkeypatch.setenv("PROFWIN_PATCH_PLAN", dump_plans([plan_of(text)]))
    monkeypatch.setattr(installation, "_read", None)
    with pytest.raises(PlanError, match=r"patch\[1\]='__main__:train' is what patch\[0\] matches too"):
        installation.function_defined("__main__", "train", function)
