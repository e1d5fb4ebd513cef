"""The timeout of the process group is in the journal of a process that has one, and torch is never imported for it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from check_support import codes
from core_support import PRELUDE, Evidence

from profwin import group

INNER = "torch.distributed.distributed_c10d"
SCRIPT = """
import datetime
import torch
import torch.distributed as dist

rank, directory = int(sys.argv[1]), sys.argv[2]
profwin.configure(steps="1", backend="torch", output=directory, run="r", devices=f"pretend:{rank}", role="a", rank=rank)
with training_step(1), training_stage("before"):
    torch.ones(3).sin()
dist.init_process_group(
    "gloo", init_method=f"file://{directory}.store", rank=rank, world_size=2, timeout=datetime.timedelta(seconds=20)
)
with rollout_window(1):
    torch.ones(3).sin()
with training_step(1), training_stage("update"):
    dist.all_reduce(torch.ones(3))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_real_group(tmp_path):
    """Both ranks of a group have its timeout with what they exported of training while it was there, and not before."""
    pytest.importorskip("torch")
    directory = tmp_path / "out"
    ranks = [
        subprocess.Popen([sys.executable, "-c", PRELUDE + SCRIPT, str(rank), str(directory)], stderr=subprocess.PIPE)
        for rank in (0, 1)
    ]
    for rank in ranks:
        _, errors = rank.communicate(timeout=100)
        assert rank.returncode == 0, errors
    evidence = Evidence(directory)
    names = {(each["pid"], each["collection"]): each["name"] for each in evidence.of("open")}
    found = [(names[each["pid"], each["collection"]], each.get("group_timeout")) for each in evidence.of("export")]
    assert sorted(found, key=str) == [
        ("before", None), ("before", None), ("rollout", None), ("rollout", None), ("update", 20.0), ("update", 20.0),
    ]  # fmt: skip
    assert "newer-journal" not in codes(directory, mildest="remark")


def test_torch_is_not_imported():
    """Asking where nobody has imported torch imports nothing."""
    code = "import sys; from profwin.group import group_timeout; print(group_timeout(), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "None False\n"


class _Group:
    def __init__(self, *seconds: float) -> None:
        self.looked = 0
        self._seconds = seconds
        self._device_types = range(len(seconds))

    def _get_backend(self, device: int) -> object:
        self.looked += 1
        timeout = SimpleNamespace(total_seconds=lambda: self._seconds[device])
        return SimpleNamespace(options=SimpleNamespace(_timeout=timeout))


def _set(monkeypatch, world: object) -> None:
    monkeypatch.setitem(sys.modules, INNER, SimpleNamespace(GroupMember=SimpleNamespace(WORLD=world)))


def test_the_shortest_of_several_backends(monkeypatch):
    """Of two backends the shorter timeout counts; it is looked up once for a group, and anew for the next one."""
    first = _Group(1800, 600)
    _set(monkeypatch, first)
    assert [group.group_timeout() for _ in range(3)] == [600.0] * 3
    assert first.looked == 2
    _set(monkeypatch, None)
    assert group.group_timeout() is None
    second = _Group(30)
    _set(monkeypatch, second)
    assert group.group_timeout() == 30.0


@pytest.mark.parametrize(
    "world",
    [object(), SimpleNamespace(_device_types=[1]), _Group(0.0), _Group(1e12), SimpleNamespace(_device_types=7)],
    ids=["no-types", "no-backend", "nothing", "endless", "no-list"],
)
def test_another_version_of_torch(monkeypatch, world):
    """Where the inner parts differ, or the timeout is none, nothing is known and nothing is raised."""
    _set(monkeypatch, world)
    assert [group.group_timeout() for _ in range(2)] == [None, None]
    monkeypatch.setitem(sys.modules, INNER, SimpleNamespace())
    assert group.group_timeout() is None
