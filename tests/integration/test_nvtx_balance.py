"""NVTX's stacks stay balanced: generators, other threads, forks, and exceptions that come from outside."""

from __future__ import annotations

from nvtx_support import configured, heard, listen, names


def test_generators_that_take_turns(tmp_path):
    """Generators whose ranges end in another order than their begin never end each other's, and all end."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
@training_stage
def first():
    yield
@training_stage
def second():
    yield
def drain(generator):
    for _ in generator:
        pass
with training_step(1), training_stage("all"):
    a, b = first(), second()
    next(a), next(b)
    drain(a)
    with span("between"):
        pass
    drain(b)
    with span("later"):
        pass
profwin.shutdown()
""",
    )
    assert names(heard(calls)) == ["all", "all/first", "all/first/second", "all/first/second/between", "all/later"]


def test_a_generator_that_another_thread_closes(tmp_path):
    """A range that another thread ends is popped in its own, when the next one begins or ends there."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
@training_stage
def values():
    yield 1
    yield 2
with training_step(1), training_stage("all"):
    generator = values()
    next(generator)
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    with span("later"):
        pass
profwin.shutdown()
""",
    )
    assert names(heard(calls)) == ["all", "all/values", "all/later"]
    assert len({call["thread"] for call in calls}) == 1


def test_a_forked_child(tmp_path):
    """A child that is forked inside ranges pops none of its parent's, and its own are balanced."""
    _, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
def block():
    with rollout_window(1), span("sample"):
        window = rollout_window(1, name="loose")
        window.open()
        pid = os.fork()
        window.close()
    return pid
pid = block()
if not pid:
    with rollout_window(2, name="child"):
        pass
    profwin.shutdown()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
profwin.shutdown()
""",
    )
    ranges = heard(calls)
    parent = calls[0]["pid"]
    assert names(each for each in ranges if each.pid == parent) == ["rollout", "rollout/sample", "loose"]
    assert names(each for each in ranges if each.pid != parent) == ["child"]


def test_a_signal_handler_that_raises_at_any_moment(tmp_path):
    """Wherever an exception from outside strikes, NVTX's stack is right again when what it struck is gone."""
    turns = 900
    out, calls = listen(
        tmp_path,
        f"""{configured(tmp_path)}
import random
class Now(BaseException): pass
def strike(*_): raise Now
signal.signal(signal.SIGALRM, strike)
random.seed(11)
hits = 0
def block(turn):
    if turn % 3:
        with training_stage("update"), span("inner"):
            pass
    else:
        window.open()
        window.close()
took = [[], [], []]
with training_step(1):
    for turn in range({turns}):
        window = rollout_window(1)
        began = time.monotonic()
        try:
            if turn > 8:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(10e-6, longest))
            block(turn)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Now:
            hits += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        window.close()
        if turn <= 8:
            took[turn % 3].append(time.monotonic() - began)
            longest = max(map(min, took[:turn + 1]))  # but for turns in which the machine did something else
del window
profwin.shutdown()
gc.collect()
{configured(tmp_path)}
with training_step(1), training_stage("last"):
    pass
profwin.shutdown()
say(hits)
""",
    )
    assert int(out.split()[-1]) > turns // 20
    ranges = heard(calls)
    assert names(ranges)[-1] == "last"
    assert {each.kind for each in ranges} == {"push", "start"}


def test_a_range_that_nobody_can_end_counts_as_ended(tmp_path):
    """A range whose object is gone does not stay on the stack."""
    _, calls = listen(
        tmp_path,
        """
from profwin.backends.nvtx import NvtxRecording, listener
recording = NvtxRecording(listener())
outer = recording.lasting_range("outer", loose=False)
recording.lasting_range("lost", loose=False)
lost = recording.lasting_range("lost and loose", loose=True)
del lost
outer.end()
outer.end()
recording.__enter__()
""",
    )
    assert names(heard(calls)) == ["outer", "outer/lost", "lost and loose"]


def test_spans_of_a_recording_of_its_own(tmp_path):
    """What the protocol calls a span is a range without category; left in another thread it is popped in its own."""
    _, calls = listen(
        tmp_path,
        """
from profwin.backends.nvtx import BACKEND
with BACKEND(None).open(None) as recording:
    outer, inner = recording.span("outer"), recording.span("inner")
    outer.__enter__()
    inner.__enter__()
    thread = threading.Thread(target=inner.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    recording.step()
outer.__exit__(None, None, None)
say(recording.export())
""",
    )
    ranges = heard(calls)
    assert (names(ranges), ranges[0].category) == (["outer", "outer/inner"], "")
    assert len({call["thread"] for call in calls}) == 1
