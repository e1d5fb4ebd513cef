"""The record over several processes, and that its assertions fail where the lock or the order is taken away."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from core_support import ROOT, Child, once_waiting

import profwin
from profwin import rollout_window, training_stage
from profwin.testing import Host, assert_all_recorded, assert_no_overlap, assert_rollout_before_training

NO_LOCK = Path(__file__).with_name("no_lock")
BLOCK = """
say("ready")
while (order := hear()):
    block, step = order.split()
    step = int(step)
    context = rollout_window(step) if block == "window" else training_step(step)
    with context:
        if block == "window":
            say("inside"); hear()
        else:
            with training_stage(block):
                say("inside"); hear()
    say("outside")
"""


@pytest.fixture
def host(tmp_path):
    """Return a pretend host."""
    with Host(tmp_path) as found:
        yield found


class Worker(Child):
    """A process of the run that enters and leaves one block after the other, as it is told."""

    def __init__(self, host: Host, role: str, *, locked: bool = True, **settings) -> None:
        path = os.pathsep.join([str(ROOT)] if locked else [str(NO_LOCK), str(ROOT)])
        super().__init__(BLOCK, PYTHONPATH=path, **host.environment(role=role, **settings))
        assert self.hear() == "ready"

    def enter(self, block: str, step: int) -> None:
        """Enter a block, and be inside."""
        self.say(f"{block} {step}")
        assert self.hear() == "inside"

    def leave(self) -> None:
        """Leave it."""
        self.say()
        assert self.hear() == "outside"

    def end(self) -> None:
        """End in order."""
        self.say()
        status, _out, err = self.finish()
        assert status == 0, err


def message(check, record):
    """Return what an assertion says when it fails."""
    with pytest.raises(AssertionError) as caught:
        check(record)
    return str(caught.value)


def test_record_is_of_all_processes(host):
    """What two processes did on two devices is in one record, in order, each with its process's role."""
    generation, training = host.devices(2)
    with (
        Worker(host, "rollouter", devices=generation) as rollouter,
        Worker(host, "trainer", devices=training) as trainer,
    ):
        for step in (1, 2):
            rollouter.enter("window", step)
            trainer.enter("update", step)
            rollouter.leave()
            trainer.leave()
        # A process that is at work is in the record as far as it got.
        rollouter.enter("window", 3)
        assert host.record.windows[-1].problem == "never left"
        rollouter.leave()
        rollouter.end()
        trainer.end()
    record = host.record
    assert record.devices == ("pretend-0", "pretend-1")
    assert [(each.step, each.process.partition(" ")[0]) for each in record.collections] == [
        (1, "rollouter"), (1, "trainer"), (2, "rollouter"), (2, "trainer"), (3, "rollouter"),
    ]  # fmt: skip
    assert_no_overlap(record)
    assert_rollout_before_training(record)
    assert_all_recorded(record, steps=[1, 2], stages="update", windows="rollout")
    assert "step 3 has no recorded stage" in message(lambda found: assert_all_recorded(found, steps=3), record)


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "no lock"])
def test_overlap_is_found_without_the_lock(host, locked):
    """Two processes collect on one device at once where the lock is taken away; both lines of code are named."""
    host.configure(wait_budget=0.2)
    with (
        Worker(host, "rollouter", locked=locked) as rollouter,
        Worker(host, "trainer", locked=locked) as trainer,
    ):
        rollouter.enter("window", 1)
        trainer.enter("update", 1)
        early = host.record  # while both are inside
        trainer.leave()
        rollouter.leave()
        rollouter.end()
        trainer.end()
    record = host.record
    message(assert_rollout_before_training, early)
    said = message(assert_rollout_before_training, record)
    assert "began while window 'rollout' of step 1 (rollouter pid" in said
    if locked:
        assert_no_overlap(record)
        said = message(assert_all_recorded, record)
        assert "not recorded: busy, pretend-0 is held by" in said
        assert re.search(r"^   +\.+ +step 1 update, trainer pid", said, re.MULTILINE)
    else:
        assert_all_recorded(record)
        assert "on pretend-0, training 'update'" in message(assert_no_overlap, early)
        said = message(assert_no_overlap, record)
        assert f"on pretend-0, training 'update' of step 1 (trainer pid {trainer.pid}, <string>:" in said
        assert f"while rollout 'rollout' of step 1 (rollouter pid {rollouter.pid}, <string>:" in said
        bars = [line.partition("  step 1")[0] for line in said.splitlines() if "  step 1 " in line]
        assert [len(bar.rstrip()) for bar in bars] == [2 + 3 * 4, 2 + 2 * 4]  # the stage within the window


def test_waits_are_in_the_record(host):
    """A stage that waited for another process's window is recorded, with how long it waited."""
    with Worker(host, "rollouter") as rollouter:
        rollouter.enter("window", 1)
        rollouter.say()
        with profwin.training_step(1), training_stage("update"):
            pass
        assert rollouter.hear() == "outside"
        rollouter.enter("window", 2)
        with once_waiting(rollouter.say), profwin.training_step(2), training_stage("update"):
            pass
        assert rollouter.hear() == "outside"
        rollouter.end()
    record = host.record
    assert_all_recorded(record, steps=[1, 2])
    assert_rollout_before_training(record)
    waited = [each for each in record.waits if each.step == 2]
    assert [each.name for each in waited] == ["update"]
    assert 0.02 < waited[0].waited < 20
    assert "waited" in next(event for event in record.events if event.step == 2 and event.name == "update").detail
    assert f", waited {waited[0].waited:.3g} s" in str(record)


def test_killed_process_is_in_the_record(host):
    """What a killed process was recording has no end, is named as not recorded, and the next one is no overlap."""
    host.may_leave_open = True
    with Worker(host, "rollouter") as rollouter:
        rollouter.enter("window", 1)
        rollouter.kill(signal.SIGKILL)
    with profwin.training_step(1), training_stage("update"):
        pass
    record = host.record
    (window,) = record.windows
    assert window.left is None
    assert window.end < record.stages[0].entered
    assert "never left" in message(assert_all_recorded, record)
    assert "never closed" in str(record)
    assert_no_overlap(record)


def test_forked_child_is_in_the_record(host):
    """A forked child's journal is in the record too."""
    with rollout_window(1):
        pass
    pid = os.fork()
    if pid == 0:
        try:
            with profwin.training_step(1), training_stage("forked"):
                pass
            profwin.shutdown()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert_all_recorded(host.record, steps=1, stages="forked")
    assert [each.process for each in host.record.stages] == [f"pid {pid}"]
