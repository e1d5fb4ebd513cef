"""Users' ranges while torch records: the methods of record_function are replaced and put back, and do no harm."""

from __future__ import annotations

import logging
import threading

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.profiler import record_function

from profwin.backends import torch_ranges
from profwin.backends.torch_ranges import watch

METHODS = ("__enter__", "__exit__")


def methods():
    """Return the two methods as they are now."""
    return [vars(record_function)[name] for name in METHODS]


@pytest.fixture(autouse=True)
def as_it_was():
    """Each test leaves the class as torch made it, and nothing watched."""
    before = methods()
    yield
    assert methods() == before
    assert torch_ranges._current is None
    assert not torch_ranges._replaced


@pytest.fixture
def ranges():
    """Watch in one test."""
    ranges = watch()
    yield ranges
    ranges.close()


def test_this_torch_has_what_is_relied_on():
    """The attributes and the operator that the watch uses exist in the installed torch."""
    assert torch_ranges._missing() is None


def test_the_methods_are_replaced_and_put_back():
    """From the start to the stop the class has our methods, which name the originals; then exactly the originals."""
    before = methods()
    ranges = watch()
    assert [method.__wrapped__ for method in methods()] == before
    ranges.close()
    assert methods() == before
    ranges.close()
    assert methods() == before


def test_the_latest_recording_counts():
    """One that closes late, after the next has begun, takes nothing from that one."""
    before = methods()
    lost, ranges = watch(), watch()
    lost.close()
    assert methods() != before
    with record_function("user"):
        assert len(ranges.begun) == 1
        assert not lost.begun
    ranges.close()
    assert methods() == before


def test_ranges_are_known_while_they_are_open(ranges):
    """Nested ranges, decorators and ones of a subclass are known from their beginning to their end, also on errors."""

    class Own(record_function):
        def __enter__(self):
            return super().__enter__()

    @record_function("decorated")
    def decorated():
        return [each.name for each in ranges.begun.values()]

    with record_function("outer") as outer:
        assert isinstance(outer, record_function)
        with pytest.raises(KeyError), Own("inner"):  # noqa: PT012  # the body is the point
            assert [each.name for each in ranges.begun.values()] == ["outer", "inner"]
            raise KeyError
        assert decorated() == ["outer", "decorated"]
        assert decorated() == ["outer", "decorated"]
    assert not ranges.begun
    assert not ranges.ending
    assert not ranges.put_off


def test_what_was_ended_here_is_left_quietly(ranges):
    """A range that was ended before its block is left does nothing then, and its object can be used again."""
    user = record_function("user")
    with user:
        ranges.end_all()
        assert not ranges.begun
    assert user.run_callbacks_on_exit
    with user:
        assert list(ranges.begun.values()) == [user]
    assert not ranges.begun


def test_a_range_from_before_is_put_off(ranges):
    """The end of a range that this recording did not see begin comes when it has stopped."""
    with record_function("outer"):
        pass
    ranges.close()
    user = record_function("user")
    user.__enter__()
    again = watch()
    user.__exit__(None, None, None)
    assert again.put_off == [user.record]
    assert user.run_callbacks_on_exit
    again.close()
    assert not again.put_off


def test_what_another_profiler_may_still_hold_is_kept(monkeypatch):
    """Where another profiler took over, what was put off waits until none records."""
    user = record_function("user")
    user.__enter__()
    ranges = watch()
    user.__exit__(None, None, None)
    monkeypatch.setattr(torch_ranges, "_recording", lambda: True)
    ranges.close()
    assert torch_ranges._kept == [user.record]
    monkeypatch.setattr(torch_ranges, "_recording", lambda: False)
    watch().close()
    assert not torch_ranges._kept


def test_a_range_that_waits_for_a_future(ranges):
    """It is open until then, is ended with the recording, and the future's own end of it is harmless."""
    first, second = torch.futures.Future(), torch.futures.Future()
    with record_function("first") as early:
        answer = early._call_end_callbacks_on_future(first)
    with record_function("second") as late:
        other = late._call_end_callbacks_on_future(second)
    assert len(ranges.begun) == 2
    first.set_result(1)
    ranges.end_all()
    assert not ranges.begun
    second.set_result(2)
    assert (answer.wait(), other.wait()) == (1, 2)


def test_a_foreign_patch_is_not_undone():
    """A method that somebody patched meanwhile stays theirs; ours, which it calls, is harmless and is not doubled."""
    original = record_function.__enter__, record_function.__exit__
    calls = []
    ranges = watch()
    inner_enter, inner_exit = record_function.__enter__, record_function.__exit__

    def enter(self):
        calls.append("enter")
        return inner_enter(self)

    def leave(self, *exception):
        calls.append("exit")
        return inner_exit(self, *exception)

    record_function.__enter__, record_function.__exit__ = enter, leave
    try:
        ranges.close()
        assert methods() == [enter, leave]
        with record_function("user"):
            assert not ranges.begun
        again = watch()
        with record_function("user") as user:
            assert list(again.begun.values()) == [user]
        assert not again.begun
        assert not again.put_off
        again.close()
        assert methods() == [enter, leave]
        assert calls == ["enter", "exit"] * 2
    finally:
        record_function.__enter__, record_function.__exit__ = original


def test_an_end_in_another_thread_is_waited_for(monkeypatch, ranges):
    """A range that another thread is just ending has ended before the recording stops, and is ended once."""
    leaving, go, ends = threading.Event(), threading.Event(), []
    original = torch.ops.profiler._record_function_exit._RecordFunction

    def slowly(record):
        leaving.set()
        assert go.wait(10)
        ends.append(record)
        return original(record)

    def user():
        with record_function("user"):
            monkeypatch.setattr(torch.ops.profiler._record_function_exit, "_RecordFunction", slowly)

    thread = threading.Thread(target=user)
    thread.start()
    assert leaving.wait(10)
    threading.Timer(0.05, go.set).start()
    ranges.end_all()
    assert len(ends) == 1
    thread.join()


def test_many_threads_while_recordings_come_and_go():
    """Ranges of four threads pass through two hundred recordings, and none is left over."""
    over = threading.Event()
    failures = []

    def body():
        try:
            while not over.is_set():
                with record_function("outer"), record_function("inner"):
                    pass
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=body) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        ranges = watch()
        ranges.end_all()
        ranges.close()
    over.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert not ranges.ending


@pytest.mark.parametrize("missing", ["record", "run_callbacks_on_exit", "operator", "__exit__"])
def test_another_torch(monkeypatch, caplog, missing):
    """Where torch lacks what is relied on, nothing is watched or patched, and that is said once."""
    monkeypatch.setattr(torch_ranges, "_warned", False)
    if missing == "operator":
        monkeypatch.setattr(torch.ops.profiler, "_record_function_exit", None)
    elif missing == "__exit__":
        monkeypatch.delattr(record_function, "__exit__")
    else:
        made = record_function.__init__

        def lacking(self, *arguments):
            made(self, *arguments)
            delattr(self, missing)

        monkeypatch.setattr(record_function, "__init__", lacking)
    with caplog.at_level(logging.WARNING, "profwin"):
        assert watch() is None
        assert watch() is None
    (record,) = caplog.records
    assert "not watched" in record.getMessage()
    assert torch_ranges._current is None
    monkeypatch.undo()


def compiled(x):
    """Open a range in a compiled function."""
    with record_function("part"):
        y = x.sin()
    return y.cos()


def scripted(x: torch.Tensor) -> torch.Tensor:
    """Open a range in a scripted function."""
    with torch.autograd.profiler.record_function("part"):
        y = x.sin()
    return y.cos()


@record_function("decorated")
def decorated(x):
    """Be a range itself."""
    return x.sin()


@pytest.mark.parametrize("function", [compiled, decorated])
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_compiled_ranges(function, captured, first):
    """Graphs stay whole, and one compilation serves while ranges are watched and while not, whichever came first."""
    torch._dynamo.reset()
    counter = CompileCounter()
    call = torch.compile(function, backend=counter, fullgraph=True)
    with torch._dynamo.config.patch(capture_profiler_record_function=captured):
        for watched in [first, not first] * 2:
            ranges = watch() if watched else None
            call(torch.ones(3))
            if ranges is not None:
                ranges.close()
    assert counter.frame_count == 1
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripted_ranges(ranges):
    """TorchScript compiles a range while ranges are watched."""
    assert torch.jit.script(scripted)(torch.ones(1)).item() == torch.ones(1).sin().cos().item()
