"""A recording that goes on into the next step ends with the loop, when that fails or ends early."""

from __future__ import annotations

import pytest

import profwin
from profwin import training_stage
from profwin.configuration import current
from profwin.hooks import Loop
from profwin.testing import RecordingEngine


@pytest.fixture
def session(tmp_path):
    """Return a session that joins steps 1 and 2."""
    profwin.configure(
        steps="1,2", backend="record", collect="step", continuous=True, devices="pretend:0", output=str(tmp_path)
    )
    yield current()
    profwin.shutdown()


@pytest.mark.parametrize("event", ["loop_fails", "loop_ends"])
def test_recording_ends_with_the_loop(session, event):
    """Step 1 is over and step 2 is selected, but does not come: nothing records any more."""
    loop = Loop("separate", engine=RecordingEngine(), devices=["pretend:1"])
    loop.step_begins(1)
    with training_stage("update"):
        pass
    loop.step_ends()
    assert len(session.owner.collections) == 1, "it waits for step 2"
    getattr(loop, event)()
    assert session.owner.collections == []


def test_recording_of_another_training_step_goes_on(session):
    """A loop that ends leaves alone what a training step that is under way records."""
    loop = Loop("separate", engine=RecordingEngine(), devices=["pretend:1"])
    with profwin.training_step(1):
        with training_stage("update"):
            pass
        loop.loop_ends()
        assert len(session.owner.collections) == 1
