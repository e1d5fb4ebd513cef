"""Calls to actors, without Ray: answers that come at once, late, one by one, or not; asking again; no cluster."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late

import pytest

pytest.importorskip("ray", reason="ray is not installed: its own ways in are imported")

import ray

from profwin.engines.together import Request, together
from profwin.ray import call as module
from profwin.ray.call import NOT_CONNECTED, Call

PATIENCE = 20.0


class Handle:
    """An actor whose answers are given beforehand, one for each time that it is asked; None: it does not answer."""

    def __init__(self, *answers):
        self.answers, self.asked, self.references = list(answers), [], []

    @property
    def __ray_call__(self):
        return self

    def remote(self, work):
        """Take a call."""
        self.asked.append(work)
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        reference = Reference()
        self.references.append(reference)
        if answer is not None:
            reference.give(answer)
        return reference


class Reference:
    """To an answer."""

    def __init__(self):
        self.answer = Future()

    def give(self, answer):
        """Answer."""
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)

    def future(self):
        """Return what the answer comes in."""
        return self.answer


@pytest.fixture(autouse=True)
def connected(monkeypatch):
    """Be connected to no cluster; return what Ray was asked to wait for."""
    waited = []

    def get(references, timeout):
        waited.append(len(references))
        deadline = time.monotonic() + timeout
        try:
            return [each.answer.result(max(0.0, deadline - time.monotonic())) for each in references]
        except (Late, TimeoutError):
            raise ray.exceptions.GetTimeoutError from None

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(module, "_has_loop", lambda: False)
    monkeypatch.setattr(module, "_BRISK", 0.05)
    return waited


def test_answers_of_all_at_once(connected):
    """Ray is asked once for the answers of all."""
    handles = [Handle({"number": number}) for number in range(10)]
    calls = [Call(handle, str, PATIENCE) for handle in handles]
    assert not any(call.done for call in calls)
    Call.gather(calls, PATIENCE)
    assert connected == [10]
    assert [call.result() for call in calls] == [{"number": number} for number in range(10)]
    assert not any(call.failed for call in calls)
    assert [handle.asked for handle in handles] == [[str]] * 10


@pytest.mark.parametrize("has_loop", [False, True])
def test_one_that_fails_and_one_that_is_slow(connected, monkeypatch, has_loop):
    """Who fails is seen while another is waited for; in an actor with an event loop Ray itself waits for nobody."""
    monkeypatch.setattr(module, "_has_loop", lambda: has_loop)
    slow, bad = Handle(None), Handle(None)
    calls = [Call(slow, str, PATIENCE), Call(bad, str, PATIENCE)]
    gives = [threading.Timer(0.2, bad.references[0].give, [ValueError("no")])]
    gives[0].start()
    while not calls[1].done:
        Call.gather(calls, 1000.0)
    assert (calls[0].done, calls[1].failed) == (False, True)
    with pytest.raises(ValueError, match="no"):
        calls[1].result()
    gives.append(threading.Timer(0.1, slow.references[0].give, [{}]))
    gives[1].start()
    assert calls[0].result() == {}
    for each in gives:
        each.join()
    assert len(connected) == (0 if has_loop else 1)


def test_late():
    """Who does not answer in time is late, not failed; and an answer that has come by then counts."""
    handle = Handle(None)
    call = Call(handle, str, 0.1)
    with pytest.raises(TimeoutError, match="not answered in time"):
        call.result()
    assert not call.failed
    in_time = Call(Handle({"a": 1}), str, 0.0)
    Call.gather([in_time], 1.0)
    assert in_time.result() == {"a": 1}


def test_asking_again():
    """A pending answer is asked for again, with the same work, until there is one or the time is over."""
    handle = Handle({"pending": True}, {"pending": True}, {"known": True})
    assert Call(handle, str, PATIENCE).result() == {"known": True}
    assert handle.asked == [str] * 3
    with pytest.raises(TimeoutError):
        Call(Handle(*[{"pending": True}] * 100), str, 0.1).result()


def test_what_cannot_be_sent(monkeypatch):
    """It is told to who waits for the answer; a process that is not connected must not be connected by this."""
    call = Call(Handle(OSError("gone")), str, PATIENCE)
    assert call.failed
    with pytest.raises(OSError, match="gone"):
        call.result()
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    handle = Handle()
    with pytest.raises(RuntimeError, match=NOT_CONNECTED[:30]):
        Call(handle, str, PATIENCE).result()
    assert handle.asked == []


def test_ray_is_shut_down_meanwhile(monkeypatch):
    """No answer comes any more, so nobody waits for one; one that has come before counts."""
    calls, late = [Call(Handle({"a": 1}), str, PATIENCE), Call(Handle(None), str, PATIENCE)], Handle(None)
    Call.gather(calls[:1], PATIENCE)
    calls.append(Call(late, str, PATIENCE))
    calls[2]._listen()
    late.references[0].give({"a": 2})
    monkeypatch.setattr(module, "_connection", lambda: 0)
    assert [calls[number].result() for number in (0, 2)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(RuntimeError, match=NOT_CONNECTED[:30]):
        calls[1].result()


def test_in_another_thread(connected):
    """Beside the main thread nothing waits in Ray, which ends what does when it is shut down."""
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(Call(Handle({"a": 1}), str, PATIENCE).result()))
    thread.start()
    thread.join()
    assert (outcomes, connected) == ([{"a": 1}], [])


def test_in_a_round():
    """The calls of a round are waited for together, also those that are asked again or are slow."""
    handles = [Handle({"a": 0}), Handle({"pending": True}, {"a": 1}), Handle(None), Handle(ValueError("no"))]
    answers = {}

    def work(number):
        call = Call(handles[number], str, PATIENCE)
        yield call
        answers[number] = call.result()["a"]
        if number == 1:
            handles[2].references[0].give({"a": 2})

    works = [(Request(lambda number=number: work(number)), True) for number in range(4)]
    outcomes, interrupt = together(works)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), type(None), ValueError]
    assert (answers, interrupt) == ({0: 0, 1: 1, 2: 2}, None)
