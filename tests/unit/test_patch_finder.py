"""The finder: hooks that fire when modules have been loaded, and everything that stays as it is."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import logging
import pkgutil
import sys
import zipfile

import pytest

from profwin.errors import PlanError
from profwin.patch.finder import FINDER, Finder

BODY = "LOADER, SPEC_LOADER = __loader__, __spec__.loader\nVALUE = 1\n"


@pytest.fixture
def finder():
    """Give a finder of the test's own, that is gone afterwards."""
    finder = Finder()
    yield finder
    finder.unwatch()
    assert finder not in sys.meta_path


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Give a directory on ``sys.path`` with modules whose names no other test has."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    (tmp_path / "finder_one.py").write_text(BODY)
    (tmp_path / "finder_package").mkdir()
    (tmp_path / "finder_package" / "__init__.py").write_text("from finder_package.child import g\n" + BODY)
    (tmp_path / "finder_package" / "child.py").write_text("def g():\n    return 'old'\n" + BODY)
    (tmp_path / "finder_space").mkdir()
    (tmp_path / "finder_space" / "inner.py").write_text(BODY)
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("finder_"):
            del sys.modules[name]


def test_after_the_body(finder, place):
    """A hook gets the module when its body has run, once, and sees the loader that the module would have without it."""
    seen = []
    finder.watch(["finder_one"], lambda module: seen.append((module, module.VALUE)))
    assert seen == []
    module = importlib.import_module("finder_one")
    importlib.import_module("finder_one")
    assert seen == [(module, 1)]
    loaders = [module.LOADER, module.SPEC_LOADER, module.__loader__, module.__spec__.loader]
    assert all(type(loader) is importlib.machinery.SourceFileLoader for loader in loaders)
    assert len(set(map(id, loaders))) == 1


def test_reload(finder, place):
    """Loading a module again calls the hook again."""
    seen = []
    finder.watch(["finder_one"], seen.append)
    module = importlib.import_module("finder_one")
    assert importlib.reload(module) is module
    assert seen == [module, module]
    assert type(module.__spec__.loader) is importlib.machinery.SourceFileLoader


def test_loaded_already(finder, place):
    """A module that is there already gets the hook at once; one that is not, nothing."""
    module = importlib.import_module("finder_one")
    seen = []
    finder.watch(["finder_one", "finder_absent"], seen.append)
    assert seen == [module]
    with pytest.raises(ModuleNotFoundError, match="finder_absent"):
        importlib.import_module("finder_absent")


def test_inside_of_a_package(finder, place):
    """A child's hook runs before its package goes on, so what the package binds from it is the new one."""
    seen = []

    def hook(module):
        seen.append(module.__name__)
        if module.__name__ == "finder_package.child":
            module.g = lambda: "new"

    finder.watch(["finder_package", "finder_package.child"], hook)
    package = importlib.import_module("finder_package")
    assert seen == ["finder_package.child", "finder_package"]
    assert package.g() == "new"


def test_namespace_package(finder, place):
    """A namespace package has no code: only the modules in it have hooks."""
    seen = []
    finder.watch(["finder_space", "finder_space.inner"], seen.append)
    inner = importlib.import_module("finder_space.inner")
    assert seen == [inner]


def test_errors_of_hooks(finder, place, caplog):
    """What a hook raises is logged, the next hook runs, and the import stands; profwin's own errors pass."""
    seen = []

    def broken(module):
        raise RuntimeError("of the hook")

    finder.watch(["finder_one"], broken)
    finder.watch(["finder_one"], seen.append)
    with caplog.at_level(logging.WARNING, logger="profwin"):
        assert importlib.import_module("finder_one").VALUE == 1
    assert seen == [sys.modules["finder_one"]]
    assert [record.getMessage() for record in caplog.records] == [
        "profwin: finder_one is not patched, the program goes on: RuntimeError: of the hook"
    ]

    def strict(module):
        raise PlanError("p", "", "v", "does not fit", "correct it")

    finder.watch(["finder_package.child"], strict)
    for _again in range(2):
        with pytest.raises(PlanError, match="does not fit"):
            importlib.import_module("finder_package")
    assert "finder_package" not in sys.modules


def test_module_that_fails(finder, place):
    """A module whose body raises does so as ever, without a hook; when it works, the hook is called."""
    seen = []
    finder.watch(["finder_fails"], seen.append)
    (place / "finder_fails.py").write_text("1 / 0\n")
    importlib.invalidate_caches()
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("finder_fails")
    assert seen == []
    (place / "finder_fails.py").write_text("VALUE = 'works now'\n")
    assert importlib.import_module("finder_fails").VALUE == "works now"
    assert seen == [sys.modules["finder_fails"]]


def test_unwatch(finder, place):
    """A hook that was taken away is not called, others are; without any, the finder is gone, also for a reload."""
    seen, other = [], []
    finder.watch(["finder_one", "finder_package"], seen.append)
    finder.watch(["finder_one"], other.append)
    append = seen.append
    finder.unwatch(append)
    module = importlib.import_module("finder_one")
    importlib.import_module("finder_package")
    assert (seen, other) == ([], [module])
    finder.unwatch(other.append)
    assert finder not in sys.meta_path
    importlib.reload(module)
    assert other == [module]


def test_replaced_module(finder, place):
    """A module that puts another object in its place: the hook gets what importers get."""
    (place / "finder_replaced.py").write_text("import sys, types\nsys.modules[__name__] = types.SimpleNamespace(X=1)\n")
    importlib.invalidate_caches()
    seen = []
    finder.watch(["finder_replaced"], seen.append)
    assert seen == []
    assert importlib.import_module("finder_replaced").X == 1
    assert seen == [sys.modules["finder_replaced"]]


@pytest.mark.parametrize("first", [True, False], ids=["before ours", "behind ours"])
def test_other_finders(finder, place, first):
    """A finder that asks all finders itself, as other tools' do, gets along with ours, and the hook is called once."""

    class Asking:
        inside = False

        def find_spec(self, name, path=None, target=None):
            if self.inside or not name.startswith("finder_"):
                return None
            self.inside = True
            try:
                return importlib.util.find_spec(name)
            finally:
                self.inside = False

    seen = []
    other = Asking()
    finder.watch(["finder_one"], seen.append)
    sys.meta_path.insert(0 if first else 1, other)
    try:
        module = importlib.import_module("finder_one")
    finally:
        sys.meta_path.remove(other)
    assert seen == [module]


def test_wrapt(finder, place):
    """Hooks of wrapt on the same module, set before or after ours, are called, and so are ours."""
    wrapt = pytest.importorskip("wrapt", reason="wrapt is not installed")
    seen = []
    wrapt.register_post_import_hook(lambda module: seen.append("wrapt"), "finder_one")
    finder.watch(["finder_one", "finder_package"], lambda module: seen.append("ours"))
    wrapt.register_post_import_hook(lambda module: seen.append("wrapt"), "finder_package")
    importlib.import_module("finder_one")
    importlib.import_module("finder_package")
    assert sorted(seen) == ["ours", "ours", "wrapt", "wrapt"]


def test_loader_passes_everything_through(finder, place):
    """Who looks at the spec before the import finds the loader's attributes, and its class by isinstance."""
    finder.watch(["finder_package"], len)
    spec = importlib.util.find_spec("finder_package")
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    assert spec.loader.path == spec.origin
    assert spec.loader.get_source("finder_package").endswith(BODY)
    assert spec.loader.get_code("finder_package").co_filename == spec.origin
    assert spec.loader.is_package("finder_package")
    assert pkgutil.get_data("finder_package", "child.py").endswith(BODY.encode())
    with pytest.raises(AttributeError):
        getattr(spec.loader, "nothing" + "_of_the_kind")


@pytest.mark.parametrize("name", ["_bisect", "this_is_zipped", "colorsys"])
def test_kinds_of_loaders(finder, place, name, monkeypatch):
    """Modules in C, in zip files and of the standard library are followed like any other."""
    with zipfile.ZipFile(place / "packed.zip", "w") as packed:
        packed.writestr("this_is_zipped.py", BODY)
    monkeypatch.syspath_prepend(str(place / "packed.zip"))
    monkeypatch.delitem(sys.modules, name, raising=False)
    seen = []
    finder.watch([name], seen.append)
    module = importlib.import_module(name)
    assert seen == [module]
    assert type(module.__spec__.loader).__name__ != "_Loader"
    monkeypatch.delitem(sys.modules, name)


def test_lazy_loader(finder, place):
    """A module that the standard library loads lazily gets its hook when it is really loaded."""
    seen = []
    finder.watch(["finder_one"], lambda module: seen.append(module.VALUE))
    spec = importlib.util.find_spec("finder_one")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = sys.modules["finder_one"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert seen == []
    assert module.VALUE == 1
    assert seen == [1]


def test_one_copy():
    """Boot's name and the package's name of the finder are the same module."""
    import profwin.patch.boot.profwin_finder as by_package

    assert sys.modules["profwin_finder"] is by_package
    assert by_package.FINDER is FINDER
