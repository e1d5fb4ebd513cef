"""Looking up targets: every kind of object that a module may hold, and what is said where a name leads nowhere."""

from __future__ import annotations

import functools
import math
import sys
from types import ModuleType

import pytest

from profwin import PlanError
from profwin.patch.lookup import resolve

SOURCE = """
import functools, json, collections
from math import sqrt
from os.path import join
from json import JSONDecoder

def plain(): ...
async def waiting(): ...
def yielding(): yield
async def streaming(): yield
half = functools.partial(plain)
bound = collections.Counter().most_common
number = 3

class Slotted:
    __slots__ = ("inside",)

class Base:
    declared: int
    constant = 1
    def __init__(self): self.set_here = 1
    def method(self): ...
    def replaced(self): ...
    async def asynchronous(self): ...
    @staticmethod
    def static(): ...
    @classmethod
    def made(cls): ...
    @property
    def read(self): raise RuntimeError("a property was read")
    @functools.cached_property
    def once(self): raise RuntimeError("a property was read")
    class Inner:
        def method(self): ...

class Sub(Base):
    def replaced(self): ...

class Mapping(dict):
    pass

Alias = Base

instance = Base()
"""


class Loud:
    """An object that must not be asked for anything."""

    def __getattribute__(self, name):
        raise RuntimeError(f"{name} was asked for")


class Lazy(ModuleType):
    """A module like those of transformers."""

    def __getattr__(self, name):
        raise RuntimeError(f"{name} was asked for")


@pytest.fixture
def module():
    """Return a module with one of everything."""
    made = ModuleType("made_for_lookup")
    exec(compile(SOURCE, "made_for_lookup.py", "exec"), made.__dict__)
    made.loud = Loud()
    return made


def one(module, qualname):
    """Return the only match of a name."""
    (match,) = resolve(module, f"{module.__name__}:{qualname}")
    return match


def refused(module, qualname):
    """Return the error of a name."""
    with pytest.raises(PlanError) as caught:
        resolve(module, f"{module.__name__}:{qualname}", plan="mine", place="patch[0].target")
    assert (caught.value.plan, caught.value.place) == ("mine", "patch[0].target")
    assert caught.value.value == f"{module.__name__}:{qualname}"
    return caught.value


@pytest.mark.parametrize(
    ("qualname", "kind"),
    [
        ("plain", "function"),
        ("waiting", "coroutine function"),
        ("yielding", "generator function"),
        ("streaming", "async generator function"),
        ("half", "callable object"),
        ("sqrt", "C function"),
        ("join", "function"),
        ("bound", "bound method"),
        ("Base.method", "function"),
        ("Base.asynchronous", "coroutine function"),
        ("Base.static", "static method"),
        ("Base.made", "class method"),
        ("Base.Inner.method", "function"),
        ("Base.__init__", "function"),
    ],
)
def test_what_can_be_patched_is_found_as_it_lies(module, qualname, kind):
    """A name that is there gives its holder, the object as the holder's `__dict__` has it, and its kind."""
    match = one(module, qualname)
    assert match.raw is vars(match.holder)[match.name]
    assert (match.kind, match.inherited, match.remote) == (kind, False, False)
    assert match.target == f"made_for_lookup:{qualname}"
    assert callable(match.function)


def test_an_inherited_method_is_set_on_the_class_that_was_named(module):
    """What a class only inherits is found on it, and said to be inherited."""
    match = one(module, "Sub.method")
    assert (match.holder, match.owner, match.inherited) == (module.Sub, module.Base, True)
    assert match.raw is module.Base.method
    assert not one(module, "Sub.replaced").inherited


@pytest.mark.parametrize(
    ("qualname", "problem", "remedy"),
    [
        ("Base.read", "is a property", "function"),
        ("Base.once", "is a property", "function"),
        ("Base", "class", "methods"),
        ("Slotted.inside", "attribute of instances", "method"),
        ("instance.method", "attribute of an instance", "made_for_lookup:Base."),
        ("loud.method", "attribute of an instance", "Loud."),
        ("number", "type int", "method"),
        ("loud", "type Loud", "method"),
        ("Base.constant", "type int", "method"),
        ("json.dumps", "module", "json:"),
        ("json", "module", "json:"),
        ("plain.inner", "function", "module or class"),
        ("Mapping.update", "C function", "Python method"),
        ("Sub.__repr__", "C function", "Python method"),
    ],
)
def test_what_cannot_be_patched_is_refused(module, qualname, problem, remedy):
    """What is no function or method is refused with what it is and what to name instead; nothing of it is run."""
    error = refused(module, qualname)
    assert problem in error.problem
    assert remedy in error.remedy
    assert not error.missing


def test_types_written_in_c_are_refused():
    """A method of a type that nothing can be set on is refused."""
    import datetime as dt

    assert "written in C" in refused(dt, "datetime.now").problem


@pytest.mark.parametrize(
    ("qualname", "remedy"),
    [
        ("plian", "'plain'"),
        ("Bass.method", "'Base'"),
        ("Sub.methd", "'method'"),
        ("base.method", "'Base'"),
        ("Base.set_here", "instances"),
        ("Base.declared", "instances"),
        ("Slotted.zzz", "inside"),
        ("*.zzz", "more"),
        ("*.methdo", "'method'"),
        ("Zz*.method", "nothing"),
        ("*.read", "nothing"),
        ("jo*", "nothing"),
        ("JSOND*.decode", "nothing"),
    ],
)
def test_a_missing_name_is_told_the_nearest(module, qualname, remedy):
    """A name that does not exist is said to be missing, beside the nearest one that does, or those there are."""
    error = refused(module, qualname)
    assert error.missing
    assert remedy in f"{error.problem} {error.remedy}"


@pytest.mark.parametrize(
    ("qualname", "found"),
    [
        ("pla*", ["plain"]),
        ("*ing", ["waiting", "yielding", "streaming"]),
        ("Base.*", ["Base.method", "Base.replaced", "Base.asynchronous", "Base.static", "Base.made"]),
        ("*.replaced", ["Base.replaced", "Sub.replaced"]),
        ("S?b.*", ["Sub.replaced"]),
        ("Base.__in*", ["Base.__init__"]),
        ("Base.I*.method", ["Base.Inner.method"]),
        ("B*.Inner.method", ["Base.Inner.method"]),
    ],
)
def test_wildcards_match_functions_that_the_module_defines(module, qualname, found):
    """Wildcards match functions and methods where they are defined: no import, nothing inherited, no property."""
    matches = resolve(module, f"made_for_lookup:{qualname}")
    assert [match.target for match in matches] == [f"made_for_lookup:{name}" for name in found]
    assert not any(match.inherited for match in matches)


def test_a_lazy_module_is_not_asked(module):
    """A module that makes its names on demand is left alone; the target is told where the name is at home."""
    lazy = Lazy("lazy")
    lazy._class_to_module = {"Trainer": "trainer"}
    error = refused(lazy, "Trainer.train")
    assert (error.missing, error.remedy) == (True, "write lazy.trainer:Trainer")
    assert "below lazy" in refused(lazy, "Other.train").remedy
    lazy.Base = module.Base  # loaded by now; when the module loads, it is not there
    lazy.plain = module.plain
    assert refused(lazy, "Base.method").remedy == "write made_for_lookup:Base"
    assert refused(lazy, "plain").remedy == "write made_for_lookup:plain"
    for name in ("own", "*wn"):
        lazy.own = lambda: None
        lazy.own.__module__ = "lazy"
        assert one(lazy, name).raw is lazy.own


def test_a_proxy_that_pretends_a_class_is_not_asked(module):
    """An object that answers for its class is looked at by its type alone."""

    class Pretender:
        @property
        def __class__(self):
            raise RuntimeError("the class was asked for")

    module.pretender = Pretender()
    assert "instance" in refused(module, "pretender.x").problem
    assert resolve(module, "made_for_lookup:*.replaced")


def test_names_are_shown_escaped(module):
    """A name of the module that no terminal should get is not proposed."""
    vars(module)["plai\x1b[2J"] = math.sqrt
    assert str(refused(module, "plai_")).isprintable()


def test_the_class_that_ray_ships_is_found():
    """A class that is decorated with `ray.remote` is looked through to the one that Ray ships; a task is refused."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    module = ModuleType("made_for_ray")

    class Parent:
        def inherited(self): ...

    class Actor(Parent):
        def method(self): ...

        @staticmethod
        def static(): ...

    module.Actor = ray.remote(Actor)
    module.task = ray.remote(functools.wraps(refused)(lambda: None))
    match = one(module, "Actor.method")
    assert match.remote
    assert match.holder is module.Actor.__ray_metadata__.modified_class
    assert match.target == "made_for_ray:Actor.method"
    assert "class" in refused(module, "Actor").problem
    assert "task" in refused(module, "task").problem
    assert "'method'" in refused(module, "Actor.methd").remedy
    assert [each.name for each in resolve(module, "made_for_ray:Actor.*")] == ["method", "static"]


def test_it_is_not_ray_that_makes_an_object_an_actor():
    """Where Ray is not loaded, no object is asked whether it is an actor's class."""
    module = ModuleType("made_without_ray")
    module.loud = Loud()
    before = set(sys.modules)
    assert "type Loud" in refused(module, "loud").problem
    assert "ray" not in set(sys.modules) - before
