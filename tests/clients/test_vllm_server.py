"""A real vLLM server, on the CPU, behind rollout windows: what it does, and what profwin makes of it."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from vllm_support import DEVICE, FEW, LONG, Server, configure, engine, iterations, make_model, needs_vllm, traces

import profwin
from profwin import rollout_window, training_stage

sys.path.append(str(Path(__file__).parents[1] / "integration"))
from core_support import PATIENCE, Child, Evidence
from demo_support import Demo, failed, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "tell-nobody"
STAGES = ["old_log_prob", "ref_log_prob", "advantages", "actor_update"]
pytestmark = [needs_vllm, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """A server that can profile, ready, and one that cannot, which begins to start when the first is there."""
    folder = tmp_path_factory.mktemp("vllm")
    model = make_model(folder / "model")
    with Server(folder / "profiled", model, {"torch_profiler_with_stack": False}, token=TOKEN) as profiled:
        profiled.wait()
        with Server(folder / "bare", model) as bare:
            yield profiled, bare


@pytest.fixture
def server(servers: tuple[Server, Server]) -> Server:
    """The server that can profile; a test leaves it not profiling, and its directory empty."""
    return servers[0]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Return where a run of this test goes."""
    return tmp_path / "out"


@training_stage
def update() -> None:
    """Train."""


def test_the_demo_is_recorded_and_verified(server: Server, tmp_path: Path) -> None:
    """Three steps of the demo's loop with the server's generation are apart, whole, and shown by every command."""
    demo = Demo(tmp_path)
    arguments = ["--engine", "vllm", "--url", server.url, "--steps", "3", "--profile", "1-3"]
    report = demo.report(*arguments, "--token", TOKEN)
    assert report["passed"], failed(report)
    run = tmp_path / report["directory"]
    for step in (1, 2, 3):
        assert [row["what"] for row in rows(report, step)] == [
            "window rollout", "handover", *[f"stage {stage}" for stage in STAGES],
        ]  # fmt: skip
        (trace,) = run.glob(f"step_{step:06}/rollout/*.pt.trace.json.gz")
        assert iterations(trace) >= FEW
    assert len(report["traces"]) == 15
    assert list(server.traces.iterdir()) == []
    assert not any(TOKEN.encode() in path.read_bytes() for path in run.rglob("*") if path.is_file())
    code, text, _ = demo.command("check", str(run))
    assert (code, "clean: " in text) == (0, True), text
    code, text, _ = demo.command("timeline", str(run), "--format", "json", "-o", "timeline.json")
    assert code == 0
    shown = (tmp_path / "timeline.json").read_text()
    assert all(name in shown for name in ("execute_context_", "actor_update", "rollout"))
    code, text, _ = demo.command("report", str(run))
    assert [line.split()[0] for line in text.splitlines() if line[:1].isdecimal()] == ["1", "2", "3"]
    assert demo.run(*arguments)[0] == 1, "without the token"
    assert demo.survivors() == []


def test_a_window_brings_its_trace_home(server: Server, output: Path) -> None:
    """The window's own iterations are in one trace in its step's folder; a stop more changes nothing."""
    configure(output)
    target = engine(server)
    server.generate(FEW)
    with rollout_window(1, engine=target) as window:
        assert window.recorded
        server.generate(FEW)
    server.generate(FEW)
    assert [server.post("/stop_profile"), server.post("/stop_profile")] == [200, 200]
    assert target.stop() == []
    (trace,) = traces(output, 1)
    assert FEW <= iterations(trace) <= FEW + 2
    with rollout_window(2, engine=target):
        server.generate(FEW)
    assert len(traces(output, 2)) == 1
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert {pid for mark in evidence.of("mark") for pid in mark["processes"]} >= {
        server.pid, server.process("VLLM::EngineCore"), server.process("VLLM::Worker"),
    }  # fmt: skip
    assert list(server.traces.iterdir()) == []


def test_a_stage_gets_the_device_after_the_stop_was_answered(server: Server, output: Path) -> None:
    """Another process that wants to train while the stop goes on for seconds has the device when it is confirmed."""
    configure(output)
    script = """
say("ready")
hear()
say(time.monotonic_ns())
with training_step(1), training_stage("update"):
    pass
profwin.shutdown()
"""
    target = engine(server, revocable=False)
    stop, sent = target.stop, threading.Event()

    def noting() -> list[str]:
        sent.set()
        return stop()

    target.stop = noting  # type: ignore[method-assign]  # so that the test knows when the request is on its way
    with Child(script, **profwin.environment()) as trainer:
        assert trainer.hear() == "ready"

        def begin() -> None:
            sent.wait(PATIENCE)
            trainer.say("train")

        thread = threading.Thread(target=begin)
        thread.start()
        with rollout_window(1, engine=target):
            server.generate(LONG)
        thread.join()
        wanted = int(trainer.hear())
        assert trainer.finish()[0] == 0
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    window, stage = evidence.collections()
    (confirmed,) = evidence.of("confirmed")
    assert window["t"] < wanted < confirmed["t"] <= window["end"] <= stage["t"]
    assert (window["reason"], stage["name"]) == ("end", "update")
    # The server writes the trace before it answers, so the file's own time says the same.
    began = evidence.of("process", pid=trainer.pid)[0]
    (trace,) = traces(output, 1)
    assert trace.stat().st_mtime_ns <= stage["t"] + began["wall"] - began["t"]


def test_a_stage_may_ask_for_the_device(server: Server, output: Path) -> None:
    """A server's recording is ended in the middle of generation for a stage, which the rest of the window outlasts."""
    configure(output)
    script = "with training_step(1), training_stage('update'):\n    pass\nprofwin.shutdown()"
    with rollout_window(1, engine=engine(server)) as window:
        server.generate(FEW)
        with Child(script, **profwin.environment()) as trainer:
            assert trainer.finish()[0] == 0
        assert not window.recorded
        server.generate(FEW)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [(each["name"], each["reason"]) for each in evidence.collections()] == [
        ("rollout", "asked"), ("update", "end"),
    ]  # fmt: skip
    assert evidence.of("confirmed")[0]["t"] <= evidence.collections()[1]["t"]
    assert FEW <= iterations(*traces(output, 1)) <= FEW + 2


def test_somebody_elses_session_is_left_alone(server: Server, output: Path) -> None:
    """Where another client profiles already, the window is skipped and says so, and their recording goes on."""
    configure(output)
    assert server.post("/start_profile", {"profile_prefix": "theirs"}) == 200
    try:
        with rollout_window(1, engine=engine(server)) as window:
            assert not window.recorded
            server.generate(FEW)
        update()
        assert server.post("/start_profile") == 409
        server.generate(FEW)
    finally:
        assert server.post("/stop_profile") == 200
    (trace,) = server.traces.glob("theirs*.pt.trace.json.gz")
    assert iterations(trace) >= 2 * FEW
    for path in server.traces.iterdir():
        path.unlink()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("rollout", "foreign")]
    (finding,) = evidence.of("finding", code="foreign-session")
    assert "A profiling session is already active" in finding["detail"]
    assert evidence.recorded() == ["update"]


def test_a_token_window_keeps_some_iterations(server: Server, output: Path) -> None:
    """With a delay and a limit the trace holds as many of the engine's iterations as were asked for."""
    configure(output)
    for step, limit in ((1, 4), (2, 8)):
        with rollout_window(step, engine=engine(server, delay_iterations=3, max_iterations=limit)):
            server.generate(3 * FEW)
    profwin.shutdown()
    Evidence(output).check()
    assert [iterations(*traces(output, step)) for step in (1, 2)] == [4, 8]


def test_a_window_has_a_longest_time(server: Server, output: Path) -> None:
    """Generation that goes on and on is recorded for ``max_seconds``; the trace of that time is there."""
    configure(output)
    deadline = time.monotonic() + PATIENCE
    with rollout_window(1, engine=engine(server), max_seconds=1.0) as window:
        while window.recorded:
            server.generate(FEW)
            assert time.monotonic() < deadline
        assert server.generate(FEW)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (collection,) = evidence.collections()
    assert collection["reason"] == "cut"
    assert iterations(*traces(output, 1)) > 0


def test_the_event_loop_goes_on_while_the_server_stops(server: Server, output: Path) -> None:
    """In asyncio code a window is entered and left without keeping the loop from its other tasks."""
    configure(output)

    async def main() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        counting = asyncio.ensure_future(count())
        window = rollout_window(1, engine=engine(server))
        async with window:
            assert window.recorded
            await asyncio.to_thread(server.generate, 3 * FEW)
            before = turns
        counting.cancel()
        return turns - before

    assert asyncio.run(main()) > 5
    profwin.shutdown()
    Evidence(output).check()
    assert len(traces(output, 1)) == 1


def test_a_program_that_ends_inside_its_window(server: Server, output: Path) -> None:
    """A trainer that is over before its window is closed stops the server on its way out; its trace is there."""
    script = f"""
from profwin.engines import VLLMServer
profwin.configure(steps="1", output={str(output)!r}, devices={DEVICE!r})
rollout_window(1, engine=VLLMServer({server.url!r})).open()
say("open")
hear()
"""
    with Child(script) as trainer:
        assert trainer.hear() == "open"
        server.generate(FEW)
        trainer.say()
        assert trainer.finish()[0] == 0
    (window,) = Evidence(output).collections()
    assert window["reason"] == "exit"
    assert len(traces(output, 1)) == 1
    assert [server.post(path) for path in ("/stop_profile", "/start_profile", "/stop_profile")] == [200, 200, 200]
    for path in server.traces.iterdir():
        path.unlink()


def test_a_server_without_a_profiler_says_what_is_missing(servers: tuple[Server, Server], output: Path) -> None:
    """Of two replicas the one that cannot profile is skipped with the option to pass, and the other one recorded."""
    server, bare = servers
    bare.wait()
    configure(output)
    with rollout_window(1, engine=engine(bare)) as window:
        assert not window.recorded
        assert bare.generate(1)
    replicas = [engine(bare, devices=f"{DEVICE}-1"), engine(server, devices=f"{DEVICE}-2")]
    with rollout_window(2, engine=replicas) as window:
        assert window.recorded
        server.generate(FEW)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (skip,) = evidence.of("skip")
    assert skip["reason"] == "engine"
    assert "--profiler-config" in skip["detail"]
    assert len(traces(output, 2)) == 1
