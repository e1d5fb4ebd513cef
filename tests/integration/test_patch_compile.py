"""torch.compile sees as much of a patched function as of the bare one, in every state."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from profwin.patch import install, uninstall
from profwin.patch.reading import read_text
from profwin.switch import SWITCH

TOGGLES = [(False, 0), (True, 0), (True, 1), (True, 0), (False, 1), (True, 1), (False, 0), (True, 1)]
LOOP = '[[loop]]\nmode = "sync"\n'
ROLES = {
    "stage": "",
    "window": 'step = "step"\n',
    "span": "",
    "pause": "",
    "step": 'step = "step"\n',
    "silence": 'unless = "step"\n',
    "events": 'before = ["samples_in_hand"]\nafter = [{ event = "step_ends", when = "return.numel" }]\n',
}


def inner(x, step=2):
    """Be called inside a compiled function."""
    return x.sin()


@pytest.fixture(params=ROLES)
def module(request):
    """A module whose function is patched."""
    module = ModuleType("patched_for_dynamo")
    module.inner = inner
    sys.modules[module.__name__] = module
    before = SWITCH.on, SWITCH.word
    torch._dynamo.reset()
    install(
        read_text(
            f'format = 1\nname = "compile"\n{LOOP if request.param == "events" else ""}[[patch]]\n'
            f'target = "patched_for_dynamo:inner"\nrole = "{request.param}"\n{ROLES[request.param]}'
        ),
        strict=True,
    )
    yield module
    uninstall()
    SWITCH.on, SWITCH.word = before
    torch._dynamo.reset()
    del sys.modules[module.__name__]


def test_whole_graph_in_every_state(module):
    """fullgraph=True holds off, unselected and selected, and at most one compilation is made for each state."""
    counter = CompileCounter()
    assert module.inner is not inner
    compiled = torch.compile(lambda x: module.inner(x) + 1, backend=counter, fullgraph=True)
    x = torch.ones(3)
    seen = set()
    for on, word in TOGGLES:
        SWITCH.on, SWITCH.word = on, ctypes.c_int64(word)
        before = counter.frame_count
        for _ in range(3):
            assert torch.equal(compiled(x), inner(x) + 1)
        assert counter.frame_count - before <= ((on, word) not in seen)
        seen.add((on, word))
    assert counter.frame_count <= 3


def test_around_a_compiled_function(module):
    """The marks that Dynamo would follow past the wrapper are not copied to it, and its graph is left alone."""
    counter = CompileCounter()
    uninstall()
    module.inner = torch.compile(inner, backend=counter, fullgraph=True)
    for role in ("stage", "silence"):
        text = f'format = 1\nname = "{role}"\n[[patch]]\ntarget = "patched_for_dynamo:inner"\nrole = "{role}"\n'
        install(read_text(text), strict=True)
        assert not [key for key in vars(module.inner) if key.startswith("_torchdynamo_")]
        SWITCH.on = False
        for _ in range(2):
            assert torch.equal(module.inner(torch.ones(3)), inner(torch.ones(3)))
        uninstall()
    assert counter.frame_count == 1


def test_same_graphs_as_bare(module):
    """Dynamo explains the patched function with as many graphs and breaks as the bare one."""

    def body(x):
        return module.inner(x) + 1

    SWITCH.on = False
    patched = torch._dynamo.explain(body)(torch.ones(3))
    uninstall()
    bare = torch._dynamo.explain(body)(torch.ones(3))
    assert (patched.graph_count, patched.graph_break_count) == (bare.graph_count, bare.graph_break_count) == (1, 0)
