"""max_seconds with torch.profiler: the trace holds what came before the cut, and is whole."""

from __future__ import annotations

import pytest
import torch
from core_support import Evidence
from release_support import configure
from torch_support import names, traces

import profwin
from profwin import clock, rollout_window, span, training_stage, training_step


@pytest.fixture
def output(tmp_path):
    """Return where a run of this test goes."""
    return tmp_path / "out"


def passed(monkeypatch, seconds):
    """Let some seconds pass."""
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + seconds)


def nested():
    """Pass a span."""
    with span("part"):
        torch.ones(3).cos()


def inner():
    """Pass a stage."""
    with training_stage("inner"):
        torch.ones(3).cos()


@pytest.mark.parametrize("kind", ["window", "stage"])
@pytest.mark.parametrize("safe_point", [nested, inner])
def test_the_trace_ends_at_the_cut(output, monkeypatch, kind, safe_point):
    """What ran after the limit and before the safe point is in the trace, what came later is not."""
    configure(output, backend="torch")
    block = rollout_window(1, max_seconds=10) if kind == "window" else training_stage("update", max_seconds=10)
    with training_step(1):
        with block:
            torch.ones(3).sin()
            passed(monkeypatch, 11)
            torch.ones(3).tan()
            safe_point()
            torch.ones(3).exp()
        with training_stage("after"):
            torch.ones(3).log()
    profwin.shutdown()
    evidence = Evidence(output)
    evidence.check()
    name = "rollout" if kind == "window" else "update"
    (cut,) = evidence.collections(name=name)
    assert cut["reason"] == "cut"
    (exported,) = evidence.of("export", collection=cut["collection"])
    assert (output / "mine" / exported["path"]).stat().st_size == exported["bytes"]
    found = {trace["profwin"]["name"]: set(names(trace)) for trace in traces(output)}
    assert {"aten::sin", "aten::tan", name} <= found[name]
    assert not {"aten::cos", "aten::exp", "aten::log"} & found[name]
    assert "aten::exp" not in found["after"]
    assert "aten::log" in found["after"]
    assert ("inner" in found) is (safe_point is inner)
