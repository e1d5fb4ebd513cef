"""torch.compile: decorated functions, ``with`` blocks and spans keep its graphs whole in every state."""

from __future__ import annotations

import ctypes
import json

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import profwin
from profwin import span, training_stage, training_step
from profwin.switch import SWITCH
from profwin.wrap import wrap

# Off, on but not selected, selected, and each of them again: three states, so at most three compilations.
TOGGLES = [(False, 0), (True, 0), (True, 1), (True, 0), (False, 1), (True, 1), (False, 0), (True, 1)]
STATES = 3


@training_stage
def inner(x):
    """Be called inside a compiled function."""
    return x.sin()


class Layer(torch.nn.Module):
    """A module whose forward is a stage."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    @training_stage
    def forward(self, x):
        """Apply it."""
        return self.linear(x)


def calls(x):
    """Call a decorated function."""
    return inner(x) + 1


def opens(x):
    """Open a stage and a span in a ``with``."""
    with training_stage("block"):
        y = x.cos()
        with span("part"):
            y = y + 1
    return y * 2


@pytest.fixture
def counter():
    """A compiler that counts its graphs and runs them as they are."""
    before = SWITCH.on, SWITCH.word
    torch._dynamo.reset()
    yield CompileCounter()
    SWITCH.on, SWITCH.word = before
    torch._dynamo.reset()


@pytest.mark.parametrize("function", [calls, opens, Layer()], ids=["call", "with", "forward"])
def test_whole_graph_in_every_state_and_no_compilation_per_step(function, counter):
    """fullgraph=True holds off, unselected and selected; a new state compiles once, a known one never."""
    SWITCH.on, SWITCH.word = False, ctypes.c_int64(0)
    x = torch.ones(3)
    want = function(x)
    compiled = torch.compile(function, backend=counter, fullgraph=True)
    seen = set()
    for on, word in TOGGLES:
        SWITCH.on, SWITCH.word.value = on, word
        before = counter.frame_count
        for _ in range(3):
            assert torch.equal(compiled(x), want)
        assert counter.frame_count - before <= ((on, word) not in seen)
        seen.add((on, word))
    assert counter.frame_count <= STATES


def test_window_decorator_inside_a_compiled_function(counter):
    """What is decorated as a rollout window keeps the graph whole too, and compiles once for each state."""
    function = wrap(torch.nn.functional.gelu, object(), always=True)
    compiled = torch.compile(lambda x: function(x) + 1, backend=counter, fullgraph=True)
    for on in (False, True, False, True):
        SWITCH.on = on
        compiled(torch.ones(3))
    assert counter.frame_count <= 2


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Record step 2 and step 4."""
    monkeypatch.setenv("PROFWIN_LOCK_DIR", str(tmp_path / "locks"))
    profwin.configure(steps="2,4", backend="record", output=str(tmp_path / "out"))
    yield lambda: sorted(
        record["name"]
        for path in (tmp_path / "out").glob("*/journal/*.jsonl")
        for record in map(json.loads, path.read_text().splitlines())
        if record["kind"] == "enter"
    )
    profwin.shutdown()


@pytest.mark.parametrize("function", [calls, opens], ids=["call", "with"])
def test_no_compilation_per_step_of_a_real_run(function, counter, session):
    """Over eight steps, two of them selected, a compiled function compiles at most once a state."""
    compiled = torch.compile(function, backend=counter, fullgraph=True)
    for step in range(1, 9):
        with training_step(step):
            compiled(torch.ones(3))
    assert counter.frame_count <= 2
    assert session() == []


def test_stage_around_a_compiled_function(counter, session):
    """A stage around a compiled function is recorded and leaves its graph alone."""
    outer = training_stage("outer")(torch.compile(lambda x: x.sin() + 1, backend=counter, fullgraph=True))
    # Dynamo follows the marks of a compiled function to its original; copied, they would lead past the stage.
    assert not [key for key in vars(outer) if key.startswith("_torchdynamo_")]
    for step in range(1, 6):
        with training_step(step):
            outer(torch.ones(3))
    assert counter.frame_count == 1
    assert session() == ["outer", "outer"]


def test_same_graphs_as_undecorated(counter):
    """Dynamo explains a decorated function with as many graphs and breaks as the undecorated one."""

    def body(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y + 1

    SWITCH.on = False
    plain = torch._dynamo.explain(body)(torch.ones(3))
    decorated = torch._dynamo.explain(training_stage(body))(torch.ones(3))
    assert (decorated.graph_count, decorated.graph_break_count) == (
        plain.graph_count,
        plain.graph_break_count,
    )
