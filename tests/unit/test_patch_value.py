"""Paths of a plan: what they lead to in a call, and how it is said where they lead nowhere."""

from __future__ import annotations

import functools
import pickle
import sys
from collections import OrderedDict
from types import ModuleType, SimpleNamespace

import pytest

from profwin.patch.plan import Condition, Value
from profwin.patch.value import MISSING, Check, Parameters, PathError, Reader, plain


def call(self, batch, step=3, *rest, scale=1.5, **others):
    """Be the target."""


def read(path, *args, target=call, result=MISSING, **kwargs):
    """Return what a path leads to in a call."""
    others = {name.rstrip("_"): kwargs.pop(name) for name in list(kwargs) if name.endswith("_")}
    reader = Reader(Value(path, **others), Parameters(target))
    value = reader(args, kwargs, result)
    again = pickle.loads(pickle.dumps(reader))
    assert again(args, kwargs, result) == value
    return value


def test_arguments_by_name_however_they_are_passed():
    """A parameter is found by position, by keyword, by its default, and in what is left over."""
    assert read("self", 1, 2) == 1
    assert read("batch", 1, batch=2) == 2
    assert read("step", 1, 2) == 3
    assert read("step", 1, 2, 7) == 7
    assert read("step", 1, 2, step=8) == 8
    assert read("scale", 1, 2) == 1.5
    assert read("scale", 1, 2, scale=2) == 2
    assert read("rest.1", 1, 2, 3, 4, 5) == 5
    assert read("others", 1, 2, scale=2, extra=6) == {"extra": 6}
    assert read("extra", 1, 2, extra=6) == 6


def test_an_argument_that_is_not_passed_is_said():
    """Without a default there is nothing to be found."""
    with pytest.raises(PathError, match="the call has no 'batch'"):
        read("batch", 1)
    with pytest.raises(PathError, match="the call has no 'extra'"):
        read("extra", 1, 2)


def test_a_parameter_that_does_not_exist_is_said_when_compiling():
    """The message lists those that do exist; a target that takes any keyword may have it."""
    with pytest.raises(PathError, match="no parameter 'bach', only batch"):
        Reader(Value("bach"), Parameters(lambda batch: batch))
    Reader(Value("bach"), Parameters(lambda **others: others))
    Reader(Value("bach"), Parameters(max))


def test_the_signature_is_that_of_what_is_decorated():
    """functools.wraps hides a target behind *args: its own parameters count."""

    @functools.wraps(call)
    def around(*args, **kwargs):
        return call(*args, **kwargs)

    assert read("step", 1, 2, 9, target=around) == 9


def test_parts_are_attributes_keys_and_indices():
    """Mappings are read by key first, sequences by number, everything else by attribute."""
    owner = SimpleNamespace(state=SimpleNamespace(steps=[4, 5]), table={"a": {"0": "text"}, 1: "one"})
    assert read("self.state.steps.1", owner, 0) == 5
    assert read("self.table.a.0", owner, 0) == "text"
    assert read("self.table.1", owner, 0) == "one"

    class Output(OrderedDict):
        shape = (2, 3)

    assert read("self.shape.0", Output(), 0) == 2
    assert read("self.shape", Output(shape=4), 0) == 4
    assert read("return.count", 1, 2, result={"count": 4}) == 4


@pytest.mark.parametrize("path", ["self.missing", "self.steps.9", "self.broken", "self.none.x"])
def test_a_path_that_leads_nowhere_is_said(path):
    """Whatever an attribute raises becomes one kind of error, which names the path and the type."""

    class Owner:
        steps = (1, 2)
        none = None

        @property
        def broken(self):
            raise RuntimeError("not ready")

    with pytest.raises(PathError, match=path.replace(".", r"\.")):
        read(path, Owner(), 0)


def test_plus_and_map():
    """A number is added; a map replaces by text, booleans and enums too, and what it lacks was not found."""
    assert read("step", 1, 2, plus_=1) == 4
    with pytest.raises(PathError, match="cannot be added"):
        read("self", None, 2, plus_=1)
    assert read("self", True, 0, map_=(("true", "stage"), ("false", "step"))) == "stage"
    assert read("self", 3, 0, map_=(("3", 9),)) == 9
    assert read("self", ["a", True, "c"], 0, map_=(("true", 1), ("a", 2))) == [2, 1]
    with pytest.raises(PathError, match="no entry in the map"):
        read("self", 4, 0, map_=(("3", 9),))


def test_prefix_default_and_conditions():
    """A prefix stands before each name; a default where nothing stands; without its conditions None is found."""
    assert read("self", ["a", "b"], 0, prefix_="pretend:") == ["pretend:a", "pretend:b"]
    assert read("self", 1, 0, prefix_="cuda:") == "cuda:1"
    for nothing in (None, [], ""):
        assert read("self", nothing, 0, default_=7, map_=(("None", 1),), prefix_="p") == 7
        assert read("self", nothing, 0, prefix_="p") is None
    assert read("self", 0, 0, default_=7) == 0
    assert read("self", 5, 0, when_=(Condition("batch"),), default_=7) is None
    assert read("self", 5, 1, when_=(Condition("batch"),)) == 5
    assert read("self", 5, 1, unless_=(Condition("batch"),)) is None


@pytest.mark.parametrize(
    ("among", "value", "held"),
    [
        (None, 1, True), (None, [], False), (None, None, False),
        ((1, "a"), 1, True), ((1, "a"), "a", True), ((1,), True, False), ((True,), True, True), ((2,), 1, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wanted", [True, False])
def test_conditions(among, value, held, wanted):
    """A condition is true, or among the values; True is not 1; `unless` turns it round."""
    check = Check(Condition("self", among), Parameters(call), wanted=wanted)
    assert pickle.loads(pickle.dumps(check))((value,), {}) is (held is wanted)


def test_a_condition_that_is_neither_true_nor_false_is_said():
    """What raises when it is asked, as arrays do, is a path error."""

    class Array:
        def __bool__(self):
            raise ValueError("ambiguous")

    with pytest.raises(PathError, match="ambiguous"):
        Check(Condition("self"), Parameters(call), wanted=True)((Array(),), {})


def test_containers_of_omegaconf_become_plain(monkeypatch):
    """A container is given as Python's own; anything else is left alone, and OmegaConf is never imported."""
    assert plain([1]) == [1]
    assert "omegaconf" not in sys.modules
    fake = ModuleType("omegaconf")
    fake.OmegaConf = SimpleNamespace(is_config=lambda x: x == "c", to_container=lambda x, resolve: [x, resolve])
    monkeypatch.setitem(sys.modules, "omegaconf", fake)
    assert plain("c") == ["c", True]
    assert plain("d") == "d"
