"""Loops that run a step ahead: rollout of step n + 1 during training of step n, in one process and in two."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest
from core_support import Child, Evidence
from release_support import PROMPT, Engine, configure

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.configuration import current


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


@training_stage("update", devices="pretend:train")
def update():
    """Train."""


def manifest(output):
    """Return the steps of this run's manifest."""
    return json.loads((output / "mine" / "manifest.json").read_text())["steps"]


def kinds(step):
    """Return the purposes of a step's collections in the manifest."""
    return sorted(each["purpose"] for each in step["collections"])


class Pipeline:
    """Checks from inside of a loop what the board says while a window is open and a step is trained."""

    def __init__(self):
        self.seen = []

    def look(self):
        """Note both sides of the board: steps, and whether they are selected."""
        sides = [current().position.board.read(side) for side in ("rollout", "training")]
        self.seen.append(tuple((side.step, side.selected) for side in sides))

    def expected(self, selected, last):
        """Return what must have been seen with these steps selected."""
        return [((step + 1, step + 1 in selected), (step, step in selected)) for step in range(1, last + 1)]


def in_threads(pipeline, last, **window):
    """Run the loop: the next step's window is opened and closed in a thread of its own."""
    opened, close = threading.Barrier(2), threading.Barrier(2)

    def generate():
        for step in range(1, last + 2):
            with rollout_window(step, weight_version=max(0, step - 2), **window):
                if step > 1:
                    opened.wait(PROMPT)
                    close.wait(PROMPT)

    thread = threading.Thread(target=generate)
    thread.start()
    for step in range(1, last + 1):
        opened.wait(PROMPT)
        with training_step(step, weight_version=step - 1):
            update()
            pipeline.look()
            update()
        close.wait(PROMPT)
    thread.join()


def in_tasks(pipeline, last, **window):
    """Run the loop: the next step's window is a task of the event loop that also trains."""

    @training_stage("update", devices="pretend:train")
    async def update_async():
        await asyncio.sleep(0)

    async def generate(step, opened, close):
        async with rollout_window(step, weight_version=max(0, step - 2), **window):
            opened.set()
            await close.wait()

    async def main():
        for step in range(1, last + 1):
            opened, close = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(generate(step + 1, opened, close))
            await opened.wait()
            with training_step(step, weight_version=step - 1):
                await update_async()
                pipeline.look()
                await asyncio.to_thread(update)
            close.set()
            await task

    with rollout_window(1, weight_version=0, **window):
        pass
    asyncio.run(main())


GENERATOR = """
from release_support import Engine
engine = Engine("pretend:gen")
for step in range(1, int(hear()) + 2):
    with rollout_window(step, weight_version=max(0, step - 2), engine=engine):
        if step > 1:
            say("open")
            hear()
profwin.shutdown()
"""


def in_processes(pipeline, last, **_):
    """Run the loop: another process generates."""
    with Child(GENERATOR, **profwin.environment()) as child:
        child.say(str(last))
        for step in range(1, last + 1):
            assert child.hear() == "open"
            with training_step(step, weight_version=step - 1):
                update()
                pipeline.look()
                update()
            child.say()
        status, _, errors = child.finish()
    assert status == 0, errors


@pytest.mark.parametrize("loop", [in_threads, in_tasks, in_processes])
@pytest.mark.parametrize("steps", ["2", "3", "2-3"])
def test_steps_stay_apart(output, loop, steps):
    """Names, selections and staleness are each step's own, whichever of the two steps under way are selected."""
    configure(output, steps=steps)
    selected = set(range(int(steps[0]), int(steps[-1]) + 1))
    pipeline = Pipeline()
    loop(pipeline, 4, engine=Engine("pretend:gen"))
    assert pipeline.seen == pipeline.expected(selected, 4)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == []
    assert {each["step"] for each in evidence.of("enter")} == selected
    assert all(each["reason"] == "end" for each in evidence.collections())
    found = manifest(output)
    assert set(found) == {str(step) for step in selected}
    for step, each in found.items():
        assert kinds(each) == ["rollout", "training", "training"]
        assert each["generated_with"] == [int(step) - 2]
        assert each["trained_at"] == [int(step) - 1]
        assert each["staleness"] == 1


@pytest.mark.parametrize("loop", [in_threads, in_tasks])
def test_this_processes_own_profilers(output, loop):
    """Recorded by this process itself, a stage is part of the open window's recording, and still of its own step."""
    configure(output, steps="1-9")
    loop(Pipeline(), 3, devices="pretend:gen")
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == []
    stages = evidence.of("enter", name="update")
    assert [each["step"] for each in stages] == [1, 1, 2, 2, 3, 3]
    windows = {each["collection"]: each["step"] for each in evidence.collections(purpose="rollout")}
    assert [windows[each["collection"]] for each in stages] == [2, 2, 3, 3, 4, 4]


def test_a_process_that_says_nothing_follows_the_trainer(output):
    """A stage of a third process belongs to the step that is trained, although the next step's window is open."""
    configure(output, steps="1")
    follower = """
with training_stage("critic", devices="pretend:critic"):
    pass
say("done")
hear()
with training_stage("critic", devices="pretend:critic"):
    pass
profwin.shutdown()
"""
    engine = Engine("pretend:gen")
    with (
        training_step(1, weight_version=5),
        rollout_window(2, engine=engine),
        Child(follower, **profwin.environment()) as child,
    ):
        assert child.hear() == "done"
        with training_step(2, weight_version=6):
            child.say()
            assert child.finish()[0] == 0
    profwin.shutdown()
    evidence = Evidence(output)
    assert [each["step"] for each in evidence.of("enter", name="critic")] == [1]
    assert evidence.collections(name="critic")[0]["version"] == 5


def ran(output):
    """Say whether the finish command has run."""
    return (output / "mine" / "finished").exists()


FINISH = 'touch "$PROFWIN_RUN_DIRECTORY/finished"'


def until_run(output):
    """Wait for the finish command."""
    deadline = time.monotonic() + PROMPT
    while not ran(output):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_finish_command_waits_for_training(output):
    """It runs when the last selected step is trained, however far rollout has run ahead in this process."""
    configure(output, steps="1-2", finish_command=FINISH)
    engine = Engine("pretend:gen")
    with training_step(1):
        update()
        for step in (1, 2, 3, 4):
            with rollout_window(step, engine=engine):
                pass
    with training_step(2):
        with rollout_window(5, engine=engine):
            pass
        update()
        time.sleep(0.2)
        assert not ran(output)
    until_run(output)


def test_the_finish_command_waits_for_training_elsewhere(output):
    """The process that began the run generates, far ahead; the command runs when another one has trained the step."""
    configure(output, steps="1-2", finish_command=FINISH)
    trainer = """
for step in (1, 2):
    with training_step(step):
        with training_stage("update", devices="pretend:train"):
            pass
        say("trained", step)
        hear()
say("all")
hear()
profwin.shutdown()
"""
    engine = Engine("pretend:gen")
    with Child(trainer, **profwin.environment()) as child:
        assert child.hear() == "trained 1"
        for step in (1, 2, 3, 4):
            with rollout_window(step, engine=engine):
                pass
        child.say()
        assert child.hear() == "trained 2"
        with rollout_window(5, engine=engine):
            pass
        time.sleep(0.2)
        assert not ran(output)
        child.say()
        assert child.hear() == "all"
        with rollout_window(6, engine=engine):
            pass
        until_run(output)
        child.say()
        assert child.finish()[0] == 0


@pytest.mark.parametrize("steps", ["1-2", "1"])
def test_windows_of_two_steps(output, steps):
    """On different devices both are kept; on one device the older one, which nobody closed, is stale and closed."""
    configure(output, steps=steps)
    one, two = Engine("pretend:a"), Engine("pretend:b")
    first = rollout_window(1, engine=one)
    first.open()
    with rollout_window(2, engine=two) as second:
        assert first.recorded
        assert second.recorded is (steps == "1-2")
    assert first.recorded
    with rollout_window(2, name="again", engine=Engine("pretend:a")):
        deadline = time.monotonic() + PROMPT
        while first.recorded or one.acts != ["start", "stop"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    first.close()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    reasons = [(each["name"], each["step"], each["reason"]) for each in evidence.collections()]
    others = [("rollout", 2, "end"), ("again", 2, "end")] if steps == "1-2" else []
    assert reasons == [("rollout", 1, "stale"), *others]
