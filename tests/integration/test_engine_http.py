"""Windows on HTTP servers that do what they should: what they are told, and where their traces go."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from asyncio_support import ticking
from core_support import Evidence
from stand_in_support import DEVICE, Server, configure

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.evidence.check import check

KINDS = pytest.mark.parametrize("kind", ["vllm", "sglang"])


def _codes(output):
    return [each.code.name for each in check(output / "mine").findings if each.code.severity != "remark"]


@KINDS
def test_windows_are_recorded_and_their_traces_brought(tmp_path, kind):
    """Each step's traces, of all workers, are in the step's own folder, whole, named in the journal; check is clean."""
    with Server(kind, tmp_path / "traces", workers=2) as server:
        configure(tmp_path / "out")
        engine = server.engine()
        for step in (1, 2, 3):
            with rollout_window(step, engine=engine) as window:
                assert window.recorded
                assert server.recording
                server.generate()
            assert not server.recording
            with training_step(step), training_stage("update", devices=DEVICE):
                pass
        profwin.shutdown()
        assert server.told == ["start", "stop"] * 3
        assert server.files() == []
    evidence = Evidence(tmp_path / "out")
    evidence.check()
    for step in (1, 2, 3):
        traces = sorted((tmp_path / "out" / "mine" / f"step_{step:06d}" / "rollout").glob("*.json.gz"))
        assert len(traces) == 2
        assert all(json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] for trace in traces)
        assert all("_n1_a0." in trace.name and "norank_rollout_p" in trace.name for trace in traces)
    exports = [record for record in evidence.of("export") if record["backend"] == "engine"]
    assert len(exports) == 6
    assert all("error" not in record and record["bytes"] > 0 for record in exports)
    assert set(_codes(tmp_path / "out")) <= {"step-not-reached"}


def test_a_server_under_nsight_systems_leaves_no_files(tmp_path):
    """Where vLLM's profiler is the one for Nsight Systems, which writes a report of its own, no file is missed."""
    with Server("vllm", tmp_path / "traces", profiler="cuda") as server:
        server.faults(silent=True)
        configure(tmp_path / "out")
        with rollout_window(1, engine=server.engine()) as window:
            assert window.recorded
            server.generate()
        profwin.shutdown()
        assert server.told == ["start", "stop"]
    assert Evidence(tmp_path / "out").of("export") == []
    assert "engine-silent" not in _codes(tmp_path / "out")


@KINDS
def test_a_request_names_the_step(tmp_path, kind):
    """The prefix that a server gets names step and window, in characters that it takes, and is never the same twice."""
    with Server(kind, tmp_path / "traces") as server:
        configure(tmp_path / "out")
        for _ in range(2):
            with rollout_window(7, engine=server.engine(), name="Prüfung / 1"):
                server.generate()
        requests = [request for action, request, _ in server.state()["told"] if action == "start"]
    prefixes = [request["profile_prefix"] for request in requests]
    assert all(prefix.startswith("step7_Pr_fung___1_") for prefix in prefixes)
    assert len(set(prefixes)) == 2
    if kind == "sglang":
        folder = tmp_path / "out" / "mine" / "step_000007"
        assert all(request["output_dir"].startswith(str(folder)) for request in requests)


def test_token_windows_are_passed_on(tmp_path):
    """Delay and maximum reach vLLM; a window that ended by itself is confirmed by the stop, and its trace is there."""
    with Server("vllm", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        engine = server.engine(delay_iterations=2, max_iterations=1, profiler_kwargs={"with_stack": False})
        with rollout_window(1, engine=engine):
            assert not server.recording
            server.generate()
            assert server.recording
            server.generate()
            assert not server.recording
        _, request, _ = server.state()["told"][0]
    del request["profile_prefix"]
    assert request == {"delay_iterations": 2, "max_iterations": 1, "profiler_kwargs": {"with_stack": False}}
    assert len(Evidence(tmp_path / "out").of("export")) == 1


@pytest.mark.parametrize("generated", [0, 1, 5])
def test_sglang_ends_by_itself_or_never_begins(tmp_path, generated):
    """Where SGLang says that nothing is in progress, the stop is confirmed, and nothing begins later by itself."""
    with Server("sglang", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        engine = server.engine(start_step=1, num_steps=2, activities=["CPU"], with_stack=False)
        with rollout_window(1, engine=engine):
            server.generate(generated)
        assert not server.state()["armed"]
        server.generate()
        assert not server.recording
    evidence = Evidence(tmp_path / "out")
    assert len(evidence.of("confirmed")) == 1
    assert len([record for record in evidence.of("export") if "error" not in record]) == (1 if generated else 0)
    assert [note["code"] for note in evidence.of("finding")] == ([] if generated else ["engine-silent"])


def test_sglang_plain_number_of_steps(tmp_path):
    """A plain window of a number of steps is stopped twice after it ended by itself, which confirms it."""
    with Server("sglang", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        with rollout_window(1, engine=server.engine(num_steps=2)):
            server.generate(3)
        assert server.told == ["start", "stop", "stop"]
    assert len(Evidence(tmp_path / "out").of("confirmed")) == 1


@KINDS
def test_a_token_is_sent_and_shown_nowhere(tmp_path, kind, caplog):
    """The token reaches the server; it is in no log, no journal and no representation; another one is refused."""
    caplog.set_level(0)
    with Server(kind, tmp_path / "traces", token="secret-0815") as server:
        configure(tmp_path / "out")
        engine = server.engine(token="secret-0815")
        with rollout_window(1, engine=engine) as window:
            assert window.recorded
            server.generate()
        with rollout_window(2, engine=server.engine(token="other-4711")) as window:
            assert not window.recorded
        server.faults(start="echo")
        with rollout_window(3, engine=engine) as window:
            assert not window.recorded
        profwin.shutdown()
    assert engine.devices == ("pretend:card",)
    said = caplog.text + repr(engine) + str(vars(engine)["name"])
    said += "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json*") if path.suffix != ".gz")
    assert "pass token=" in said
    assert "(token)" in said
    assert "\x1b" not in said
    assert "secret-0815" not in said
    assert "other-4711" not in said


@KINDS
def test_asyncio_is_never_blocked(tmp_path, kind):
    """Neither a slow start nor a slow stop keeps the event loop waiting."""

    async def main(server):
        async with ticking(), rollout_window(1, engine=server.engine()) as window:
            assert window.recorded
            server.generate()

    with Server(kind, tmp_path / "traces") as server:
        configure(tmp_path / "out", wait_budget=60.0)
        server.faults(start_delay=1.5, stop_delay=1.5)
        asyncio.run(main(server))
        assert not server.recording
    Evidence(tmp_path / "out").check()


def test_slow_answers_are_logged(tmp_path, caplog, monkeypatch):
    """A start and a stop that take long say so after a second, and now and then."""
    monkeypatch.setattr("profwin.engines.http.FIRST_NOTICE", 0.1)
    monkeypatch.setattr("profwin.engines.http.NOTICES", 0.2)
    caplog.set_level("INFO", "profwin")
    with Server("vllm", tmp_path / "traces") as server:
        configure(tmp_path / "out", wait_budget=60.0)
        server.faults(stop_delay=1.0)
        with rollout_window(1, engine=server.engine()):
            pass
    notices = [record.getMessage() for record in caplog.records if "has not answered" in record.getMessage()]
    assert len(notices) > 1
    assert all(f"vLLM at {server.url} has not answered stop_profile for" in notice for notice in notices)


def test_max_seconds_ends_a_window_of_a_generation_that_hangs(tmp_path):
    """The engine is stopped on time, while the body hangs; what was recorded until then is there."""
    with Server("vllm", tmp_path / "traces") as server:
        configure(tmp_path / "out")
        with rollout_window(1, engine=server.engine(), max_seconds=0.2):
            from stand_in_support import until

            until(lambda: not server.recording)
            until(lambda: not server.files())
        profwin.shutdown()
    evidence = Evidence(tmp_path / "out")
    assert [each["reason"] for each in evidence.collections()] == ["cut"]
    assert len(evidence.of("export")) == 1
