"""What profwin does in an actor's process, without Ray: its answers to a driver, whatever is wrong."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("ray", reason="ray is not installed: its own ways in are imported")

import profwin
from profwin.journal import read
from profwin.ray import eventloop, recorder


class Actor:
    """An actor's instance."""

    def __init__(self, **attributes):
        self.calls = []
        vars(self).update(attributes)

    def start_profile(self):
        """Note it."""
        self.calls.append("start")

    def stop_profile(self):
        """Note it."""
        self.calls.append("stop")


def order(**values):
    """Return what a driver asks for."""
    given = {"step": 1, "name": "rollout", "version": None, "start": "start_profile", "stop": "stop_profile"}
    return {**given, "devices": None, "revocable": False, "max_seconds": None, **values}


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Set this process up, as an actor's whose calls are not run in an event loop."""
    for module in (recorder, eventloop):
        monkeypatch.setattr(module, "asynchronous", lambda: None)
    monkeypatch.setattr(recorder, "_windows", {})
    monkeypatch.setattr(recorder, "_over", {})
    profwin.configure(steps="1", output=tmp_path, devices="pretend:a")


def test_off():
    """A process that is not configured says so."""
    answer = recorder.begin(Actor(), "t", order())
    assert (answer["recorded"], answer["reason"]) == (False, "off")


def test_window(configured, tmp_path):
    """A window is opened once for each token, and closed once; the journal has the driver's version and token."""
    actor = Actor()
    answer = recorder.begin(actor, "t", order(version=7))
    process = answer.pop("process")
    assert answer == {"recorded": True, "reason": "", "detail": ""}
    assert recorder.end(actor, "t") == {"known": True, "detail": ""}
    assert recorder.end(actor, "t") == {"known": True, "detail": ""}
    assert recorder.begin(actor, "t", order())["reason"] == "ended"
    assert actor.calls == ["start", "stop"]
    [journal] = tmp_path.glob("*/journal/*.jsonl")
    first, *records = read(str(journal))
    assert [each["version"] for each in records if each["kind"] == "open"] == [7]
    assert [each["token"] for each in records if each["kind"] == "enter"] == ["t"]
    assert process == tuple(first[name] for name in ("pid", "start", "boot", "host", "run"))


def test_end_before_begin(configured):
    """A start that arrives after its stop starts nothing, and others are as before."""
    actor = Actor()
    assert recorder.end(actor, "t") == {"known": False, "detail": ""}
    assert recorder.begin(actor, "t", order())["reason"] == "ended"
    assert actor.calls == []
    for number in range(400):
        recorder.end(actor, str(number))
    assert len(recorder._over) == 256


def test_left_open(configured):
    """A window of the same name that a driver has left open is closed first; one of another name is not."""
    actor, other = Actor(), Actor(devices=["pretend:b"])
    recorder.begin(other, "o", order(name="reward"))
    recorder.begin(actor, "t", order())
    recorder.begin(actor, "u", order())
    assert (actor.calls, other.calls) == (["start", "stop", "start"], ["start"])
    assert [recorder.end(actor, token)["known"] for token in "tuo"] == [False, True, True]


@pytest.mark.parametrize(
    ("values", "words"),
    [({"start": "begin"}, "the method begin"), ({"devices": ("gpu",)}, "devices"), ({"step": 2}, "not selected")],
)
def test_refused(configured, values, words):
    """What cannot be is answered and not raised, and nothing is started."""
    actor = Actor()
    answer = recorder.begin(actor, "t", order(**values))
    assert answer["recorded"] is False
    assert words in answer["detail"]
    assert (actor.calls, recorder._windows) == ([], {})


def test_strict(tmp_path, configured):
    """Under ``strict`` a failure there is an answer, too."""
    profwin.configure(steps="1", output=tmp_path, devices="pretend:a", strict=True)
    actor = Actor(start_profile=lambda: 1 / 0)
    answer = recorder.begin(actor, "t", order())
    assert answer["reason"] == "engine"
    assert "ZeroDivisionError" in answer["detail"]
    assert (actor.calls, recorder._windows) == (["stop"], {})


def test_whose_death_frees(configured):
    """The mark of an actor names its process and those below it, unless the actor says which."""
    engine = recorder._engine(Actor(), order())
    assert os.getpid() in engine.process_ids
    assert recorder._engine(Actor(process_ids=[1]), order()).process_ids == (1,)


def test_devices_that_ray_gave(configured, tmp_path, monkeypatch):
    """Ray's devices count where the actor, its settings and its contexts say nothing."""
    import ray

    class Context:
        def get_accelerator_ids(self):
            return {"NPU": ["5"]}

    monkeypatch.setattr(ray, "get_runtime_context", Context)
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "5")
    assert recorder._granted(recorder._engine(Actor(), order()), order()) is None
    profwin.configure(steps="1", output=tmp_path)
    assert recorder._granted(recorder._engine(Actor(devices=["pretend:b"]), order()), order()) is None
    actor = Actor()
    assert recorder._granted(recorder._engine(actor, order()), order()) == ("npu:0",)
    assert recorder.begin(actor, "t", order())["recorded"]
    from profwin.configuration import current

    [collection] = current().owner.collections
    assert collection.keys[0].endswith("-5")
    recorder.end(actor, "t")
