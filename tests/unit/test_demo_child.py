"""The demo's child processes: requests and replies, errors, and their end."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from profwin.demo.child import REPORT, Child, ChildError

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE = """
import os, signal, time
from profwin.demo.child import REPORT, answer, connect, connect_peer

class Target:
    def double(self, number): return 2 * number
    def fail(self): raise ValueError("no")
    def die(self): os.kill(os.getpid(), signal.SIGKILL)
    def leave(self): os._exit(3)
    def sleep(self): time.sleep(0.2)
    def chatter(self): print("chatter", flush=True)
    def report(self, texts):
        for text in texts: pipe.send((REPORT, "ok", text))
    def tell(self, text): connect_peer().send(text)

settings, pipe = connect()
target = Target()
target.settings = lambda: settings
try:
    while True:
        answer(pipe, target, *pipe.recv())
except EOFError:
    pass
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which the child's module is found."""
    (tmp_path / "demo_target.py").write_text(MODULE)
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}


@pytest.fixture
def child(environment: dict[str, str]) -> Iterator[Child]:
    """A child process that serves a few requests."""
    child = Child("target", "demo_target", {"seed": 4}, environment)
    yield child
    child.close()


def test_requests_are_answered_in_order(child: Child) -> None:
    """A child gets its settings, and each request gets its own reply."""
    assert child.call("settings") == {"seed": 4}
    assert child.call("double", number=21) == 42
    first, second = child.send("double", number=1), child.send("double", number=2)
    assert (child.receive(first), child.receive(second)) == (2, 4)


def test_replies_are_kept_for_those_who_asked(child: Child) -> None:
    """A request that is made while another is under way gets its own reply, and the other one later its own."""
    first = child.send("double", number=1)
    assert child.call("double", number=5) == 10
    assert child.receive(first) == 2


def test_reports_are_told_from_replies(child: Child) -> None:
    """What a child reports by itself is received as such, in order, and never as the reply to a request."""
    assert child.call("report", texts=["one", "two"]) is None
    assert [child.receive(REPORT), child.receive(REPORT)] == ["one", "two"]


def test_an_error_reaches_the_caller_and_the_child_goes_on(child: Child) -> None:
    """What a request raises is raised here, with the child's name; the next request is served."""
    with pytest.raises(ChildError, match="the demo's target process: ValueError: no"):
        child.call("fail")
    assert child.call("double", number=3) == 6


@pytest.mark.parametrize(("request_name", "how"), [("die", "signal SIGKILL"), ("leave", "exit status 3")])
def test_a_child_that_ends_is_reported(child: Child, request_name: str, how: str) -> None:
    """A child that ends before it replies raises an error that says how, now and for each later request."""
    for _ in range(2):
        with pytest.raises(ChildError, match=how):
            child.call(request_name)


def test_a_killed_child_is_gone(child: Child) -> None:
    """After kill() the process does not exist any more, and requests fail at once."""
    child.kill()
    assert not os.path.exists(f"/proc/{child.pid}")
    with pytest.raises(ChildError, match="signal SIGKILL"):
        child.call("double", number=1)
    child.close()


def test_closing_ends_the_child(child: Child) -> None:
    """close() lets the child finish what it does and waits until it is gone."""
    child.send("sleep")
    child.close()
    assert not os.path.exists(f"/proc/{child.pid}")


def test_standard_output_is_the_drivers_alone(environment: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    """What a child prints goes to standard error, so that a report on standard output stays whole."""
    child = Child("target", "demo_target", {}, environment)
    child.call("chatter")
    child.close()
    assert capfd.readouterr() == ("", "chatter\n")


def test_ctrl_c_does_not_reach_the_child(child: Child) -> None:
    """The terminal's signal goes to the driver's process group, which a child is not in."""
    assert os.getpgid(child.pid) != os.getpgid(0)
    assert child.call("double", number=1) == 2


def test_an_interrupted_wait_leaves_the_pipe_usable(child: Child) -> None:
    """Ctrl-C while waiting for a reply is raised here, and the child can still be asked."""
    child.call("double", number=1)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            child.call("sleep")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    began = time.monotonic()
    assert child.call("double", number=2) == 4
    assert time.monotonic() - began < 10


def test_two_children_can_share_a_pipe(environment: dict[str, str]) -> None:
    """A child gets its end of a pipe to another one, and nobody else keeps it open."""
    far, near = Pipe()
    child = Child("target", "demo_target", {}, environment, peer=far)
    assert far.closed
    child.call("tell", text="hello")
    assert near.recv() == "hello"
    child.close()
    with pytest.raises(EOFError):
        near.recv()
    near.close()
