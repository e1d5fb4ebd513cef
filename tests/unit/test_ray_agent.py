"""What a node's agent writes into its host's step board, without a cluster."""

from __future__ import annotations

import os

import pytest

import profwin
from profwin.configuration import current
from profwin.ray.agent import Agent


@pytest.fixture
def session(tmp_path):
    """Return a session that records steps 1, 2 and 4."""
    profwin.configure(steps="1-2,4", output=tmp_path / "out", run="run")
    return current()


def test_agent_ignores_what_is_older(session):
    """Calls that overtake each other leave the newest; each publisher counts for itself."""
    agent, board = Agent("owner"), session.position.board
    agent.follow("a", (3, "rollout", 5, False, -1, False))
    agent.follow("a", (2, "rollout", 4, True, -1, False))
    assert board.read("rollout")[:2] == (5, False)
    agent.follow("b", (0, "rollout", 6, True, 9, False))
    assert board.read("rollout")[:3] == (6, True, 9)


def test_agent_declares_for_who_does(session):
    """It is the agent's process that declares, and then nobody's window guesses which step is trained."""
    agent, board = Agent("owner"), session.position.board
    agent.follow("a", (0, "training", 1, True, -1, False))
    assert board.read("training").declarer == 0
    assert agent.follow("b", (0, "training", 2, True, -1, True)) == os.getpid()
    agent.follow("a", (1, "training", 3, False, -1, False))
    assert board.read("training")[:4] == (2, True, -1, os.getpid())


def test_agent_of_a_process_that_is_off():
    """It says so, and refuses to follow."""
    agent = Agent("owner")
    assert agent.identity().problem == "profwin is off in the agent's process"
    with pytest.raises(RuntimeError, match="profwin is off"):
        agent.follow("a", (0, "rollout", 1, True, -1, False))
