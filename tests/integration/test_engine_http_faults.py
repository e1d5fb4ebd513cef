"""HTTP servers that misbehave: what a window then says, what is stopped, and whether its device is free."""

from __future__ import annotations

import time

import pytest
from core_support import Evidence
from stand_in_support import DEVICE, Server, configure

import profwin
from profwin import rollout_window
from profwin.engines import SGLangServer, VLLMServer
from profwin.evidence.check import check
from profwin.registry.device import keys_of
from profwin.registry.lock import Held, Registry

KINDS = pytest.mark.parametrize("kind", ["vllm", "sglang"])


@pytest.fixture(params=["vllm", "sglang"])
def server(request, tmp_path):
    """Return a stand-in server, with this process configured."""
    with Server(request.param, tmp_path / "traces") as started:
        configure(tmp_path / "out", wait_budget=60.0)
        yield started


@pytest.fixture
def vllm(tmp_path):
    """Return a stand-in for a vLLM server, with this process configured."""
    with Server("vllm", tmp_path / "traces") as started:
        configure(tmp_path / "out", wait_budget=60.0)
        yield started


def _window(engine, step=1):
    """Open and leave a window; return whether it was recorded."""
    with rollout_window(step, engine=engine) as window:
        return window.recorded


def _skip(tmp_path):
    profwin.shutdown()
    (skip,) = Evidence(tmp_path / "out").of("skip")
    return skip["reason"], skip["detail"]


def _free() -> bool:
    """Say whether the device is neither held nor marked."""
    outcome = Registry().acquire(keys_of((DEVICE,)), kind="training", run="r", name="n", step=1)
    if isinstance(outcome, Held):
        outcome.release()
        return True
    return False


def test_nothing_listens(tmp_path):
    """A server that is not there is said so at once; nothing is stopped, and the device is free."""
    configure(tmp_path / "out")
    assert not _window(VLLMServer("http://127.0.0.1:9", devices=DEVICE))
    reason, detail = _skip(tmp_path)
    assert reason == "engine"
    assert "refused to start its profiler: no connection" in detail
    assert _free()


def test_no_profiler(tmp_path):
    """A vLLM server without its option says which option that is; it is not stopped."""
    with Server("vllm", tmp_path / "traces", profiler="none") as server:
        configure(tmp_path / "out")
        assert not _window(server.engine())
        assert server.told == ["start"]
    reason, detail = _skip(tmp_path)
    assert reason == "engine"
    assert "--profiler-config" in detail
    assert _free()


def test_another_client_records(vllm, tmp_path):
    """A second client's session is left alone: the window is skipped, says so, and the session goes on."""
    assert vllm.post("/start_profile") == 200
    assert not _window(vllm.engine())
    assert vllm.recording
    assert vllm.told == ["start", "start"]
    assert _free()
    reason, detail = _skip(tmp_path)
    assert reason == "foreign"
    assert vllm.url in detail
    assert "not started by profwin" in detail
    assert [note["code"] for note in Evidence(tmp_path / "out").of("finding")] == ["foreign-session"]


def test_another_client_of_sglang_records(tmp_path):
    """SGLang refuses what is to begin at a step while another session is open, though it does not say why."""
    with Server("sglang", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        server.post("/start_profile")
        assert not _window(server.engine(start_step=1))
        assert server.recording
        server.faults(start="busy")
        assert not _window(server.engine(), step=2)
        assert server.recording
        assert server.told == ["start"] * 3
    profwin.shutdown()
    assert [skip["reason"] for skip in Evidence(tmp_path / "out").of("skip")] == ["foreign", "foreign"]


def test_another_client_of_sglang_is_taken_over(tmp_path):
    """A plain start takes over what SGLang records; that its files have another name is found afterwards."""
    with Server("sglang", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        server.post("/start_profile")
        assert _window(server.engine())
    (note,) = Evidence(tmp_path / "out").of("finding")
    assert note["code"] == "engine-silent"
    assert "another client's session" in note["detail"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("refuse:400", "does not take the request: 400 (it says 400)"),
        ("refuse:422", "does not take the request"),
        ("refuse:403", "pass token="),
        ("away", "it leads to http://elsewhere/start_profile"),
    ],
)
def test_refusals(server, tmp_path, fault, words):
    """What a server certainly did not do is not stopped, and its device is free."""
    server.faults(start=fault)
    assert not _window(server.engine())
    assert server.told == ["start"]
    assert _free()
    assert words in _skip(tmp_path)[1]
    assert not list((tmp_path / "out").rglob("norank_rollout_*"))


@pytest.mark.parametrize("fault", ["refuse:500", "mumble:500", "mumble:408", "page:502", "close", "cut", "huge"])
def test_a_start_that_is_not_known_is_stopped(server, tmp_path, fault):
    """Where nobody knows whether it records, it is told to stop, once; a start is never sent twice."""
    server.faults(start=fault)
    assert not _window(server.engine())
    assert server.told[0] == "start"
    assert set(server.told[1:]) == {"stop"}
    assert not server.recording
    assert _free()
    assert _skip(tmp_path)[0] == "engine"


@pytest.mark.parametrize("fault", ["hang", "trickle"])
def test_a_start_that_is_not_answered_is_given_up(server, tmp_path, fault):
    """A server that accepts and says nothing, or never comes to an end, is waited for as long as was said."""
    server.faults(start=fault)
    assert not _window(server.engine(start_timeout=0.5))
    assert server.told[:2] == ["start", "stop"]
    assert _free()
    reason, detail = _skip(tmp_path)
    assert reason == "engine"
    assert "no answer within 0.5 s" in detail


@pytest.mark.parametrize("fault", ["cut", "close", "mumble:500", "refuse:502", "huge"])
def test_a_stop_that_fails_is_sent_again(server, tmp_path, fault):
    """A stop whose answer is lost or an error is repeated, and what is answered then is what counts."""
    server.faults(stop=fault)
    assert _window(server.engine())
    assert server.told[:3] == ["start", "stop", "stop"]
    assert not server.recording
    assert _free()
    profwin.shutdown()
    assert len(Evidence(tmp_path / "out").of("confirmed")) == 1


@KINDS
@pytest.mark.parametrize("fault", ["refuse:500", "refuse:404", "page:500", "close"])
def test_a_stop_that_is_not_confirmed_keeps_the_device(tmp_path, kind, fault):
    """While it may record its device is nobody's; a later stop that is confirmed makes it free again."""
    with Server(kind, tmp_path / "traces") as server:
        configure(tmp_path / "out", wait_budget=60.0)
        engine = server.engine()
        server.faults(stop=fault, times=9)
        assert _window(engine)
        assert server.recording
        assert not _free()
        server.faults()
        assert _window(engine, step=2)
        assert not server.recording
        assert _free()
    profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    assert not evidence.skips()
    assert evidence.recorded() == ["rollout", "rollout"]
    first, second = evidence.of("export")
    assert "its stop is not confirmed" in first["error"]
    assert "error" not in second
    assert not evidence.of("finding", code="engine-silent")


def test_a_session_of_ours_is_not_called_somebody_elses(vllm, tmp_path):
    """Where a mark was lost by hand, a session of ours that was never stopped is named, and stopped."""
    engine = vllm.engine()
    vllm.faults(stop="refuse:500", times=9)
    assert _window(engine)
    (held,) = [Registry()]
    held.confirm(keys_of((DEVICE,))[0])
    vllm.faults()
    assert not _window(engine, step=2)
    assert not vllm.recording
    reason, detail = _skip(tmp_path)
    assert reason == "engine"
    assert "it still records window 'rollout' of step 1 of run mine" in detail


def test_a_confirmed_window_without_files_is_found(server, tmp_path):
    """A server that confirms both and leaves no file is said to have recorded nothing, and why that may be."""
    server.faults(silent=True)
    assert _window(server.engine())
    profwin.shutdown()
    (note,) = Evidence(tmp_path / "out").of("finding", code="engine-silent")
    assert server.url in note["detail"]
    assert "engine-silent" in {each.code.name for each in check(tmp_path / "out" / "mine").findings}


def test_a_file_that_is_completed_later_is_waited_for(server, tmp_path):
    """A file that is still being written when the stop is answered is whole in its new place."""
    server.faults(late_file=1.0)
    assert _window(server.engine())
    profwin.shutdown()
    (export,) = Evidence(tmp_path / "out").of("export")
    assert "error" not in export
    path = tmp_path / "out" / "mine" / export["path"]
    assert export["bytes"] == path.stat().st_size
    assert not {each.code.name for each in check(tmp_path / "out").findings} & {"truncated", "trace-size"}


def test_half_a_file_is_brought_and_judged(server, tmp_path, monkeypatch):
    """A file that never becomes whole is brought all the same, and the check says what it is."""
    monkeypatch.setattr("profwin.engines.traces.COMPLETE", 0.5)
    server.faults(truncated=True)
    assert _window(server.engine())
    profwin.shutdown()
    assert [each for each in check(tmp_path / "out").findings if each.code.severity == "error"]


def test_the_stop_has_its_time(vllm, tmp_path):
    """A stop that takes longer than it may is not confirmed, though the server goes on with it."""
    vllm.faults(stop="hang")
    began = time.monotonic()
    assert _window(vllm.engine(stop_timeout=0.5))
    assert time.monotonic() - began < 30
    assert not _free()
    profwin.shutdown()
    (closed,) = Evidence(tmp_path / "out").of("close")
    assert "TimeoutError: its stop is not confirmed: no answer within 0.5 s" in closed["error"]


def test_a_directory_that_cannot_be_seen_is_named(tmp_path):
    """Where a server of another machine writes is written down, with what its files are called."""
    with Server("vllm", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        engine = VLLMServer(server.url, devices=DEVICE, directory=tmp_path / "nowhere" / "else")
        engine._looked = (float("inf"), ())
        assert _window(engine)
    profwin.shutdown()
    (export,) = Evidence(tmp_path / "out").of("export")
    assert export["path"].startswith("../../nowhere/else/step1_rollout_")


def test_where_nothing_is_known_it_says_what_to_pass(tmp_path):
    """A server that does not say where it writes is an export that failed, and not a silent one."""
    with Server("vllm", tmp_path / "traces", tell=False) as server:
        configure(tmp_path / "out")
        assert _window(server.engine())
        assert _window(server.engine(directory=tmp_path / "traces"), step=2)
    profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    first, second = evidence.of("export")
    assert "pass directory=" in first["error"]
    assert "error" not in second
    assert not evidence.of("finding", code="engine-silent")


def test_sglang_server_that_is_not_ours_writes_where_it_does(tmp_path, monkeypatch):
    """A server that may not write here is not told to; its own directory is looked at."""
    monkeypatch.setattr("profwin.engines.places._user", lambda _pid: 4711)
    monkeypatch.setenv("SGLANG_TORCH_PROFILER_DIR", str(tmp_path / "traces"))
    with Server("sglang", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        assert _window(SGLangServer(server.url, devices=DEVICE))
        _, request, _ = server.state()["told"][0]
        assert "output_dir" not in request
        assert server.files() == []
    profwin.shutdown()
    assert len(Evidence(tmp_path / "out").of("export")) == 1
