"""max_seconds: a recording is cut at the next safe point, and its body goes on unrecorded."""

from __future__ import annotations

import inspect
import json
import pickle
import threading

import pytest
from terms_support import a_span, configure_fixture, jump_fixture, stops  # noqa: F401  # fixtures are used by name

from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current
from profwin.errors import SettingError


def elsewhere(function):
    """Call a function in another thread."""
    thread = threading.Thread(target=function, name="other")
    thread.start()
    thread.join()


def a_stage():
    """Pass a stage of another device, which is part of what is open here."""
    with training_stage("inner", devices="pretend:1"):
        pass


def a_window():
    """Pass a window."""
    with rollout_window(1, name="reward"):
        pass


SAFE_POINTS = {
    "span": a_span, "stage": a_stage, "window": a_window, "other thread": lambda: elsewhere(a_stage),
}  # fmt: skip
BLOCKS = {"window": rollout_window, "stage": lambda _, **more: training_stage("update", **more)}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("safe_point", SAFE_POINTS.values(), ids=SAFE_POINTS)
def test_cut_at_the_next_safe_point(configure, jump, block, safe_point):
    """Nothing happens before the limit; after it, whatever begins in this process ends the recording, not the body."""
    ended = configure()
    went_on = []
    with training_step(1):
        with block(1, max_seconds=10):
            (collection,) = current().owner.collections
            jump(9)
            safe_point()
            assert collection.state == "open"
            jump(2)
            assert collection.state == "open"
            safe_point()
            assert collection.state == "closed"
            went_on.append(1)
        with training_stage("later"):
            pass
    assert went_on == [1]
    assert ended("close", "reason")[0] == ("cut",)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize(("seconds", "reason"), [(9, "end"), (11, "cut")])
def test_its_own_end_is_a_safe_point(configure, jump, block, seconds, reason):
    """What is over its limit when it ends is recorded as cut, since it lacks nothing but was not to go on."""
    ended = configure()
    with training_step(1), block(1, max_seconds=10):
        jump(seconds)
    assert ended("close", "reason") == [(reason,)]


def test_the_manifest_says_cut(configure, jump):
    """The manifest has the reason, and the interval with it; the next step has its own limit."""
    ended = configure()
    for step in (1, 2):
        with rollout_window(step, max_seconds=10):
            if step == 1:
                jump(11)
                a_span()
        with training_stage("update"):
            pass
    assert ended("exit", "status") == [("ok",)] * 4
    steps = json.loads((ended.directory / "manifest.json").read_text())["steps"]
    assert [each["reason"] for each in steps["1"]["collections"]] == ["cut", "end"]
    assert [each["reason"] for each in steps["2"]["collections"]] == ["end", "end"]
    assert steps["1"]["collections"][0]["intervals"] == [{"what": "window", "name": "rollout", "occurrence": 1}]


@pytest.mark.parametrize(("limits", "cut"), [((None, 5), True), ((5, 20), True), ((20, 5), True), ((20, None), False)])
def test_the_earliest_limit_counts(configure, jump, limits, cut):
    """What joins brings its own limit: the recording that they share ends at the earlier one."""
    ended = configure()
    outer, inner = limits
    with training_step(1), training_stage("outer", max_seconds=outer), training_stage("inner", max_seconds=inner):
        jump(6)
        a_span()
        assert bool(current().owner.collections) is not cut
    assert ended("close", "reason") == [("cut" if cut else "end",)]


def test_a_step_is_cut_and_goes_on_with_its_next_stage(configure, jump):
    """With collect="step" the limit of a stage ends the recording; the step's next stage opens another segment."""
    ended = configure(collect="step")
    with training_step(1):
        with training_stage("first", max_seconds=10):
            jump(11)
            a_span()
            assert not current().owner.collections
        with training_stage("second"):
            assert len(current().owner.collections) == 1
    assert ended("close", "reason") == [("cut",), ("step",)]


def test_the_limit_of_a_stage_goes_with_it(configure, jump):
    """With collect="step" the limit of a stage that has ended does not cut what the step records after it."""
    ended = configure(collect="step")
    with training_step(1):
        with training_stage("first", max_seconds=10):
            pass
        jump(11)
        with training_stage("second"):
            a_span()
    assert ended("close", "reason") == [("step",)]
    assert ended("open", "name", "segment") == [("step", 1)]


def test_bound_to_its_thread_it_is_cut_there(configure, jump):
    """A thread-bound recording is not stopped by another thread's safe point, but by its own thread's next one."""
    ended = configure(thread_bound=True)
    with training_step(1), training_stage("update", max_seconds=10):
        jump(11)
        elsewhere(a_stage)
        assert stops == []
        a_span()
        assert stops == ["MainThread"]
    assert ended("close", "reason")[0] == ("cut",)
    assert "other" not in stops


@pytest.mark.parametrize("value", [0, -1, 0.0, float("nan"), float("inf"), True, "3", [1]])
def test_wrong_limits(value):
    """A limit that is no number above 0 is refused where the window or stage is made, on or off."""
    with pytest.raises(SettingError, match="max_seconds"):
        rollout_window(1, max_seconds=value)
    with pytest.raises(SettingError, match="max_seconds"):
        training_stage("update", max_seconds=value)


@training_stage("update", max_seconds=5)
def decorated(a, /, b: int = 2, *, c=None):
    """Train."""
    return a, b, c


@rollout_window(lambda step, **_: step, max_seconds=5)
def generated(step, *, size=3):
    """Generate."""
    return step, size


@pytest.mark.parametrize("function", [decorated, generated])
def test_decorated_functions_stay_what_they_are(function):
    """With a limit the signature, name and documentation stay, and pickling gives the same function."""
    assert inspect.isfunction(function)
    assert inspect.signature(function) == inspect.signature(function.__wrapped__)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__doc__


def test_the_limit_of_a_decorator_counts_for_each_call(configure, jump):
    """Each call has its limit anew, and what a window's or stage's object is pickled to has it too."""
    ended = configure()
    stage = pickle.loads(pickle.dumps(training_stage("copy", max_seconds=5)))
    with training_step(1):
        decorated(1)
        jump(6)
        decorated(1)
        with stage:
            jump(6)
    assert ended("close", "reason") == [("end",), ("end",), ("cut",)]
