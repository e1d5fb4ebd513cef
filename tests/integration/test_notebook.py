"""Notebooks: cells that configure again, fail, are interrupted or run in an event loop, all in one process."""

from __future__ import annotations

import signal

import pytest
from core_support import Child
from notebook_support import KERNEL, UPDATE, checked, notebook, settings


@pytest.mark.parametrize("first", ["record", "torch"])
@pytest.mark.parametrize("second", ["record", "torch"])
def test_configure_again_with_an_open_window(tmp_path, first, second):
    """The window ends with its run; all else is as the second call says, also for functions made before the first."""
    one, two = tmp_path / "one", tmp_path / "two"
    said = notebook(
        UPDATE,
        settings(one, card="first", more=f", backend={first!r}"),
        "window = rollout_window(1)\nwindow.open()\nsay(window.recorded, free('pretend-first'))",
        settings(two, steps="2", card="second", more=f", backend={second!r}"),
        "say(window.recorded, free('pretend-first'))\nwindow.close()\nwindow.close()",
        "for step in (1, 2, 3):\n    with rollout_window(step):\n        say(free('pretend-second'))\n    update()",
    )
    assert said == ["True False", "False True", "True", "False", "True"]
    before, after = checked(one, "rollout"), checked(two)
    assert [(each["name"], each["reason"]) for each in before.collections()] == [("rollout", "shutdown")]
    assert [each["kind"] for each in before.records][-1] == "end"
    assert [(each["name"], each["step"]) for each in after.collections()] == [("rollout", 2), ("update", 2)]
    assert {tuple(each["devices"]) for each in after.collections()} == {("pretend-second",)}
    assert len(list(one.glob("*/step_*/**/*.json.gz"))) == (first == "torch")
    assert len(list(two.glob("*/step_*/**/*.json.gz"))) == 2 * (second == "torch")
    assert len(list(tmp_path.glob("*/*/manifest.json"))) == 2


@pytest.mark.parametrize("backend", ["record", "torch"])
def test_configure_again_with_an_open_step(tmp_path, backend):
    """A recording that waits for the end of its step, with collect="step", ends with its run too."""
    one, two = tmp_path / "one", tmp_path / "two"
    collect = f", backend={backend!r}, collect='step'"
    said = notebook(
        UPDATE,
        settings(one, more=collect),
        "with rollout_window(1):\n    pass\nupdate()\nsay(len(current().owner.collections))",
        settings(two, more=collect),
        "say(free('pretend-card'))\nupdate()",
        "with rollout_window(1):\n    pass\nupdate()\nupdate()\nsay(len(current().owner.collections))",
    )
    assert said == ["1", "True", "1"]
    for output, stages in ((one, 1), (two, 2)):
        evidence = checked(output)
        assert evidence.recorded() == ["rollout"] + ["update"] * stages
        assert [each["reason"] for each in evidence.collections()][1] in ("shutdown", "exit")
        assert len(list(output.glob("*/step_*/**/*.json.gz"))) == 2 * (backend == "torch")


@pytest.mark.parametrize(
    "wrong", ["steps='2-1'", "steps='1', backend='x'", "steps='1', devices='x:1'", "wait_budget=-1"]
)
def test_a_wrong_setting_leaves_the_first_in_force(tmp_path, wrong):
    """A configure that raises ends nothing: the open window goes on, and what comes after it is recorded as before."""
    said = notebook(
        UPDATE,
        settings(tmp_path),
        "window = rollout_window(1)\nwindow.open()",
        f"profwin.configure({wrong})",
        "say(window.recorded, os.environ['PROFWIN_RUN'] == current().run.name)\nwindow.close()\nupdate()",
    )
    assert said == ["cell 3 raised SettingError", "True True"]
    evidence = checked(tmp_path)
    assert evidence.recorded() == ["rollout", "update"]
    assert [each["reason"] for each in evidence.collections()] == ["end", "end"]


@pytest.mark.parametrize("block", ["with rollout_window(1):", "async with rollout_window(1):"])
@pytest.mark.parametrize("backend", ["record", "torch"])
def test_a_cell_that_is_interrupted(tmp_path, block, backend):
    """Ctrl-C in the middle of a window ends it, and a second configure begins as if nothing had been."""
    one, two = tmp_path / "one", tmp_path / "two"
    again = "with rollout_window(1):\n    pass\nupdate()"
    cells = [
        UPDATE,
        settings(one, more=f", backend={backend!r}"),
        f"{block}\n    say('inside')\n    time.sleep(60)",
        "say(free('pretend-card'), current().owner.collections)",
        settings(two, more=f", backend={backend!r}"),
        again,
    ]
    with Child(KERNEL.format(cells=cells)) as child:
        assert child.hear() == "inside"
        child.process.send_signal(signal.SIGINT)
        assert child.hear() == "cell 2 raised KeyboardInterrupt"
        assert child.hear() == "True []"
        assert child.finish()[0] == 0
    for output, names in ((one, ["rollout"]), (two, ["rollout", "update"])):
        evidence = checked(output)
        assert evidence.recorded() == names
        assert len(list(output.glob("*/step_*/**/*.json.gz"))) == len(names) * (backend == "torch")


def test_ctrl_c_while_an_opened_window_generates(tmp_path):
    """A window that hooks opened stays open after Ctrl-C; the second configure closes it and gives its device back."""
    cells = [
        settings(tmp_path / "one"),
        "window = rollout_window(1)\nwindow.open()\nsay('inside')\ntime.sleep(60)",
        settings(tmp_path / "two"),
        "with rollout_window(1):\n    pass\nwindow.close()",
    ]
    with Child(KERNEL.format(cells=cells)) as child:
        assert child.hear() == "inside"
        child.process.send_signal(signal.SIGINT)
        assert child.hear() == "cell 1 raised KeyboardInterrupt"
        assert child.finish()[0] == 0
    for output, reason in ((tmp_path / "one", "shutdown"), (tmp_path / "two", "end")):
        evidence = checked(output, *["rollout"] * (reason == "shutdown"))
        assert [each["reason"] for each in evidence.collections()] == [reason]


def test_ctrl_c_while_configure_waits_for_a_stop(tmp_path):
    """Ctrl-C in a configure that waits for an engine keeps the rest for the next one: nothing is left recording."""
    engines = """
class Engine:
    def __init__(self, device, slow):
        self.devices, self.slow = [device], slow
    def start_profile(self):
        pass
    def stop_profile(self):
        if self.slow:
            self.slow = False
            say("stopping")
            time.sleep(60)
slow = rollout_window(1, engine=Engine("pretend:slow", True), name="slow")
fast = rollout_window(1, engine=Engine("pretend:fast", False), name="fast")
slow.open()
fast.open()
"""
    cells = [
        settings(tmp_path / "one"),
        engines,
        settings(tmp_path / "two"),
        settings(tmp_path / "two"),
        "say(free('pretend-fast'), os.environ['PROFWIN_RUN'] == current().run.name)",
        "with rollout_window(1, devices='pretend:fast'):\n    pass",
    ]
    with Child(KERNEL.format(cells=cells)) as child:
        assert child.hear() == "stopping"
        child.process.send_signal(signal.SIGINT)
        assert child.hear() == "cell 2 raised KeyboardInterrupt"
        assert child.hear() == "True True"
        assert child.finish()[0] == 0
    before, after = checked(tmp_path / "one", "slow", "fast"), checked(tmp_path / "two")
    assert sorted(each["name"] for each in before.collections()) == ["fast", "slow"]
    assert len(before.of("end")) == 1
    assert after.recorded() == ["rollout"]
    assert len(list(tmp_path.glob("one/*/manifest.json"))) == 1


def test_a_function_that_is_defined_again(tmp_path):
    """A cell that is run twice defines a stage anew; one that decorates what is decorated makes a range inside."""
    said = notebook(
        settings(tmp_path),
        UPDATE,
        "with rollout_window(1):\n    pass\nupdate()",
        UPDATE,
        "update()",
        "update = training_stage(update)",
        "update()\nsay(update.__name__)",
    )
    assert said == ["update"]
    evidence = checked(tmp_path)
    assert evidence.recorded() == ["rollout", "update", "update", "update", "update"]
    assert [each["occurrence"] for each in evidence.collections(name="update")] == [1, 2, 3]


def test_blocks_that_outlive_their_session(tmp_path):
    """Windows, stages, pauses, steps and generators of the first session that end under the second change nothing."""
    said = notebook(
        UPDATE + "@training_stage\ndef batches():\n    yield 1\n    yield 2\n",
        settings(tmp_path / "one"),
        "with rollout_window(1):\n    pass\nstream = batches()\nsay(next(stream))",
        "step = training_step(1)\nstep.__enter__()\npause = paused()\npause.__enter__()",
        settings(tmp_path / "two", steps="2"),
        "window = rollout_window(2)\nwindow.open()\nwith training_step(2):\n"
        "    say(window.recorded, list(stream))\n"
        "    pause.__exit__(None, None, None)\n    step.__exit__(None, None, None)\n"
        "    say(window.recorded, current().position.training_side())\n    window.close()\n    update()",
        "with rollout_window(2):\n"
        "    " + settings(tmp_path / "three").strip() + "\n    say(len(current().owner.collections))",
        "with rollout_window(1):\n    update()",
    )
    assert said == ["1", "True [2]", "True (2, True)", "0"]
    one, two = checked(tmp_path / "one", "batches"), checked(tmp_path / "two", "rollout")
    three = checked(tmp_path / "three")
    assert one.recorded() == ["rollout", "batches"]
    assert two.recorded() == ["rollout", "update", "rollout"]
    assert [each["reason"] for each in two.collections()] == ["end", "end", "shutdown"]
    assert three.recorded() == ["rollout", "update"]


def test_tasks_that_outlive_their_session(tmp_path):
    """A task inside a window or stage, or waiting for one, goes on under a second configure without harm to it."""
    said = notebook(
        UPDATE,
        settings(tmp_path / "one"),
        """
other = Registry().acquire(["pretend-other"], kind="rollout")
go = asyncio.Event()
async def generate(device):
    async with rollout_window(1, devices=device, name=device[8:]):
        await go.wait()
tasks = [asyncio.create_task(generate("pretend:card")), asyncio.create_task(generate("pretend:other"))]
await asyncio.sleep(0.05)
say(len(current().owner.collections))
""",
        settings(tmp_path / "two"),
        "async with rollout_window(1):\n    go.set()\n    say(await asyncio.wait_for(asyncio.gather(*tasks), 20))",
        "other.release()\nupdate()\nsay(free('pretend-other'), free('pretend-card'))",
    )
    assert said == ["1", "[None, None]", "True True"]
    two = checked(tmp_path / "two")
    assert two.recorded() == ["rollout", "update"]


def test_the_event_loop_of_a_kernel(tmp_path):
    """In a running event loop configure, windows, stages of all kinds, and shutdown work as they are."""
    said = notebook(
        settings(tmp_path, steps="1-3"),
        "@training_stage\nasync def act():\n    await asyncio.sleep(0)\n    return 7",
        UPDATE,
        "for step in (1, 2):\n    async with rollout_window(step):\n        await asyncio.sleep(0)\n"
        "    say(await act())\n    update()",
        "with rollout_window(3):\n    pass\nsay(await asyncio.gather(act(), act()))",
        "await asyncio.to_thread(update)\nprofwin.shutdown()\nsay(await act())",
    )
    assert said == ["7", "7", "[7, 7]", "7"]
    evidence = checked(tmp_path)
    assert evidence.recorded() == ["rollout", "act", "update"] * 2 + ["rollout", "act", "act", "update"]
