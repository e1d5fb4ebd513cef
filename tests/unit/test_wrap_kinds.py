"""Everything that is callable without being a plain function: accepted, or refused with advice."""

from __future__ import annotations

import abc
import copy
import functools
import inspect
import sys
from types import FunctionType, MethodType

import pytest
import torch
from wrap_support import Region, events, run, switched

from profwin.wrap import name_of, wrap

RECORDED = ["open r", "close r"]


def stage(target):
    """Wrap as a training stage does."""
    return wrap(target, Region(), always=False)


def add(a, b=2):
    """Add."""
    return a + b


async def aadd(a, b=2):
    """Add later."""
    return a + b


def count(n):
    """Count."""
    yield from range(n)


class _Adder:
    """An object that is called."""

    def __init__(self, bias):
        self.bias = bias

    def __call__(self, a, *, b=2):
        return a + b + self.bias


class _Methods:
    """Every kind of method, each decorated in every order."""

    value = 10

    @stage
    @staticmethod
    def static_inside(x):
        return x

    @staticmethod
    @stage
    def static_outside(x):
        return x

    @stage
    @classmethod
    def class_inside(cls, x):
        return cls, x

    @classmethod
    @stage
    def class_outside(cls, x):
        return cls, x

    @stage
    def method(self, x):
        return self.value + x

    @stage
    async def amethod(self, x):
        return self.value + x

    partial = stage(functools.partialmethod(lambda self, a, b: (self.value, a, b), 1))

    @property
    @stage
    def getter(self):
        return self.value

    @stage
    @functools.lru_cache  # noqa: B019 - the object lives as long as the test
    def cached(self, x):
        return self.value + x


class _Sub(_Methods):
    """Inherits all of them."""

    value = 20

    def method(self, x):
        return super().method(x) + 1


@pytest.mark.parametrize("owner", [_Methods, _Sub])
@pytest.mark.parametrize("instance", [False, True])
def test_static_and_class_methods_in_either_order(owner, instance):
    """Static and class methods bind as undecorated, on classes and instances, and are recorded."""
    target = owner() if instance else owner
    for call, want in (
        (lambda: target.static_inside(5), 5),
        (lambda: target.static_outside(5), 5),
        (lambda: target.class_inside(5), (owner, 5)),
        (lambda: target.class_outside(x=5), (owner, 5)),
    ):
        with switched(True):
            assert call() == want
            assert events == RECORDED
    assert isinstance(vars(_Methods)["static_inside"], staticmethod)
    assert isinstance(vars(_Methods)["class_inside"], classmethod)


def test_methods_properties_and_partial_methods():
    """_Methods bind their object, super() works, a property's getter and a partialmethod are recorded."""
    with switched(True):
        assert _Methods().method(1) == 11
        assert run(_Methods().amethod(1)) == 11
        assert _Methods().partial(2) == (10, 1, 2)
        assert _Sub().getter == 20
        assert _Methods().cached(1) == 11
        assert events == RECORDED * 5
        events.clear()
        assert _Sub().method(1) == 22
        assert events == RECORDED
    assert str(inspect.signature(_Methods().partial)) == str(inspect.signature(lambda b: 0))


def test_abstract_methods_stay_abstract():
    """A decorated abstract method still keeps its class from being made."""

    class Base(abc.ABC):
        @stage
        @abc.abstractmethod
        def update(self): ...

    with pytest.raises(TypeError, match="abstract"):
        Base()


@pytest.mark.parametrize(
    ("target", "arguments", "result"),
    [
        (functools.partial(add, 1), (), 3),
        (functools.partial(functools.partial(add, 1), b=5), (), 6),
        (_Adder(100), (1,), 103),
        (functools.partial(_Adder(100), b=0), (1,), 101),
        (len, ([1, 2],), 2),
        (functools.lru_cache(add), (1,), 3),
        (functools.partial(_Methods.static_outside, 3), (), 3),
    ],
    ids=[
        "partial",
        "partial of partial",
        "object",
        "partial of object",
        "built-in",
        "lru_cache",
        "partial of static",
    ],
)
def test_other_callables_become_plain_functions(target, arguments, result):
    """Partials, callable objects and built-in functions become plain functions of the same signature."""
    made = stage(target)
    assert type(made) is FunctionType
    assert inspect.signature(made) == inspect.signature(target)
    with switched(True):
        assert made(*arguments) == result
        assert events[0] == "open r"
        assert events[-1] == "close r"


def test_kind_is_seen_through_partials_and_objects():
    """The wrapper is a coroutine or generator function if what is called in the end is one."""

    class Async:
        async def __call__(self):
            return 1

    assert inspect.iscoroutinefunction(stage(functools.partial(aadd, 1)))
    assert inspect.iscoroutinefunction(stage(Async()))
    assert inspect.isgeneratorfunction(stage(functools.partial(count, 3)))
    with switched(True):
        assert run(stage(functools.partial(aadd, 1))()) == 3
        assert run(stage(Async())()) == 1
        assert list(stage(functools.partial(count, 3))()) == [0, 1, 2]
        assert events == RECORDED * 3


@pytest.mark.skipif(sys.version_info < (3, 12), reason="inspect.markcoroutinefunction is new in Python 3.12")
def test_marked_coroutine_function_is_awaited_inside_the_region():
    """A plain function that is marked as a coroutine function is recorded until its awaitable ends."""
    made = stage(inspect.markcoroutinefunction(lambda: aadd(1)))
    assert inspect.iscoroutinefunction(made)
    with switched(True):
        assert run(made()) == 3


def test_names_and_documents():
    """Partials are named after their function and objects after their class; docs are theirs."""
    assert [name_of(x) for x in (add, functools.partial(add, 1), _Adder(1), _Methods().method, len)] == [
        "add",
        "add",
        "_Adder",
        "method",
        "len",
    ]
    assert name_of(vars(_Methods)["class_inside"]) == "class_inside"
    assert stage(functools.partial(add, 1)).__name__ == "add"
    assert stage(functools.partial(add, 1)).__doc__ == "Add."
    assert stage(_Adder(1)).__name__ == "_Adder"
    assert stage(_Adder(1)).__doc__ == "An object that is called."
    assert "bias" not in vars(stage(_Adder(1)))


def test_bound_method_stays_one_and_follows_a_deep_copy():
    """A decorated bound method put on its object acts on the copy after a deep copy, not on the original."""
    original = _Adder(1)
    original.call = stage(original.__call__)
    assert type(original.call) is MethodType
    assert original.call.__self__ is original
    copied = copy.deepcopy(original)
    copied.bias = 1000
    with switched(True):
        assert original.call(1) == 4
        assert copied.call(1) == 1003
        assert events == RECORDED * 2
    assert inspect.signature(original.call) == inspect.signature(original.__call__)


def test_deep_copies_of_decorated_things():
    """Objects, bound methods and decorated functions can be deep-copied and still record."""
    with switched(True):
        assert copy.deepcopy(_Methods()).method(1) == 11
        assert copy.deepcopy(_Methods().method)(1) == 11
        assert copy.deepcopy(stage(add))(1) == 3
        assert copy.copy(functools.partial(stage(add), 1))() == 3
        assert events == RECORDED * 4


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (_Methods, "is a class: decorate one of its methods"),
        (property(add), "put @property above"),
        (functools.cached_property(add), "put @property above"),
        (classmethod(property(add)), "put @property above"),
        (torch.nn.Linear(1, 1), r"decorate its class's forward, or pass module\.forward"),
        (5, "is not callable"),
        (None, "is not callable"),
    ],
    ids=["class", "property", "cached_property", "classmethod of property", "module", "number", "None"],
)
def test_what_cannot_be_wrapped_is_refused_with_advice(target, advice):
    """Classes, properties, torch modules and what is not callable raise a TypeError that says what to do."""
    with pytest.raises(TypeError, match=advice):
        stage(target)


def test_forward_of_a_module():
    """A module's forward can be decorated in its class and on the instance; its parameters stay its own."""

    class Layer(torch.nn.Linear):
        forward = stage(torch.nn.Linear.forward)

    with switched(True):
        Layer(2, 3)(torch.ones(1, 2))
        module = torch.nn.Linear(2, 3)
        module.forward = stage(module.forward)
        module(torch.ones(1, 2))
        copied = copy.deepcopy(module)
        torch.nn.init.zeros_(copied.weight)
        torch.nn.init.zeros_(copied.bias)
        assert copied(torch.ones(1, 2)).abs().sum() == 0
        assert events == RECORDED * 3
    assert list(module.state_dict()) == ["weight", "bias"]
