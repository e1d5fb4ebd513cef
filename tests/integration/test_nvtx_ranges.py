"""The ranges of the backend ``nvtx``, as a tool hears them that the real NVTX loads."""

from __future__ import annotations

from core_support import Evidence
from nvtx_support import configured, heard, listen, names

import profwin
from profwin.backends.nvtx import COLOURS, colour


def test_names_nesting_categories_and_colours(tmp_path):
    """Windows, stages and spans are pushed where they begin, named, by purpose and role, inside one another."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
@training_stage(role="critic")
def update_critic():
    with span("backward"):
        pass
with rollout_window(1), span("sample"):
    with rollout_window(1, name="reward"):
        pass
with training_step(1):
    with training_stage("update", role="actor"):
        update_critic()
profwin.shutdown()
""",
    )
    ranges = heard(calls)
    inner = ["rollout", "rollout/sample", "rollout/sample/reward"]
    assert names(ranges) == [*inner, "update", "update/update_critic", "update/update_critic/backward"]
    assert {each.kind for each in ranges} == {"push"}
    assert [each.category for each in ranges] == ["rollout"] * 3 + ["training"] * 3
    roles = ["rollout", "rollout", "rollout", "actor", "critic", "actor"]
    assert [each.colour for each in ranges] == [COLOURS[role] for role in roles]


def test_the_programs_own_ranges_stay(tmp_path):
    """Ranges of other domains, and of none, end where the program ends them, whatever of ours begins and ends there."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
import nvtx
nvtx.push_range("outer")
window = rollout_window(1)
window.__enter__()
nvtx.push_range("inner")
nvtx.push_range("of a domain", domain="mine")
window.__exit__(None, None, None)
with training_step(1), training_stage("update"):
    nvtx.pop_range(domain="mine")
    nvtx.pop_range()
nvtx.pop_range()
profwin.shutdown()
""",
    )
    assert names(heard(calls)) == ["rollout", "update"]
    assert names(heard(calls, "")) == ["outer", "outer/inner"]
    (mine,) = heard(calls, "mine")
    update = heard(calls)[1]
    assert update.began < mine.ended < update.ended


def test_exceptions_end_their_ranges(tmp_path):
    """A body that fails ends its ranges; a function that is called again has a new one."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
@training_stage
def update(fail):
    with span("inside"):
        if fail:
            raise ValueError
with training_step(1):
    for fail in (True, False):
        try:
            update(fail)
        except ValueError:
            pass
try:
    with rollout_window(2), span("x"), span("y"):
        raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
profwin.shutdown()
""",
    )
    found = names(heard(calls))
    assert found == ["update", "update/inside"] * 2 + ["rollout", "rollout/x", "rollout/x/y"]


def test_tasks_that_take_turns(tmp_path):
    """What runs in an event loop has start/end ranges, each from its own begin to its own end, in whatever order."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
@training_stage
async def update(turn):
    await asyncio.sleep(0.01 * turn)
async def part(turn):
    with span(f"part {{turn}}"):
        await asyncio.sleep(0.2 * turn)
    await update(turn)
@training_stage
async def values():
    yield 1
    yield 2
async def main():
    window = rollout_window(1)
    await window.aopen()
    async with training_stage("other"):
        pass
    with training_step(1):
        async with training_stage("all"):
            await asyncio.gather(*(part(turn) for turn in (3, 1, 2)))
        async for _ in values():
            pass
    await window.aclose()
asyncio.run(main())
with training_step(1), training_stage("after"):
    pass
profwin.shutdown()
""",
    )
    ranges = heard(calls)
    in_loop = [each for each in ranges if each.name != "after"]
    assert {each.kind for each in in_loop} == {"start"}
    assert [each.kind for each in ranges if each.name == "after"] == ["push"]
    parts = {each.name: each for each in ranges if each.name.startswith("part")}
    assert list(parts) == ["part 3", "part 1", "part 2"]
    assert parts["part 1"].ended < parts["part 3"].ended
    assert sum(each.name == "update" for each in ranges) == 3
    assert {"rollout", "other", "all", "values"} <= {each.name for each in ranges}


def test_a_window_that_another_threads_stage_ends(tmp_path):
    """A stage ends the recording of a window, not its range: that is popped in its own thread, at the window's end."""
    out, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
inside, over = threading.Event(), threading.Event()
def generate():
    with rollout_window(1), span("sample"):
        inside.set()
        assert over.wait(30)
        say(threading.get_native_id())
thread = threading.Thread(target=generate)
thread.start()
assert inside.wait(30)
with training_stage("update"):
    with span("between"):
        pass
    over.set()
    thread.join()
profwin.shutdown()
""",
    )
    ranges = {each.name: each for each in heard(calls)}
    assert {each.kind for each in ranges.values()} == {"push"}
    assert ranges["rollout"].thread == ranges["sample"].thread == int(out)
    assert ranges["update"].thread != int(out)
    assert ranges["between"].ended < ranges["sample"].ended < ranges["rollout"].ended < ranges["update"].ended
    reasons = [each["reason"] for each in Evidence(tmp_path / "out").collections()]
    assert reasons == ["handover", "end"]


def test_a_window_that_is_opened_and_closed_by_different_threads(tmp_path):
    """Windows with open() and close() have start/end ranges, and may end in any thread."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
for step in (1, 2):
    window = rollout_window(step)
    window.open()
    thread = threading.Thread(target=window.close)
    thread.start()
    thread.join()
profwin.shutdown()
""",
    )
    assert [(each.kind, each.name) for each in heard(calls)] == [("start", "rollout")] * 2
    threads = [call["thread"] for call in calls]
    assert threads[0] == threads[2] != threads[1]


def test_a_pause_and_a_shutdown_in_the_middle(tmp_path):
    """Ranges last as long as what they mark, though its recording is closed, taken up again, or the session ends."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
def pause():
    with paused():
        pass
with rollout_window(1):
    thread = threading.Thread(target=pause)
    thread.start()
    thread.join()
    with span("after"):
        pass
with rollout_window(2):
    thread = threading.Thread(target=profwin.shutdown)
    thread.start()
    thread.join()
    say("down")
""",
    )
    assert names(heard(calls)) == ["rollout", "rollout/after", "rollout"]
    assert len({call["thread"] for call in calls}) == 1


def test_whether_a_tool_listens_is_asked_when_something_is_recorded(tmp_path):
    """A stage that was decorated before any session has its range; where the package is turned off there is none."""
    script = f"""
@training_stage
def update():
    pass
update()
{configured(tmp_path)}
with training_step(1):
    update()
profwin.shutdown()
say("done")
"""
    _, calls = listen(tmp_path, script)
    assert names(heard(calls)) == ["update"]
    (tmp_path / "off").mkdir()
    out, calls = listen(tmp_path / "off", script.replace("'r'", "'s'"), NVTX_DISABLE="1")
    assert (out.split(), calls) == (["done"], [])


def test_without_a_tool_nothing_is_marked_and_the_run_is_clean(tmp_path):
    """Where no tool listens everything goes on as usual, and profwin check misses no trace."""
    profwin.configure(steps="1", backend="nvtx", output=tmp_path, run="r", devices="pretend:c")
    with profwin.rollout_window(1):
        pass
    with profwin.training_step(1), profwin.training_stage("update"):
        pass
    profwin.shutdown()
    from profwin.evidence.check import check

    assert not check(str(tmp_path)).findings


def test_colours_are_the_same_in_every_process():
    """Roles have fixed colours, and others one that does not depend on the process."""
    assert {role: colour(role) for role in COLOURS} == COLOURS
    assert [hex(colour(role)) for role in ("judge", "eagle")] == ["0xff81b29a", "0xffa3b18a"]
