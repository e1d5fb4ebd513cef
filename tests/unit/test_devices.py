"""Which devices are locked for an engine: those that it says, those that are given, or none, and then it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import profwin
from profwin.configuration import current
from profwin.engines import ObjectEngine
from profwin.registry import device
from profwin.testing import RecordingEngine


class Server:
    """What the keys are found by, of an engine that records elsewhere."""

    name, in_process = "a server", False

    def __init__(self, devices=None):
        self.devices = devices


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """Configure; return a function that finds keys. This process has a context on a card."""
    monkeypatch.setattr(device, "contexts", lambda: ("GPU-mine",))

    def find(engine=None, names=None, **settings):
        if current() is None:
            profwin.configure(steps="1", output=str(tmp_path), **settings)
        return current().keys(names, engine)

    return find


def findings(folder):
    """Return the findings in all journals, as code and detail."""
    lines = [line for path in Path(folder).rglob("*.jsonl") for line in path.read_text().splitlines()]
    records = [json.loads(line) for line in lines]
    return [(record["code"], record["detail"]) for record in records if record.get("kind") == "finding"]


def test_an_engine_elsewhere_that_does_not_say_is_unguarded(keys, tmp_path, caplog):
    """What this process uses is no guess at what a server uses: no key, and one finding for each engine."""
    for _ in range(2):
        assert keys(Server()) == ()
    other = Server()
    other.name = "another"
    assert keys(other) == ()
    profwin.shutdown()
    found = findings(tmp_path)
    assert [code for code, _ in found] == ["engine-unguarded"] * 2
    assert "a server" in found[0][1]
    assert "another" in found[1][1]
    assert "pass devices=" in caplog.text


def test_what_it_says_goes_before_what_is_given(keys, tmp_path):
    """Its own devices, else the window's, else the settings'; none of these is a finding."""
    assert keys(Server(("pretend:own",)), "pretend:given", devices="pretend:set") == ("pretend-own",)
    assert keys(Server(), "pretend:given") == ("pretend-given",)
    assert keys(Server(), ["pretend:b", "pretend:a"]) == ("pretend-a", "pretend-b")
    assert keys(Server()) == ("pretend-set",)
    profwin.shutdown()
    assert not findings(tmp_path)


def test_an_engine_that_uses_none_is_not_unguarded(keys, tmp_path):
    """A server that was forbidden all devices locks none, unless some are given."""
    assert keys(Server(())) == ()
    assert keys(Server(()), "pretend:given") == ("pretend-given",)
    profwin.shutdown()
    assert not findings(tmp_path)


def test_objects_and_engines_of_this_process_use_its_devices(keys, tmp_path):
    """So does what records here itself."""
    inside = Server()
    inside.in_process = True
    assert keys(inside) == keys(ObjectEngine(RecordingEngine())) == keys() == ("GPU-mine",)
    profwin.shutdown()
    assert not findings(tmp_path)


def test_an_accelerator_without_a_rule_is_said_once(keys, tmp_path, monkeypatch):
    """It has no key; the journal says so once."""
    monkeypatch.setattr(device, "contexts", lambda: ())
    monkeypatch.setattr(device, "unguarded", lambda: "no rule")
    for _ in range(2):
        assert keys() == ()
    profwin.shutdown()
    assert findings(tmp_path) == [("unguarded", "no rule")]


def test_a_wrong_name_is_refused(keys):
    """As everywhere."""
    with pytest.raises(ValueError, match="devices='cuda9'"):
        keys(Server(), "cuda9")
