"""Which step, which collection: collect="step", continuous, filters, and what says which step is trained."""

from __future__ import annotations

import logging

import pytest
from core_support import Child, Evidence, run

import profwin
from profwin import paused, rollout_window, training_stage, training_step


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(**{"steps": "1-3", "output": str(output), "devices": "pretend:card", "run": "r", **more})


def stage(name, **more):
    """Run an empty stage."""
    with training_stage(name, **more):
        pass


def loop(steps):
    """Run a loop in which the window says the step, and two stages follow it."""
    for step in steps:
        with rollout_window(step):
            pass
        stage("log_probs")
        stage("update")


def told(evidence):
    """Return what the journals tell of each collection."""
    return [(each["name"], each["step"], each["segment"], each["reason"]) for each in evidence.collections()]


def test_a_collection_of_each_step(output):
    """With collect="step" a step's stages are in one collection, opened by the first and ended by the next step."""
    configure(output, collect="step")
    loop(range(5))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert told(evidence) == [
        ("rollout", 1, 1, "end"), ("step", 1, 1, "step"), ("rollout", 2, 1, "end"), ("step", 2, 1, "step"),
        ("rollout", 3, 1, "end"), ("step", 3, 1, "step"),
    ]  # fmt: skip
    assert evidence.recorded() == ["rollout", "log_probs", "update"] * 3


def test_continuous_joins_steps_without_a_window_between(output):
    """Setting continuous joins the consecutive selected steps of a process without windows, and no others."""
    configure(output, collect="step", continuous=True, steps="1-2,4")
    for step in range(6):
        with training_step(step):
            stage("update")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert told(evidence) == [("step", 1, 1, "step"), ("step", 4, 1, "step")]
    first, second = evidence.collections()
    assert [each["collection"] for each in evidence.of("enter")] == [first["collection"]] * 2 + [second["collection"]]


def test_continuous_is_split_by_windows(output):
    """Where a window needs the device between two steps, continuous splits."""
    configure(output, collect="step", continuous=True)
    loop(range(1, 4))
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [name for name, *_ in told(evidence)] == ["rollout", "step"] * 3


def test_a_step_collection_survives_a_failing_stage(output):
    """A stage that fails in a step's collection ends neither it nor the run."""
    configure(output, collect="step")
    with training_step(1):
        with pytest.raises(ValueError, match="mine"), training_stage("update"):
            raise ValueError("mine")
        stage("update")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert told(evidence) == [("step", 1, 1, "step")]


def test_pause_between_the_stages_of_a_step(output):
    """A pause between the stages of a step's collection splits it."""
    configure(output, collect="step")
    with training_step(1):
        stage("update")
        with paused():
            stage("validate")
        stage("update")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert told(evidence) == [("step", 1, 1, "paused"), ("step", 1, 2, "step")]
    assert evidence.skips() == [("validate", "paused")]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"roles": "rollout"}, ["rollout"]),
        ({"roles": "train"}, ["actor_update", "critic_update"]),
        ({"roles": "cr*"}, ["reward"]),
        ({"role": "actor", "roles": "actor"}, ["actor_update", "critic_update"]),
        ({"stages": "actor_*"}, ["rollout", "actor_update"]),
        ({"ranks": "0", "rank": 1}, []),
        ({"ranks": "0-3,8", "rank": 2}, ["rollout", "actor_update", "critic_update", "reward"]),
        ({"ranks": "0"}, ["rollout", "actor_update", "critic_update", "reward"]),
        ({"steps": "2"}, []),
        ({"steps": "none"}, []),
    ],
)
def test_filters(output, settings, expected):
    """Only the selected steps, ranks, roles and stages are recorded; what is filtered out is no skip."""
    configure(output, **settings)
    with rollout_window(1):
        pass
    stage("actor_update")
    stage("critic_update")
    stage("reward", role="critic")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.recorded() == expected
    assert not evidence.of("skip")
    assert not evidence.of("finding")
    assert bool(list(output.glob("**/*.jsonl"))) == (settings.get("steps") != "none")


def test_what_says_the_step_here(output):
    """training_step comes before this process's window; outside of it, where it is used, no stage is recorded."""
    configure(output)
    stage("before any step")
    with rollout_window(2):
        pass
    stage("by window")
    with training_step(1):
        stage("by training_step")
        with training_step(3):
            stage("nested")
        stage("again")
    stage("after")
    with rollout_window(3):
        pass
    stage("after too")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["step"]) for each in evidence.of("enter", what="stage")] == [
        ("by window", 2), ("by training_step", 1), ("nested", 3), ("again", 1),
    ]  # fmt: skip


WORKER = """
while (name := hear()):
    if name.startswith("step "):
        step = training_step(int(name[5:]))
        step.__enter__()
    elif name == "leave":
        step.__exit__(None, None, None)
    else:
        with training_stage(name):
            pass
    say("done")
profwin.shutdown()
"""


def test_what_says_the_step_elsewhere(output):
    """A worker follows the driver's window by the board, until it says itself which step it trains."""
    configure(output)

    def ask(text):
        worker.say(text)
        assert worker.hear() == "done"

    with Child(WORKER, **profwin.environment()) as worker:
        ask("before")
        with rollout_window(1):
            pass
        ask("one")
        with rollout_window(2):
            pass
        ask("two")
        ask("step 1")
        ask("mine")
        with rollout_window(3):
            pass
        ask("still mine")
        ask("leave")
        ask("not mine")
        with rollout_window(4):
            pass
        ask("four")
        worker.say()
        assert worker.finish()[0] == 0
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["step"]) for each in evidence.of("enter", what="stage")] == [
        ("one", 1), ("two", 2), ("mine", 1), ("still mine", 1),
    ]  # fmt: skip


def test_windows_without_stages_are_a_finding(output, caplog):
    """Case 11: rollout windows and not one stage: exactly one warning at the end, and the finding in the manifest."""
    configure(output)
    for step in (1, 2):
        with rollout_window(step):
            pass
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    profwin.shutdown()
    (said,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "2 rollout windows, 0 training stages" in said
    (finding,) = Evidence(output).of("finding")
    assert finding["code"] == "no-stages"
    assert "no-stages" in (output / "r" / "manifest.json").read_text()


def test_windows_without_stages_are_a_finding_at_exit(output):
    """Case 11: it is said as well when the interpreter just ends."""
    _, err = run(f"""
profwin.configure(steps="1", output={str(output)!r}, run="r")
with rollout_window(1):
    pass
""")
    assert err.count("0 training stages") == 1
    assert len(Evidence(output).of("finding", code="no-stages")) == 1
