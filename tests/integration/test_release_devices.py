"""Devices that a window of this process needs no more are free at once, although the window goes on with others."""

from __future__ import annotations

import pytest
import torch
from core_support import Child, Evidence
from release_support import configure
from torch_support import names, traces

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current

TRAINER = """
for line in iter(hear, "end"):
    with training_step(1), training_stage(line, devices="pretend:" + line):
        pass
    say(line)
profwin.shutdown()
"""


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@pytest.fixture
def trainer(output):
    """Return a function that lets another process of the run go through a stage on a device, which waits for nobody."""
    configure(output, devices=("pretend:a", "pretend:b"), on_busy="skip")
    with Child(TRAINER, **profwin.environment()) as child:

        def train(device):
            child.say(device)
            assert child.hear() == device

        yield train
        child.say("end")
        status, _, errors = child.finish()
        assert status == 0, errors


def test_one_of_two_windows_ends(output, trainer):
    """The device of the window that ends is free at once; the other window goes on in a second segment."""
    first, second = (
        rollout_window(1, name="one", devices="pretend:a"),
        rollout_window(1, name="two", devices="pretend:b"),
    )
    first.open()
    second.open()
    assert current().owner.collections[0].keys == ("pretend-a", "pretend-b")
    trainer("a")
    first.close()
    assert second.recorded
    trainer("a")
    trainer("b")
    second.close()
    trainer("b")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("a", "busy"), ("b", "busy")]
    windows = evidence.collections(purpose="rollout")
    assert [(each["name"], each["segment"], each["devices"], each["reason"]) for each in windows] == [
        ("one", 1, ["pretend-a"], "split"), ("two", 1, ["pretend-b"], "end"),
    ]  # fmt: skip
    stage = evidence.collections(purpose="training")[0]
    assert windows[1]["t"] < stage["t"] < stage["end"] < windows[1]["end"]
    (join,) = evidence.of("join")
    assert join["id"] == evidence.of("enter", name="two")[0]["id"]


def test_the_window_that_came_first_goes_on(output, trainer):
    """Likewise where the later window ends first: the earlier one's second segment has its own name and device."""
    with rollout_window(1, name="one", devices="pretend:a") as first:
        with rollout_window(1, name="two", devices="pretend:b"):
            pass
        assert first.recorded
        trainer("b")
        trainer("a")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("a", "busy")]
    windows = evidence.collections(purpose="rollout")
    assert [(each["name"], each["segment"], each["reason"]) for each in windows] == [
        ("one", 1, "split"), ("one", 2, "end"),
    ]  # fmt: skip


def test_windows_on_the_same_devices_are_not_split(output, trainer):
    """A window that ends inside another one of the same devices frees nothing, and the recording goes on."""
    with rollout_window(1, devices="pretend:a"):
        with rollout_window(1, name="inner", devices="pretend:a"):
            pass
        trainer("a")
    profwin.shutdown()
    evidence = Evidence(output)
    assert evidence.skips() == [("a", "busy")]
    assert [each["reason"] for each in evidence.collections(purpose="rollout")] == ["end"]


def test_a_window_inside_a_stage_does_not_split_it(output, trainer):
    """A window inside a stage's body is part of that stage, which goes on in one piece when the window ends."""
    with training_step(1), training_stage("update", devices="pretend:a"):
        with rollout_window(1, devices="pretend:b"):
            pass
        assert len(current().owner.collections) == 1
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [("update", "end")]


def test_a_stage_that_joined_gives_its_device_back(output, trainer):
    """A stage on another device than the open window's is part of its recording, and keeps its device while it runs."""
    with training_step(1), rollout_window(1, devices="pretend:a") as window:
        with training_stage("update", devices="pretend:b"):
            trainer("b")
        assert current().owner.collections[0].keys == ("pretend-a",)
        trainer("b")
        trainer("a")
        assert window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("b", "peer"), ("a", "busy")] or evidence.skips() == [("b", "busy"), ("a", "busy")]
    (window,) = evidence.collections(purpose="rollout")
    assert window["reason"] == "end"
    (stage,) = evidence.collections(purpose="training")
    assert window["t"] < stage["t"] < stage["end"] < window["end"]


def test_both_parts_of_a_split_are_whole(output):
    """With torch the first segment holds what ran until the split, the second what ran after it; nothing is in both."""
    configure(output, devices=("pretend:a", "pretend:b"), backend="torch")
    first, second = (
        rollout_window(1, name="one", devices="pretend:a"),
        rollout_window(1, name="two", devices="pretend:b"),
    )
    first.open()
    second.open()
    torch.ones(3).sin()
    first.close()
    torch.ones(3).cos()
    second.close()
    profwin.shutdown()
    found = [{name for name in names(trace) if name in ("aten::sin", "aten::cos")} for trace in traces(output)]
    assert found == [{"aten::sin"}, {"aten::cos"}]
