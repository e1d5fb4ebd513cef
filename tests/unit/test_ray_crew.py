"""What is told to node agents and when, without a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading

import pytest

import profwin
import profwin.ray
from profwin.configuration import current
from profwin.errors import SettingError, StateError
from profwin.ray.relay import Relay


class Crew:
    """Stands for the agents; notes what it would tell them."""

    def __init__(self, session):
        self.session, self.mutex, self.timeout = session, threading.RLock(), 30.0
        self.news, self.online, self.said = [], True, []

    def connected(self):
        """Stand for the real one."""
        return self.online

    def clocks(self):
        """Stand for the real one."""
        return {}

    def look(self, *_, **__):
        """Stand for the real one."""

    def all(self):
        """Stand for the real one."""
        return []

    def elsewhere(self):
        """Stand for the real one."""
        return []

    def ask(self, seats, call, deadline):
        """Note what would be told."""
        self.news.append([each[1:] for each in call.args[0]])
        return {}

    def note(self, code, node, detail):
        """Note it."""
        self.said.append((code, detail))

    def end(self):
        """Stand for the real one."""


@pytest.fixture
def session(tmp_path):
    """Return a session that records steps 1, 2 and 4."""
    profwin.configure(steps="1-2,4", output=tmp_path / "out", run="run")
    return current()


@pytest.fixture
def crew(session):
    """Return a stand-in for the agents that this process's steps are told to."""
    crew = Crew(session)
    session.position.relay = Relay(crew)
    return crew


def told(crew, side="training"):
    """Return what the agents were told of a side since it was asked last: step and whether it is selected."""
    found = [(each[1], each[2]) for news in crew.news for each in news if each[0] == side]
    crew.news.clear()
    return [key for key, _ in itertools.groupby(found)]


def test_windows_are_told_where_it_matters(crew):
    """Selected steps are told, and the first that is not after one that is; the same step again is not."""
    seen = []
    for step in (0, 1, 1, 2, 3, 4, 5, 6, 7):
        with profwin.rollout_window(step):
            seen.append(told(crew))
    assert seen == [[], [(1, True)], [], [(2, True)], [(3, False)], [(4, True)], [(5, False)], [], []]


def test_training_steps_are_told_where_it_matters(crew):
    """The first is told in any case, since windows guess no more; then each that is selected, and its end."""
    seen = []
    for step in (0, 1, 3, 5):
        with profwin.training_step(step):
            seen.append(told(crew))
        seen.append(told(crew))
    assert seen == [[(0, False)], [], [(1, True)], [(1, False)], [], [], [], []]


@pytest.mark.parametrize("looped", [False, True])
def test_weight_syncs_are_told(crew, looped):
    """A trainer's sync says which step is trained from then on; in a coroutine it is told beside the event loop."""
    plain, threads, main = crew.ask, [], threading.current_thread()

    def ask(*arguments):
        threads.append(threading.current_thread() is main)
        return plain(*arguments)

    async def sync(version):
        async with profwin.weight_sync(version, window=False):
            pass

    crew.ask = ask
    for version in (0, 1, 2):
        if looped:
            asyncio.run(sync(version))
        else:
            with profwin.weight_sync(version, window=False):
                pass
    assert told(crew) == [(1, True), (1, False), (2, True), (2, False)]
    assert set(threads) == {not looped}


def test_stages_are_not_told(crew):
    """Entering a stage, sync or async, asks nobody for anything."""
    with profwin.training_step(1):
        crew.news.clear()
        with profwin.training_stage("a"):
            pass

        async def main():
            async with profwin.training_stage("b"):
                pass

        asyncio.run(main())
        assert crew.news == []


def test_what_nobody_confirmed_is_told_again(crew):
    """Without a connection nothing is told; with one again the next step says it, though it is not selected."""
    crew.online = False
    for step in (2, 3):
        with profwin.rollout_window(step):
            pass
    crew.online = True
    for step in (6, 7):
        with profwin.rollout_window(step):
            pass
    assert told(crew) == [(3, False)]


def test_versions_stay_with_their_step(crew):
    """A window that does not say the version of a step's weights does not take away what was said of it."""
    for version in (7, None):
        with profwin.rollout_window(1, weight_version=version):
            pass
    assert [each[3] for news in crew.news for each in news] == [7, 7]


def test_what_was_said_before_there_were_agents(session):
    """Agents that come in the middle of a selected step are told it, and after one that is not, nothing."""
    for step, expected in ((1, [(1, True)]), (3, [])):
        with profwin.rollout_window(step):
            crew = Crew(session)
            session.position.tell(Relay(crew))
            session.position.settle()
        assert told(crew) == expected
        session.position.relay = None


def test_errors_of_ray_are_said_and_survived(crew):
    """Whatever happens when agents are told, the block runs."""

    def ask(*_):
        raise ConnectionError("the cluster is gone")

    crew.ask = ask
    with profwin.rollout_window(1):
        pass
    assert crew.said == [("agent-failed", "the nodes' agents cannot be told the step: the cluster is gone")]


def test_ctrl_c_while_agents_are_told(crew):
    """It leaves neither a window open nor a step begun."""

    def ask(*_):
        raise KeyboardInterrupt

    plain, crew.ask = crew.ask, ask
    for block in (profwin.rollout_window(1), profwin.training_step(1)):
        with pytest.raises(KeyboardInterrupt), block:
            raise AssertionError
    crew.ask = plain
    session = current()
    assert session.owner.collections == []
    assert session.position.training_side() == (1, False)


@pytest.mark.parametrize("block", [profwin.training_step, profwin.rollout_window])
def test_coroutines_wait_beside_their_loop(crew, block):
    """The event loop goes on while agents are told, and a cancelled step is over when they have answered."""
    answer, asked = threading.Event(), threading.Event()
    plain = crew.ask

    def ask(*arguments):
        asked.set()
        assert answer.wait(60)
        return plain(*arguments)

    crew.ask = ask
    inside = []

    async def enter(step):
        async with block(step):
            inside.append(step)

    async def main():
        entering = asyncio.create_task(enter(1))
        while not asked.is_set():  # the loop turns
            await asyncio.sleep(0.01)
        assert inside == []
        answer.set()
        await entering
        assert inside == [1]
        asked.clear()
        answer.clear()
        cancelled = asyncio.create_task(enter(2))
        while not asked.is_set():
            await asyncio.sleep(0.01)
        cancelled.cancel()
        answer.set()
        with contextlib.suppress(asyncio.CancelledError):
            await cancelled
        assert cancelled.cancelled()

    asyncio.run(main())
    assert inside == [1]
    assert current().owner.collections == []
    if block is profwin.training_step:
        assert current().position.training_side() == (2, False)


def test_one_thread_waits_for_what_another_tells(crew):
    """A block does not begin before its step is confirmed, though another thread has taken it along."""
    first, second, answer = threading.Event(), threading.Event(), threading.Event()
    plain, order = crew.ask, []

    def ask(*arguments):
        first.set()
        assert second.wait(60)
        assert answer.wait(60)
        order.append("told")
        return plain(*arguments)

    crew.ask = ask
    relay = crew.session.position.relay
    relay.publish("rollout", 1, True, -1, False)
    teller = threading.Thread(target=relay.settle)
    teller.start()
    assert first.wait(60)

    def wait():
        second.set()
        relay.settle()
        order.append("waited")

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert second.wait(60)
    answer.set()
    for thread in (teller, waiter):
        thread.join(60)
    assert order == ["told", "waited"]


def test_agents_without_what_they_need(session):
    """Wrong arguments and a process without a connection are refused; where profwin is off nothing is started."""
    ray = pytest.importorskip("ray", reason="ray is not installed: its absence is tried elsewhere")
    assert not ray.is_initialized()
    with pytest.raises(StateError, match=r"call ray\.init"):
        profwin.ray.agents()
    for wrong in ({"timeout": 0}, {"timeout": None}, {"nodes": "abc"}):
        with pytest.raises(SettingError):
            profwin.ray.agents(**wrong)
    profwin.shutdown()
    with profwin.ray.agents() as agents:
        assert (agents.nodes(), agents.status(), agents.each(print)) == ([], {"nodes": {}}, {})
