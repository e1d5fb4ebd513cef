"""Two real vLLM servers, on the CPU, as replicas of one window; and what a death leaves behind, of whom it may be."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from vllm_guard import members
from vllm_support import DEVICE, FEW, PATIENCE, Server, configure, engine, iterations, make_model, needs_vllm, traces

import profwin
from profwin import rollout_window, training_stage, training_step
from profwin.registry.lock import Registry

sys.path.append(str(Path(__file__).parents[1] / "integration"))
from core_support import Child, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from profwin.registry.survey import DeviceState

pytestmark = [needs_vllm, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Two servers; they start at the same time."""
    folder = tmp_path_factory.mktemp("vllm")
    model, options = make_model(folder / "model"), {"torch_profiler_with_stack": False}
    with Server(folder / "first", model, options) as first, Server(folder / "second", model, options) as second:
        yield first.wait(), second.wait()


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Return where a run of this test goes."""
    return tmp_path / "out"


@training_stage
def update() -> None:
    """Train."""


def state() -> DeviceState:
    """Return what the host's registry says of the device."""
    (found,) = Registry(os.environ["PROFWIN_LOCK_DIR"]).survey()
    return found


def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_replicas_record_together(servers: tuple[Server, Server], output: Path) -> None:
    """Two servers in one list record the same window, each on its own device and into a trace of its own."""
    configure(output)
    devices = [f"{DEVICE}-1", f"{DEVICE}-2"]
    replicas = [engine(server, devices=device) for server, device in zip(servers, devices, strict=True)]
    with rollout_window(1, engine=replicas) as window:
        assert window.recorded
        for server in servers:
            server.generate(FEW)
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert [FEW <= iterations(trace) <= FEW + 2 for trace in traces(output, 1)] == [True, True]
    assert sorted(mark["devices"][0] for mark in evidence.of("mark")) == ["pretend-served-1", "pretend-served-2"]
    assert {each.state for each in Registry(os.environ["PROFWIN_LOCK_DIR"]).survey()} == {"free"}


def test_our_own_process_is_killed_inside_its_window(servers: tuple[Server, Server], output: Path) -> None:
    """The server records on, so its device is unknown, and training on it unrecorded, until a stop is confirmed."""
    server = servers[0]
    script = f"""
from profwin.engines import VLLMServer
profwin.configure(steps="1", output={str(output)!r}, run="killed", devices={DEVICE!r})
with rollout_window(1, engine=VLLMServer({server.url!r})):
    say("inside")
    hear()
"""
    with Child(script) as driver:
        assert driver.hear() == "inside"
        server.generate(FEW)
        assert driver.kill() == -signal.SIGKILL
    left = state()
    assert left.state == "unknown"
    assert left.mark is not None
    assert {process.pid for process in left.mark.processes} >= {server.pid, server.process("VLLM::Worker")}
    configure(output, wait_budget=PATIENCE, on_busy="skip")
    with training_step(1):
        update()
    assert state().state == "unknown"
    # The next window of anyone stops the server first: that is confirmed, and the device known again.
    with rollout_window(2, engine=engine(server)) as window:
        assert window.recorded
        server.generate(FEW)
    assert state().state == "free"
    with training_step(2):
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check(killed=(driver.pid,))
    assert evidence.skips() == [("update", "unknown")]
    assert evidence.recorded() == ["rollout", "rollout", "update"]
    assert FEW <= iterations(*traces(output, 2)) <= FEW + 2


def test_the_server_is_killed_but_not_its_worker(servers: tuple[Server, Server], output: Path) -> None:
    """Where nobody answers any more and the worker lives on, the device is unknown; it is free when all are dead."""
    server = servers[1]
    configure(output, wait_budget=2.0)
    with rollout_window(1, engine=engine(server)):
        server.generate(FEW)
        os.kill(server.pid, signal.SIGKILL)
    assert server.recording()
    assert state().state == "unknown"
    with training_step(1):
        update()
    for pid in members(server.pid):
        os.kill(pid, signal.SIGKILL)
    until(lambda: state().state == "free")
    assert not server.recording()
    with training_step(2):
        update()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("update", "unknown")]
    assert evidence.recorded() == ["rollout", "update"]
    assert evidence.of("finding", code="engine-silent") == []


def test_the_worker_is_killed(servers: tuple[Server, Server], output: Path) -> None:
    """The server ends when its worker does; the device is free then, and not before all of it is dead."""
    server = servers[0]
    configure(output, wait_budget=PATIENCE)
    target = engine(server)
    with rollout_window(1, engine=target):
        server.generate(FEW)
        os.kill(server.process("VLLM::Worker"), signal.SIGKILL)
    until(lambda: state().state == "free")
    assert not server.recording()
    with training_step(1):
        update()
    with rollout_window(2, engine=target) as window:
        assert not window.recorded
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.recorded() == ["rollout", "update"]
    assert evidence.skips() == [("rollout", "engine")]
    assert traces(output, 1) == []
