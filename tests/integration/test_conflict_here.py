"""The conflict rules inside one process: who joins, who closes, who goes without."""

from __future__ import annotations

import logging

import pytest
from core_support import Evidence, holder

import profwin
from profwin import paused, rollout_window, span, training_stage, training_step
from profwin.errors import WindowOverlapError

CARD = "pretend:card"


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(**{"steps": "1-3", "output": str(output), "devices": CARD, "run": "r", **more})


def warnings_of(caplog):
    """Return the warnings that were logged."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@training_stage
def update():
    """Train."""


def test_free_device_is_taken(output):
    """A window and a stage on a free device are recorded, one after the other, each in its own collection."""
    configure(output)
    with rollout_window(1):
        pass
    update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["purpose"], each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "rollout", "end"),
        ("training", "update", "end"),
    ]
    assert not evidence.of("skip")


def test_nested_and_recursive_stages_join(output):
    """Case 2: a stage in a stage, one decorated twice and a recursion open one collection each."""
    configure(output)
    twice = training_stage("twice")(training_stage("twice")(lambda: None))

    @training_stage
    def factorial(number):
        return 1 if number < 2 else number * factorial(number - 1)

    @training_stage
    def outer():
        update()

    with training_step(1):
        outer()
        twice()
        assert factorial(4) == 24
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["name"] for each in evidence.collections()] == ["outer", "twice", "factorial"]
    assert len(evidence.recorded()) == 2 + 2 + 4


def test_stage_in_window_closes_it_before_the_body(output, caplog):
    """Case 31: a stage in a window of its device ends the window first; it is said once, with both call sites."""
    configure(output)
    for step in (1, 2):
        with rollout_window(step) as window:
            assert window.recorded
            with training_stage("update"):
                assert not window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "handover"), ("update", "end"), ("rollout", "handover"), ("update", "end"),
    ]  # fmt: skip
    overlaps = evidence.of("overlap")
    assert len(overlaps) == 2
    assert all(overlaps[0][site].split(":")[0] == __file__ for site in ("stage_site", "window_site"))
    said = [message for message in warnings_of(caplog) if "update" in message]
    assert len(said) == 1
    assert overlaps[0]["stage_site"] in said[0]
    assert overlaps[0]["window_site"] in said[0]


def test_stage_in_window_is_an_error_under_strict(output):
    """Under strict the stage's body does not run, the error names both sites, and the window is closed."""
    configure(output, strict=True)
    ran = []
    with rollout_window(1), pytest.raises(WindowOverlapError) as caught, training_stage("update"):
        ran.append(1)
    assert not ran
    assert caught.value.stage_site.startswith(__file__)
    assert caught.value.window_site.startswith(__file__)
    profwin.shutdown()
    Evidence(output).check()


def test_stage_beside_a_window_of_other_devices_joins(output):
    """A process has one session: a stage on another device than the open window's is recorded by the window."""
    configure(output)
    with rollout_window(1, devices="pretend:other") as window:
        update()
        assert window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (collection,) = evidence.collections()
    assert evidence.of("enter", name="update")[0]["collection"] == collection["collection"]
    assert evidence.recorded() == ["rollout", "update"]


def test_window_in_a_stage_is_part_of_it(output):
    """A window inside a stage's body never ends it: the stage's collection records both."""
    configure(output)
    with training_step(1), training_stage("update"):
        with rollout_window(1) as window:
            assert window.recorded
        with rollout_window(2) as other:
            assert other.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["name"] for each in evidence.collections()] == ["update"]


def test_window_splits_a_step_collection(output):
    """With collect="step" a window between the stages gets the device, and the next stage begins segment 2."""
    configure(output, collect="step")
    with training_step(1):
        update()
        update()
        with rollout_window(1):
            pass
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["segment"], each["reason"]) for each in evidence.collections()] == [
        ("step", 1, "window"), ("rollout", 1, "end"), ("step", 2, "step"),
    ]  # fmt: skip
    assert not evidence.of("skip")


def test_window_of_the_same_step_joins(output):
    """A second window of the step inside the first is recorded by the first, which goes on after it."""
    configure(output)
    with rollout_window(1) as window:
        with rollout_window(1, name="reward"):
            pass
        assert window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert len(evidence.collections()) == 1
    assert evidence.recorded() == ["rollout", "reward"]


def test_stale_window_is_closed_by_the_next_step(output):
    """A window that was never closed ends where that of the next step begins, and the journal says so."""
    configure(output)
    stale = rollout_window(1)
    stale.open()
    with rollout_window(2) as window:
        assert window.recorded
        assert not stale.recorded
    stale.close()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["reason"] for each in evidence.collections()] == ["stale", "end"]


def test_join_whose_further_device_is_held_says_by_whom(output):
    """A stage that would join but whose own device another process holds is skipped with that holder's name."""
    configure(output)
    with holder(output):
        with rollout_window(1, devices="pretend:other"):
            update()
        profwin.shutdown()
    evidence = Evidence(output)
    (skip,) = evidence.of("skip")
    assert skip["reason"] == "busy"
    assert skip["device"] == "pretend-card"
    assert "rollout" in skip["holder"]


def test_span_and_several_windows_of_a_step(output):
    """A span is noted in what records; windows of one name in a step are numbered."""
    configure(output)
    with span("nothing records"):
        pass
    for _ in range(2):
        with rollout_window(1), span("prefill"):
            pass
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [each["occurrence"] for each in evidence.of("enter", what="window")] == [1, 2]
    assert [each["name"] for each in evidence.of("enter", what="span")] == ["prefill"] * 2


@pytest.mark.parametrize("nested", [False, True])
def test_paused_leaves_a_gap(output, nested):
    """Nothing is recorded inside paused(), also nested and also of new stages; what goes on is segment 2."""
    configure(output)
    with rollout_window(1) as window:
        with paused():
            assert not window.recorded
            if nested:
                with paused():
                    pass
                assert not window.recorded
        assert window.recorded
    with training_stage("update"), paused(), training_stage("validate"):
        pass
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["segment"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", 1, "paused"), ("rollout", 2, "end"), ("update", 1, "paused"), ("update", 2, "end"),
    ]  # fmt: skip
    assert evidence.skips() == [("validate", "paused")]
