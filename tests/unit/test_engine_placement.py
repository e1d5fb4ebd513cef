"""Which devices a server was given, by its variables and its command line."""

from __future__ import annotations

import shlex

import pytest

from profwin.engines import procfs
from profwin.engines.placement import devices_asked, granted
from profwin.registry.inventory import Card

CARDS = [Card(f"GPU-{number}", "H200", f"0000:0{number}") for number in range(4)]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("vllm serve model", 1),
        ("/usr/bin/python3 /usr/bin/vllm serve model -tp 2", 2),
        ("python -m vllm.entrypoints.openai.api_server --model m --tensor-parallel-size=4 -pp 2", 8),
        ("vllm serve model --tensor_parallel_size 2 --data-parallel-size 3 --data-parallel-backend mp", 6),
        ("vllm serve m -tp 2 -pcp 2 --decode-context-parallel-size 2", 4),
        ("vllm serve m -tp 2 -tp 4", 4),
        ("vllm serve m --config-format hf", 1),
        ("python -m sglang.launch_server --model-path m --tp 2 --dp-size 2", 4),
        ("python -m sglang.launch_server --tp-size 2 --pp-size 2", 4),
        # What cannot be told:
        ("vllm serve m --config c.yaml", None),
        ("vllm serve m --config=c.yaml", None),
        ("vllm serve m -tp", None),
        ("vllm serve m -tp two", None),
        ("vllm serve m -tp 0", None),
        ("vllm serve m --tensor-parallel 2", None),
        ("vllm serve m --data-parallel-rank 1 -dp 2", None),
        ("vllm serve m -dpr 1", None),
        ("vllm serve m --device-ids 2,3", None),
        ("vllm serve m --nnodes 2 -tp 16", None),
        ("python -m sglang.launch_server --base-gpu-id 2", None),
        ("python server.py -tp 2", None),
        ("VLLM::APIServer", None),
        ("ray::vLLMHttpServer.run", None),
        ("", None),
    ],
)  # fmt: skip
def test_how_many_devices_are_asked_for(line, number):
    """The product of the parallel sizes; nothing where options might say otherwise."""
    assert devices_asked(shlex.split(line)) == number


@pytest.fixture
def tree(monkeypatch):
    """Return a function that makes a server out of the environments of its processes, one below the other."""

    def make(*environments, line="vllm serve m -tp 2", family=None):
        variables = dict(enumerate(environments, 10))
        family = family or {pid: pid - 1 for pid in variables}
        monkeypatch.setattr(procfs, "parents", lambda pids: {pid: family[pid] for pid in pids})
        monkeypatch.setattr(procfs, "environment", variables.get)
        monkeypatch.setattr(procfs, "arguments", lambda pid: shlex.split(line) if pid == 10 else [])
        return list(variables)

    return make


def cuda(mask):
    """Return an environment with a mask."""
    return {"CUDA_VISIBLE_DEVICES": mask, "SECRET": "x"}


def test_workers_take_the_first_that_the_variable_lists(tree):
    """Two of four: in the variable's order; without a variable the first of the host's."""
    assert granted(tree(cuda("3,1,0"), cuda("3,1,0")), CARDS) == ("GPU-1", "GPU-3")
    assert granted(tree({}, {}), CARDS) == ("GPU-0", "GPU-1")
    assert granted(tree(cuda("GPU-2")), CARDS) == ("GPU-2",)
    assert granted(tree(cuda("")), CARDS) == ()


def test_without_a_number_it_is_all_that_may_be_seen(tree):
    """Rather too many than too few."""
    assert granted(tree(cuda("3,1,0"), line="python server.py"), CARDS) == ("GPU-0", "GPU-1", "GPU-3")


def test_variables_that_were_set_before_the_workers_began_count(tree):
    """A program may set them after its own start: then all that it has started since agrees."""
    assert granted(tree({}, cuda("3,2,1"), cuda("3,2,1")), CARDS) == ("GPU-2", "GPU-3")


def test_workers_that_differ_take_all_that_any_may_see(tree):
    """One that was started with a part of the devices, as under data parallelism on NPUs."""
    assert granted(tree(cuda("0,1,2"), cuda("0"), cuda("1")), CARDS) == ("GPU-0", "GPU-1")
    assert granted(tree(cuda("0,1,2"), cuda("0,1,2"), cuda("1")), CARDS) == ("GPU-0", "GPU-1", "GPU-2")


def test_npus_are_named_by_their_physical_numbers(tree):
    """In the variable's order; a list that CANN may read otherwise, and none, prove nothing."""
    assert granted(tree({"ASCEND_RT_VISIBLE_DEVICES": "4,5,6"}), []) == ("npu-physical:4", "npu-physical:5")
    assert granted(tree({"ASCEND_RT_VISIBLE_DEVICES": "5,4"}), []) is None
    assert granted(tree({}), []) is None
    assert granted(tree({"ASCEND_RT_VISIBLE_DEVICES": ""}), []) == ()


def test_without_cards_only_an_empty_variable_says_something(tree):
    """A CPU server that was forbidden all cards has none; numbers mean nothing where no card can be listed."""
    assert granted(tree(cuda("")), []) == ()
    assert granted(tree(cuda("0,1")), []) is None


def test_what_may_not_be_read_is_unknown(tree):
    """The server's variables: nothing without; a worker's: as if it were not there."""
    assert granted(tree(None, cuda("1")), CARDS) is None
    assert granted(tree(cuda("1"), None), CARDS) == ("GPU-1",)


def test_several_servers_are_looked_at_each(tree):
    """What has no parent among the processes is a server of its own."""
    pids = tree(cuda("1"), cuda("3"), family={10: 1, 11: 1})
    assert granted(pids, CARDS) == ("GPU-1", "GPU-3")
    assert granted(tree(cuda("1"), None, family={10: 1, 11: 1}), CARDS) is None


def test_the_order_of_unlike_cards_is_the_server_s(tree):
    """By address where its variable says so, else the fastest first."""
    cards = [Card("GPU-slow", "A", "1", 1.0), Card("GPU-fast", "B", "2", 2.0)]
    line = "vllm serve m"
    assert granted(tree({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, line=line), cards) == ("GPU-slow",)
    assert granted(tree({}, line=line), cards) == ("GPU-fast",)
