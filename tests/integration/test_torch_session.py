"""The facts of torch.profiler in one process: one session, foreign profilers, threads, poisoned results."""

from __future__ import annotations

import threading

import pytest
import torch
from core_support import Evidence
from torch.profiler import profile
from torch_support import extent, names, traces

import profwin
from profwin import paused, rollout_window, span, training_stage, training_step
from profwin.errors import BackendError


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def configure(output, **more):
    """Configure this process with the settings that these tests share."""
    profwin.configure(
        **{"steps": "1-3", "backend": "torch", "output": str(output), "devices": "pretend:card", "run": "r", **more}
    )


@pytest.mark.parametrize("trace_format", ["json", "json.gz"])
def test_traces_load_and_say_what_they_are(output, trace_format):
    """Each trace is JSON with torch's time base, and says under "profwin" which window or stage it is."""
    configure(output, trace_format=trace_format, role="actor", rank=3)
    with rollout_window(1, weight_version=7):
        torch.ones(3).sin()
    with training_stage("update"):
        torch.ones(3).cos()
    profwin.shutdown()
    rollout, update = traces(output)
    assert "aten::sin" in names(rollout)
    assert "aten::cos" in names(update)
    common = {
        "schema": 1, "run": "r", "attempt": 0, "step": 1, "occurrence": 1, "segment": 1, "devices": ["pretend-card"],
        "rank": 3, "weight_version": 7,
    }  # fmt: skip
    assert common.items() <= rollout["profwin"].items()
    assert common.items() <= update["profwin"].items()
    assert (rollout["profwin"]["purpose"], rollout["profwin"]["name"]) == ("rollout", "rollout")
    assert (update["profwin"]["purpose"], update["profwin"]["name"], update["profwin"]["role"]) == (
        "training", "update", "actor",
    )  # fmt: skip
    assert extent(rollout, "rollout")[1] <= extent(update, "update")[0]
    for record in Evidence(output).of("export"):
        assert (output / "r" / record["path"]).stat().st_size == record["bytes"]


def test_nested_stage_is_a_range_of_the_outer_trace(output):
    """Case 2: the outer stage's trace holds what came before, in and after the inner one, and a range for it."""
    configure(output)

    @training_stage
    def inner():
        torch.ones(3).cos()

    @training_stage
    def outer():
        torch.ones(3).sin()
        inner()
        with span("part"):
            torch.ones(3).sin()

    with training_step(1):
        outer()
    profwin.shutdown()
    (trace,) = traces(output)
    found = [name for name in names(trace) if name in ("aten::sin", "aten::cos", "inner", "outer", "part")]
    assert found == ["outer", "aten::sin", "inner", "aten::cos", "part", "aten::sin"]
    begin, end = extent(trace, "inner")
    assert extent(trace, "outer")[0] <= begin <= extent(trace, "aten::cos")[0] <= end <= extent(trace, "outer")[1]


def test_foreign_profiler_that_is_on_is_left_alone(output, tmp_path):
    """A profiler of the user's that is on stays on and loses nothing; windows and stages say "foreign"."""
    configure(output)
    with profile() as foreign:
        torch.ones(3).sin()
        with rollout_window(1) as window:
            torch.ones(3).cos()
            assert not window.recorded
        with training_stage("update"):
            torch.ones(3).tan()
    foreign.export_chrome_trace(str(tmp_path / "theirs.json"))
    with training_stage("later"):
        pass
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    assert evidence.skips() == [("rollout", "foreign"), ("update", "foreign")]
    assert evidence.recorded() == ["later"]
    found = {event.key for event in foreign.key_averages()}
    assert {"aten::sin", "aten::cos", "aten::tan"} <= found


def test_foreign_profiler_of_another_thread_is_seen(output):
    """A profiler that another thread started keeps ours from starting, since the process has one session."""
    configure(output)
    started, go, kept = threading.Event(), threading.Event(), []

    def body():
        with profile() as foreign:
            torch.ones(3).sin()
            started.set()
            go.wait(100)
        kept.extend(event.key for event in foreign.key_averages())

    thread = threading.Thread(target=body)
    thread.start()
    assert started.wait(100)
    with rollout_window(1) as window:
        assert not window.recorded
    go.set()
    thread.join(100)
    profwin.shutdown()
    assert Evidence(output).skips() == [("rollout", "foreign")]
    assert "aten::sin" in kept


def test_foreign_profiler_is_an_error_under_strict(output):
    """Under strict a foreign profiler is raised before the body runs."""
    configure(output, strict=True)
    ran = []
    with profile(), pytest.raises(BackendError, match="another torch profiler"), rollout_window(1):
        ran.append(1)
    assert not ran
    profwin.shutdown()


@pytest.mark.parametrize("goes_on", [False, True])
def test_foreign_profiler_that_takes_ours_over(output, goes_on, caplog):
    """A profiler started inside our window takes the session: ours is not exported, it is said, and theirs is whole."""
    configure(output)
    foreign = profile()
    with rollout_window(1):
        torch.ones(3).sin()
        foreign.start()
        torch.ones(3).cos()
        if not goes_on:
            foreign.stop()
    if goes_on:
        with training_stage("update"):
            torch.ones(3).tan()
        foreign.stop()
    found = {event.key for event in foreign.key_averages()}
    assert "aten::cos" in found
    assert ("aten::tan" in found) == goes_on
    with training_stage("later"):
        torch.ones(3).sin()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    (lost,) = [record for record in evidence.of("export") if "error" in record]
    assert "another profiler" in lost["error"]
    assert lost["collection"] == evidence.collections(name="rollout")[0]["collection"]
    assert evidence.skips() == ([("update", "foreign")] if goes_on else [])
    (trace,) = traces(output)
    assert trace["profwin"]["name"] == "later"
    assert "aten::sin" in names(trace)
    assert "another profiler" in caplog.text


def test_window_opened_and_closed_in_different_threads_is_whole(output):
    """open() in one thread and close() in another keep what every thread did in between."""
    configure(output)
    window = rollout_window(1)

    def in_thread(act):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join(100)

    in_thread(window.open)
    torch.ones(3).sin()
    in_thread(lambda: torch.ones(3).cos())
    in_thread(window.close)
    with training_stage("update"):
        in_thread(lambda: torch.ones(3).tan())
    profwin.shutdown()
    rollout, update = traces(output)
    assert {"aten::sin", "aten::cos"} <= set(names(rollout))
    assert "aten::tan" in names(update)
    assert "aten::tan" not in names(rollout)


def test_stop_is_idempotent_and_serialised(output):
    """Case 6: closed by eight threads at once, and again, the trace is there and whole."""
    configure(output)
    window = rollout_window(1)
    window.open()
    torch.ones(3).sin()
    threads = [threading.Thread(target=window.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    window.close()
    (trace,) = traces(output)
    assert "aten::sin" in names(trace)
    profwin.shutdown()


def test_pause_leaves_out_what_is_inside(output):
    """What runs in paused() is in neither segment."""
    configure(output)
    with rollout_window(1):
        torch.ones(3).sin()
        with paused():
            torch.ones(3).tan()
        torch.ones(3).cos()
    profwin.shutdown()
    first, second = sorted(traces(output), key=lambda trace: trace["profwin"]["segment"])
    assert "aten::sin" in names(first)
    assert "aten::cos" in names(second)
    assert "aten::tan" not in names(first) + names(second)


def test_many_windows_one_after_the_other(output):
    """Every recording of a long row is whole: each holds its own operators and those alone."""
    configure(output, steps="0-99", trace_format="json")
    for step in range(12):
        with rollout_window(step):
            torch.ones(step + 1).sin()
        with training_stage("update"):
            torch.ones(step + 1).cos()
    profwin.shutdown()
    found = traces(output)
    assert len(found) == 24
    for trace in found:
        mine = "aten::sin" if trace["profwin"]["purpose"] == "rollout" else "aten::cos"
        assert [name for name in names(trace) if name in ("aten::sin", "aten::cos")] == [mine]


def train(steps):
    """Train a little; return what must not depend on who watches."""
    torch.manual_seed(11)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    @training_stage
    def update():
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    losses = []
    for step in range(steps):
        with rollout_window(step):
            torch.rand(5)
        losses.append(update())
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return losses, weights, torch.get_rng_state()


def test_training_is_bit_identical(output):
    """Losses, weights and the random state are the same bits with and without recording."""
    plain = train(5)
    configure(output, steps="1-2,4")
    recorded = train(5)
    profwin.shutdown()
    assert plain[0] == recorded[0]
    assert torch.equal(plain[1], recorded[1])
    assert torch.equal(plain[2], recorded[2])
    assert len(traces(output)) == 6
