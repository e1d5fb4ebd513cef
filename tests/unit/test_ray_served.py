"""Engines on other nodes, without Ray: which node is meant, and what an agent's process does with several engines."""

from __future__ import annotations

import pickle
import threading

import pytest

pytest.importorskip("ray", reason="ray is not installed: what runs in an actor is tried")

import profwin
from profwin.configuration import current
from profwin.engines import VLLMServer, adapt
from profwin.errors import SettingError
from profwin.journal import read
from profwin.ray import eventloop, recorder, served, servers
from profwin.ray.agents import Agents
from profwin.ray.nodes import Node
from profwin.registry.holder import Mark
from profwin.registry.process import identity

OWN, OTHER = "a" * 56, "b" * 56
NODES = [Node(OWN, "head", "10.0.0.1", True, ""), Node(OTHER, "worker", "10.0.0.2", True, "")]
TWINS = [*NODES, Node("c" * 56, "worker", "10.0.0.2", True, "")]


class Engine:
    """An engine that notes what it is told."""

    revocable = True

    def __init__(self, device=None, pids=()):
        self.calls, self.process_ids, self.wrong = [], pids, False
        if device is not None:
            self.devices = [device]

    def start_profile(self):
        """Note it."""
        self.calls.append("start")

    def stop_profile(self):
        """Note it, or fail."""
        self.calls.append("stop")
        if self.wrong:
            raise RuntimeError("it hangs")


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """Set this process up, as an agent's."""
    for module in (recorder, eventloop):
        monkeypatch.setattr(module, "asynchronous", lambda: None)
    for kept in ("_windows", "_over", "_newest"):
        monkeypatch.setattr(recorder, kept, {})
    monkeypatch.setattr(served, "_engines", {})
    profwin.configure(steps="1-2", output=tmp_path)
    return tmp_path


def order(engine, scope="one", step=1):
    """Return what a driver asks for; the engine has come already."""
    data = scope.encode()
    if data not in served._engines:
        adapted = adapt(engine)
        adapted.elsewhere = (scope,)
        served._engines[data] = adapted
    given = {"step": step, "name": "rollout", "version": None, "devices": None, "max_seconds": None}
    return {**given, "engine": data, "label": scope, "scope": scope, "patience": 30.0}


def written(output, kind):
    """Return the records of a kind."""
    return [each for path in output.glob("*/journal/*.jsonl") for each in read(str(path)) if each["kind"] == kind]


@pytest.mark.parametrize(
    ("url", "node", "wanted"),
    [
        ("http://10.0.0.2:8000", None, OTHER), ("http://10.0.0.1:8000", None, None),
        ("http://localhost:8000", None, None), ("http://127.0.0.1:8000", None, None), ("http://[::1]:8000", None, None),
        ("http://worker:8000", None, OTHER), ("http://127.0.0.1:8000", OTHER, OTHER),
        ("http://127.0.0.1:8000", "bbbb", OTHER), ("http://127.0.0.1:8000", "worker", OTHER),
        ("http://127.0.0.1:8000", "10.0.0.2", OTHER), ("http://10.0.0.2:8000", NODES[0], None),
    ],
)  # fmt: skip
def test_where_a_server_is(url, node, wanted):
    """The node is the one that is named, else the one that the URL's host leads to; a loop leads to this one."""
    found = servers.located(VLLMServer(url), node, NODES, OWN)
    assert (None if found is None else found.id) == wanted


@pytest.mark.parametrize(
    ("engine", "node", "known"),
    [
        (VLLMServer("http://10.0.0.9:8000"), None, NODES), (VLLMServer("http://10.0.0.2:8000"), None, TWINS),
        (VLLMServer("http://nowhere.invalid:8000"), None, NODES), (Engine(), None, NODES), (Engine(), "worker", TWINS),
        (Engine(), "", NODES), (Engine(), Node("d" * 56, "gone", "10.0.0.4", False, ""), NODES),
    ],
)  # fmt: skip
def test_where_it_is_not_clear(engine, node, known):
    """Where it is not exactly one node, the error lists those there are."""
    with pytest.raises(SettingError) as caught:
        servers.located(engine, node, known, OWN)
    assert all(each.id in str(caught.value) for each in known)


def test_off():
    """Where profwin is off the engine is what it was."""
    engine = Engine()
    assert Agents(None).engine(engine) is engine


def test_a_list_is_not_one_engine():
    """Several engines are several results."""
    with pytest.raises(SettingError):
        servers.of_node(Agents(None), [Engine()], None, None, None)


def test_an_engine_that_comes_again_is_the_same(monkeypatch):
    """So it knows what it was told before, as a session that it never confirmed to have ended."""
    monkeypatch.setattr(served, "_engines", {})
    data = pickle.dumps(VLLMServer("http://10.0.0.2:8000", token="secret"))
    first = served.carried({"engine": data, "scope": "x"})
    assert served.carried({"engine": bytes(data), "scope": "x"}) is first
    assert first.elsewhere == ("x",)
    for number in range(99):
        served.carried({"engine": pickle.dumps(VLLMServer(f"http://h:{number + 1}")), "scope": "x"})
    assert len(served._engines) == 64


def test_an_engine_that_cannot_be_made_there(configured):
    """As one of a package that is not installed on its node: it is turned away, with the reason."""
    order = {"engine": b"cnowhere\nThing\n.", "label": "Thing", "scope": "x", "devices": None}
    answer = recorder.begin(None, "d.1", {**order, "step": 1, "name": "rollout", "version": None, "max_seconds": None})
    assert (answer["recorded"], answer["reason"]) == (False, "engine")
    assert "No module named 'nowhere'" in answer["detail"]


def test_an_engine_that_cannot_be_pickled(monkeypatch):
    """It is refused at once, where the loop is set up."""
    import ray

    class Context:
        def get_node_id(self):
            return OWN

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get_runtime_context", Context)
    monkeypatch.setattr(servers, "nodes", lambda: NODES)
    engine = Engine()
    engine.lock = threading.Lock()
    with pytest.raises(SettingError) as caught:
        servers.of_node(Agents(None), engine, OTHER, None, None)
    assert "pickle" in str(caught.value)
    assert servers.of_node(Agents(None), engine, OWN, None, None) is engine


@pytest.mark.parametrize("devices", [("pretend:a", "pretend:b"), (None, None)])
def test_engines_of_one_node_have_nothing_to_do_with_each_other(configured, devices):
    """Windows of one name over two engines are begun, in any order, and ended each by itself."""
    one, two = Engine(devices[0]), Engine(devices[1])
    assert recorder.begin(None, "d.2", order(one))["recorded"]
    assert recorder.begin(None, "d.1", order(two, "two"))["recorded"]
    assert (one.calls, two.calls) == (["start"], ["start"])
    assert served.conclude(None, "d.2", order(one))["known"]
    assert (one.calls, two.calls) == (["start", "stop"], ["start"])
    assert served.conclude(None, "d.1", order(two, "two")) == {
        "known": True, "died": "", "problem": "", "stopped": False,
    }  # fmt: skip
    assert two.calls == ["start", "stop"]


def test_a_stop_that_fails_is_told(configured):
    """The driver hears what the journal here has."""
    engine = Engine("pretend:a")
    engine.wrong = True
    assert recorder.begin(None, "d.1", order(engine))["recorded"]
    assert "it hangs" in served.conclude(None, "d.1", order(engine))["problem"]
    assert [state.state for state in current().registry().survey()] == ["unknown"]


def mark(process, run="mine", step=1):
    """Leave a device as an agent does that dies while it holds it."""
    held = current().registry().acquire(["pretend-a"], kind="rollout", run=run, name="rollout", step=step)
    held.set_mark(Mark(process, run, "rollout", step))
    held.release()


def test_what_another_agent_left(configured):
    """The engine is stopped, and the mark taken off, once; where no mark names it, it is left alone."""
    engine = Engine("pretend:a", [1])
    mark([identity(1)])
    assert served.conclude(None, "d.1", order(engine)) == {"known": False, "died": "", "problem": "", "stopped": True}
    assert [state.state for state in current().registry().survey()] == ["free"]
    assert [each["devices"] for each in written(configured, "confirmed")] == [["pretend-a"]]
    assert not served.conclude(None, "d.1", order(engine))["stopped"]
    assert engine.calls == ["stop"]


def test_what_another_agent_left_of_unknown_processes(configured):
    """Where nobody knows the engine's processes its own answer takes the mark off; without one it stays."""
    engine = Engine("pretend:a")
    mark([])
    engine.wrong = True
    assert "it hangs" in served.conclude(None, "d.1", order(engine))["problem"]
    assert [state.state for state in current().registry().survey()] == ["unknown"]
    engine.wrong = False
    assert served.conclude(None, "d.1", order(engine))["stopped"]
    assert [state.state for state in current().registry().survey()] == ["free"]


def test_an_engine_without_devices_is_stopped(configured):
    """There is no mark that would say whether it still records, and a stop too many does no harm."""
    engine = Engine()
    assert served.conclude(None, "d.1", order(engine))["stopped"]
    assert engine.calls == ["stop"]


def test_a_later_window_goes_on(configured):
    """The end of a window that is over does not stop the one that another driver has begun meanwhile."""
    engine = Engine("pretend:a")
    assert recorder.begin(None, "d.1", order(engine))["recorded"]
    assert recorder.begin(None, "e.1", order(engine, step=2))["recorded"]
    assert engine.calls == ["start", "stop", "start"]
    assert served.conclude(None, "d.1", order(engine)) == {
        "known": False, "died": "", "problem": "", "stopped": False,
    }  # fmt: skip
    assert engine.calls == ["start", "stop", "start"]
    assert served.conclude(None, "e.1", order(engine))["known"]
