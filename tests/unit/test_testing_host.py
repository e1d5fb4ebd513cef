"""The pretend host sets profwin up for a test alone, takes child processes in, and puts everything back."""

from __future__ import annotations

import os

import pytest

import profwin
from profwin import rollout_window, training_stage
from profwin.configuration import current
from profwin.switch import SWITCH
from profwin.testing import Host, assert_all_recorded, read_record


@pytest.fixture
def host(tmp_path):
    """Return a pretend host."""
    with Host(tmp_path) as found:
        yield found


def variables():
    """Return this process's variables of profwin's."""
    return {name: value for name, value in os.environ.items() if name.startswith("PROFWIN_")}


def turn(step=1):
    """Generate and train."""
    with rollout_window(step):
        pass
    with training_stage("update"):
        pass


def test_everything_is_put_back(tmp_path, monkeypatch):
    """After the host profwin is off, and its variables are as they were, even if the body failed."""
    monkeypatch.setenv("PROFWIN_STRICT", "1")
    before = variables()
    with Host(tmp_path):
        assert "PROFWIN_STRICT" not in os.environ
        turn()
    assert variables() == before
    with pytest.raises(ZeroDivisionError), Host(tmp_path / "second"):
        raise ZeroDivisionError
    assert variables() == before
    assert current() is None
    assert not SWITCH.on


def test_a_process_armed_by_its_variables_stays_armed(tmp_path, monkeypatch):
    """Where PROFWIN_STEPS was set when the process began, profwin would be on again after the host."""
    monkeypatch.setenv("PROFWIN_STEPS", "1")
    with Host(tmp_path):
        assert current().settings.steps.text() == "all"
    assert SWITCH.on
    SWITCH.on = False


def test_an_earlier_session_is_ended(tmp_path):
    """A session that another test left is shut down, and nothing of it is in the record or in the variables after."""
    before = variables()
    profwin.configure(steps="1", output=tmp_path / "earlier", devices="pretend:a")
    turn()
    with Host(tmp_path / "host") as host:
        turn(2)
        assert host.record.steps == (2,)
    assert variables() == before


def test_defaults(host):
    """Every step is recorded by the testing backend, on one device, within the host's own directory, not strictly."""
    settings = current().settings
    assert settings.backend == ("testing",)
    assert settings.devices == host.devices(1) == (host.device("0"),) == (host.device(),)
    assert 123456 in settings.steps
    assert not settings.strict
    turn()
    assert {device for each in host.record.collections for device in each.devices} == {"pretend-0"}
    assert os.listdir(host.lock_dir)


def test_settings_of_the_test(host):
    """What the test says goes before the defaults, and each run of the test is in the record."""
    turn(1)
    host.configure(steps="2", strict=True, devices=host.device("trainer"))
    turn(1)
    turn(2)
    assert [(each.step, each.devices[0]) for each in host.record.stages] == [(1, "pretend-0"), (2, "pretend-trainer")]


def test_a_loop_that_configures_itself(host):
    """A loop's own call of configure keeps the host's backend, device, output and locks where it says nothing."""
    profwin.configure(steps="2", strict=True)
    assert current().settings.strict
    turn(1)
    turn(2)
    assert host.record.steps == (2,)
    assert host.record.devices == ("pretend-0",)
    assert {(act.name, act.step) for act in host.backend.acts if act.action == "enter"} == {
        ("rollout", 2),
        ("update", 2),
    }


def test_environment_of_children(host):
    """A child's variables are the run's, with what is its own; without them, it stays off."""
    host.configure(strict=True, steps="2-3")
    found = host.environment(devices=host.devices(2), role="worker", rank=1, strict=False)
    assert found["PROFWIN_DEVICES"] == "pretend:0,pretend:1"
    assert (found["PROFWIN_ROLE"], found["PROFWIN_RANK"], found["PROFWIN_STRICT"]) == ("worker", "1", "0")
    assert found["PROFWIN_RUN"] == current().run.name
    assert found["PROFWIN_OUTPUT"] == host.output
    assert found["PROFWIN_STEPS"] == "2-3"
    assert "PROFWIN_STEPS" not in os.environ


@training_stage
def batches():
    """Train on batches."""
    yield


def leave_open(directory, block):
    """Open something and leave the host."""
    with Host(directory):
        block()


def test_what_is_left_open_is_an_error(tmp_path):
    """A window or stage that is open when the host is left is named with its line; the session still ends."""
    with pytest.raises(AssertionError, match=r"left open.*\n.*window 'rollout' of step 1 .*test_testing_host.py:\d+"):
        leave_open(tmp_path, rollout_window(1).open)
    assert current() is None
    generator = batches()

    def train():
        turn()
        next(generator)

    with pytest.raises(AssertionError, match="stage 'batches'"):
        leave_open(tmp_path / "second", train)
    generator.close()


def test_what_may_be_left_open(tmp_path):
    """The test can allow it, and a failing test is told of its own failure alone."""
    with Host(tmp_path) as host:
        host.may_leave_open = True
        rollout_window(1).open()

    def fail():
        rollout_window(1).open()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        leave_open(tmp_path / "second", fail)


def test_record_of_any_run(host):
    """A record can be read of a run's own directory too, and its events are in order."""
    turn()
    record = read_record(current().run.directory)
    assert record == host.record
    assert [(event.kind, event.purpose, event.name) for event in record.events] == [
        ("opened", "rollout", "rollout"), ("closed", "rollout", "rollout"),
        ("opened", "training", "update"), ("closed", "training", "update"),
    ]  # fmt: skip
    assert str(record.events[1]).startswith("pretend-0: closed rollout 'rollout' of step 1, pid ")
    assert record.findings == ()
    assert_all_recorded(record)


def test_record_prints_as_a_timeline(host):
    """Printed, the record is one bar a collection, below its device, in order."""
    assert str(host.record).startswith("(nothing")
    with rollout_window(1, engine=host.engine(host.device("generator"))):
        with training_stage("update"):
            pass
        host.backend.fail("enter")
        with training_stage("second"):
            pass
    assert [line.partition(", pid")[0] for line in str(host.record).splitlines()[:-1]] == [
        "pretend-0",
        "      ====              step 1 update",
        "              ....      step 1 second",
        "pretend-generator",
        "  ####################  step 1 rollout",
    ]
