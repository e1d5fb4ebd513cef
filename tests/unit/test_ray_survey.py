"""What ``profwin locks --cluster`` makes of the nodes' answers, without a cluster."""

from __future__ import annotations

import sys

import pytest

from profwin import cli
from profwin.cli import cluster
from profwin.ray import survey
from profwin.ray.nodes import Node
from profwin.registry.survey import DeviceState


def node(name, alive=True):
    """Return a node."""
    return Node(name * 56, f"host-{name}", "10.0.0.1", alive, "")


def host(name, place, *devices):
    """Return what a node answers."""
    states = [DeviceState(device, "free") for device in devices]
    return survey.Host(name, f"boot of {name}", "/dev/shm/profwin", "device locks are there", (1, place), states)


@pytest.fixture
def answering(monkeypatch):
    """Return a function that makes up a cluster whose nodes answer so."""

    def answer(given):
        monkeypatch.setattr(survey, "nodes", lambda **_: list(given))
        monkeypatch.setattr(survey, "_task", lambda _function, asked, *_: asked)
        monkeypatch.setattr(survey, "answers", lambda asked, _: {each: given[each] for each in asked})
        return survey.survey(None, 1.0)

    return answer


def test_nodes_of_one_host_are_one(answering):
    """Two nodes with one lock directory are one host; two containers of a host with their own are two."""
    found = answering({node("a"): host("one", 1, "d"), node("b"): host("one", 1, "d"), node("c"): host("one", 2, "d")})
    assert [[each.id[0] for each in host.nodes] for host in found.hosts] == [["a", "b"], ["c"]]
    assert found.silent == {}
    lines = cluster._text(found).splitlines()
    assert lines[0] == "all nodes: device locks are there"
    assert [line.split("  ")[0] for line in lines[2:]] == ["one aaaaaaaa, bbbbbbbb", "one cccccccc"]


def test_who_is_silent(answering):
    """A dead node is not asked; of the others the reason is said in one line."""
    errors = {
        node("a"): TimeoutError("it has not answered within 1 s"),
        node("b"): RuntimeError("task failed\nTraceback\nModuleNotFoundError: No module named 'profwin'\n"),
        node("c"): RuntimeError("many\nlines\nand the last \x1b[2J"),
        node("d", alive=False): None,
    }
    found = answering(errors)
    why = {each.id[0]: text for each, text in found.silent.items()}
    assert why["a"] == "it has not answered within 1 s"
    assert why["b"].startswith("profwin cannot be imported there")
    assert why["c"] == "and the last \x1b[2J"
    assert "dead" in why["d"]
    text = cluster._text(found)
    assert "\x1b" not in text
    assert text.count("no answer") == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--node", "a"), ("--address", "a:1"), ("--timeout", "1"), ("--cluster", "--node", "a"),
        ("--cluster", "--confirm", "d"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(capsys, arguments):
    """They are refused before anything is asked."""
    assert cli.main(["locks", *arguments]) == 2
    assert "--cluster" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "soon"])
def test_seconds(capsys, text):
    """A timeout is a number of seconds above 0."""
    with pytest.raises(SystemExit):
        cli.main(["locks", "--cluster", "--timeout", text])
    assert "no number of seconds" in capsys.readouterr().err


def test_without_ray(capsys, monkeypatch):
    """Where Ray is not installed one sentence says so."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert cli.main(["locks", "--cluster"]) == 1
    assert capsys.readouterr().err == "profwin: profwin.ray needs Ray, which is not installed here: pip install ray\n"
