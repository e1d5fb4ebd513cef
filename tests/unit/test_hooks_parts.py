"""`Loop` with two parts of devices: whose windows are opened with what, and what a failure in one part leaves alone."""

from __future__ import annotations

import logging

import pytest
from loop_stand import stand_in

from profwin.hooks import Loop
from profwin.loop import BeginStep, CloseWindow, EndStep, OpenWindow

PARTS = {"engine": "alone", "devices": ["pretend:0"], "hybrid_engine": "shared", "hybrid_devices": ["pretend:1"]}


@pytest.fixture
def stand(monkeypatch):
    """Put a stand in place of the modules that act."""
    return stand_in(monkeypatch)


def test_each_part_has_windows_of_its_own(stand):
    """Both parts open and close their own windows, with their own engine, devices and name."""
    with Loop("separate", **PARTS) as loop:
        loop.weights_synced(3)
        loop.devices_to_generation()
        loop.step_begins(1)
        loop.devices_to_training()
        loop.step_ends()
    assert stand.calls == [
        "enter step 1",
        "open 1",
        "open 1 rollout_hybrid",
        "close 1 rollout_hybrid",
        "close 1",
        "exit step 1",
    ]
    assert stand.arguments == [
        {"engine": "alone", "devices": ["pretend:0"], "name": "rollout", "weight_version": 3},
        {"engine": "shared", "devices": ["pretend:1"], "name": "rollout_hybrid", "weight_version": 3},
    ]


def test_a_sync_is_the_boundary_of_a_fully_asynchronous_step(stand):
    """In "fully_async" the sync closes the window and ends the step; both begin again with the new version."""
    with Loop("fully_async", engine="alone") as loop:
        loop.weights_synced(7)
        loop.weights_about_to_sync(8)
        assert stand.calls == ["enter step 8", "open 8", "close 8", "exit step 8"]
        loop.weights_synced(8)
        loop.weights_synced(7)
    assert stand.calls[4:] == ["enter step 9", "open 9", "close 9", "exit step 9"]
    assert [arguments["weight_version"] for arguments in stand.arguments] == stand.versions == [7, 8]


def test_a_version_that_is_named_with_the_step_counts_until_the_next_sync(stand):
    """Windows carry the version of the step's begin, then that of the latest sync, also in the next steps."""
    loop = Loop("separate", hybrid_engine="shared")
    loop.step_begins(1, weight_version=5)
    loop.devices_to_generation()
    loop.devices_to_training()
    loop.weights_synced(6)
    loop.devices_to_generation()
    loop.step_begins(2)
    loop.loop_ends()
    assert [arguments["weight_version"] for arguments in stand.arguments] == [5, 6, 6]


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, ["standalone"]),
        ({"engine": "alone"}, ["standalone"]),
        ({"devices": ["pretend:0"]}, ["standalone"]),
        ({"hybrid_engine": "shared"}, ["hybrid"]),
        ({"hybrid_devices": ["pretend:1"]}, ["hybrid"]),
        (PARTS, ["standalone", "hybrid"]),
    ],
)
@pytest.mark.parametrize("mode", ["separate", "fully_async"])
def test_the_parts_are_those_that_are_given(stand, mode, given, parts):
    """There is a hybrid part only where it is given, and a standalone one unless the hybrid one alone is."""
    loop = Loop(mode, **given)
    loop.devices_to_generation()
    loop.step_begins(1)
    loop.loop_ends()
    names = {"standalone": "open 1", "hybrid": "open 1 rollout_hybrid"}
    assert [call for call in stand.calls if call.startswith("open")] == [names[part] for part in parts]


def test_an_adapter_gets_the_actions_of_both_parts():
    """With `perform` a loop has all parts of its mode, unless some are given."""
    actions = []
    loop = Loop("separate", perform=actions.append)
    loop.devices_to_generation()
    loop.step_begins(1)
    assert actions == [BeginStep(1), OpenWindow(1, "standalone"), OpenWindow(1, "hybrid")]
    actions.clear()
    Loop("separate", hybrid_engine="shared", perform=actions.append).step_begins(1)
    assert actions == [BeginStep(1)]


@pytest.mark.parametrize("failing", ["open 1", "open 1 rollout_hybrid", "close 1", "close 1 rollout_hybrid"])
def test_a_failure_in_one_part_leaves_the_other_alone(stand, caplog, failing):
    """Whatever opening or closing raises in one part, the other part's windows are opened and closed all the same."""
    stand.plan[failing] = OSError("broken")
    with caplog.at_level(logging.WARNING, "profwin"), Loop("separate", **PARTS) as loop:
        loop.step_begins(1)
        loop.devices_to_generation()
        loop.step_ends()
        loop.step_begins(2)
    expected = {
        f"{what} {step}{part}" for what in ("open", "close") for step in (1, 2) for part in ("", " rollout_hybrid")
    }
    assert sorted(call for call in stand.calls if "step" not in call) == sorted(expected)
    assert "broken" in caplog.text


def test_an_interrupted_closing_is_tried_again_in_its_part(stand):
    """Ctrl-C while one part closes passes after the other part has closed too; the loop's failure closes the first."""
    stand.plan["close 1"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), Loop("separate", **PARTS) as loop:  # noqa: PT012  # the body is the point
        loop.devices_to_generation()
        loop.step_begins(1)
        loop.step_ends()
    assert stand.calls[3:] == ["close 1", "close 1 rollout_hybrid", "exit step 1", "close 1"]


def test_the_end_of_the_loop_closes_both_parts():
    """An exception in the body closes what both parts have open."""
    actions = []
    with pytest.raises(KeyError), Loop("fully_async", perform=actions.append) as loop:  # noqa: PT012  # as above
        loop.devices_to_generation()
        loop.weights_synced(0)
        raise KeyError
    assert actions[3:] == [CloseWindow(1, "standalone", "failure"), CloseWindow(1, "hybrid", "failure"), EndStep(1)]
