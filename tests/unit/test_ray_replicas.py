"""Which objects of a program stand for Ray actors that record, and what a plan's loop makes of them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ray", reason="ray is not installed: handles of actors are taken as it makes them")

import profwin
from profwin.configuration import current
from profwin.engines import adapt
from profwin.ray.replicas import served
from profwin.testing import read_record


class ActorHandle:
    """What is taken for a handle of Ray's."""

    def __init__(self, number):
        self._actor_id = SimpleNamespace(hex=lambda: f"{number:032x}")
        self.__ray_call__ = None


@pytest.fixture
def asked(monkeypatch):
    """Return how often agents were asked for, and a list of the cluster's nodes."""
    found = SimpleNamespace(agents=0, nodes=["one"])

    def agents():
        found.agents += 1

    monkeypatch.setattr("profwin.ray.nodes.nodes", lambda: found.nodes)
    monkeypatch.setattr(sys.modules["profwin.ray.agents"], "agents", agents)
    return found


@pytest.mark.parametrize(
    "found",
    [
        None, [], (), MagicMock(), [MagicMock()], [object()], [SimpleNamespace(servers=[object()])], "text",
        SimpleNamespace(replicas=[object()]), SimpleNamespace(replicas=MagicMock()),
    ],
)  # fmt: skip
def test_other_objects(asked, found):
    """Whatever is no handle, and holds none, is left to the plan's engine."""
    assert served(found) is None
    assert asked.agents == 0


def test_servers_of_replicas(asked):
    """Each server of each replica is an engine that may be told to stop; so is a handle itself."""
    replicas = [SimpleNamespace(servers=[ActorHandle(1), ActorHandle(2)]), ActorHandle(3)]
    engines = served(replicas)
    assert [engine.elsewhere[0][-1] for engine in engines] == ["1", "2", "3"]
    assert all(engine.revocable for engine in engines)
    assert asked.agents == 0


def test_several_nodes(asked):
    """Where there are several nodes, they get agents, by which the workers there know the step."""
    asked.nodes = ["one", "two"]
    assert served([ActorHandle(1)])
    assert asked.agents == 1


def test_replicas_that_come_and_go(asked):
    """What holds them is looked at anew for each window; agents are seen to once, when there are some."""
    asked.nodes = ["one", "two"]
    holder = SimpleNamespace(replicas=[])
    engine = served(holder)
    assert engine.present() == []
    assert asked.agents == 0
    for numbers in ([1, 2], [2, 3], []):
        holder.replicas = [SimpleNamespace(servers=[ActorHandle(number)]) for number in numbers]
        assert [each.elsewhere[0][-1] for each in adapt(engine).parts] == [str(number) for number in numbers]
        assert asked.agents == 1


@pytest.mark.parametrize("selected", ["1-2", "1"])
def test_a_window_while_none_is_there(asked, tmp_path, selected):
    """It says which step the loop is at, and that is all: nothing is recorded, least of all in this process."""
    profwin.configure(steps=selected, backend="record", devices="pretend:a", output=str(tmp_path), run="a")
    with profwin.rollout_window(1), profwin.rollout_window(2, engine=served(SimpleNamespace(replicas=[]))) as window:
        assert not window.recorded
        assert current().position.board.read("rollout").step == 2
    profwin.shutdown()
    record = read_record(str(tmp_path / "a"))
    assert [(each.step, each.reason) for each in record.collections] == [(1, "end")]
    assert [each.step for each in record.windows] == [1]
    assert [code for code, _ in record.findings] == ["no-stages"]
