"""Which devices processes use by NVML, from a fake one; the real module has what is called."""

# The methods of a fake are described by those that they stand for:
# ruff: noqa: D102

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace

import pytest

from profwin.engines import occupancy, procfs
from profwin.engines.occupancy import NVML_FUNCTIONS, devices_of, running
from profwin.registry.device import keys_of
from profwin.registry.inventory import Card

NOT_SLICED = 0xFFFFFFFF
CARDS = (Card("GPU-a"), Card("GPU-b"), Card("GPU-m", slices=("MIG-1", "MIG-2")))


def user(pid, instance=NOT_SLICED, compute=NOT_SLICED):
    """Return an entry as NVML gives it."""
    return SimpleNamespace(pid=pid, usedGpuMemory=1, gpuInstanceId=instance, computeInstanceId=compute)


class NVMLError(Exception):
    """What the module raises for everything."""


class FakeNvml:
    """NVML with some users of devices; the slices of the third card are instances 1 and 2."""

    NVMLError = NVMLError

    def __init__(self, users, failing=()):
        self.users, self.failing, self.open = users, failing, 0

    def _check(self, *what):
        if set(what) & set(self.failing):
            raise NVMLError(what)

    def nvmlInit(self):
        self._check("nvmlInit")
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self._check(uuid)
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        self._check(f"users of {handle}")
        return self.users.get(handle, [])

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle):
        self._check(f"shared users of {handle}")
        return self.users.get(f"shared {handle}", [])

    def nvmlDeviceGetGpuInstanceId(self, device):
        return int(device[-1])

    def nvmlDeviceGetComputeInstanceId(self, device):
        self._check(f"instance of {device}")
        return 0


@pytest.fixture
def nvml(monkeypatch):
    """Return a function that installs a fake, on a host with three cards and in the first process namespace."""

    def install(users, failing=()):
        fake = FakeNvml(users, failing)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        monkeypatch.setattr(occupancy, "inventory", lambda: CARDS)
        monkeypatch.setattr(occupancy, "_ours", lambda users: True)
        monkeypatch.setattr(occupancy, "granted", lambda pids, cards: ("from the variables",))
        return fake

    return install


def test_users_are_found_by_card(nvml):
    """A worker on each card; others' processes do not count; the names are such as devices= takes."""
    fake = nvml({"GPU-a": [user(5), user(9)], "GPU-b": [user(6)]})
    assert devices_of([4, 5, 6]) == ("GPU-a", "GPU-b")
    assert keys_of(devices_of([4, 5]), cards=CARDS) == ("GPU-a",)
    assert fake.open == 0


def test_users_of_slices_use_these(nvml):
    """By the slice's own list, or by what the card's list says; who says no slice uses all of them."""
    nvml({"MIG-1": [user(5)]})
    assert devices_of([5]) == ("MIG-1",)
    nvml({"GPU-m": [user(5, 2, 0), user(6)]})
    assert (devices_of([5]), devices_of([6])) == (("MIG-2",), ("MIG-1", "MIG-2"))


def test_users_of_the_shared_server_count(nvml):
    """Under MPS the clients are listed apart; where that list cannot be had the other counts."""
    users = {"shared GPU-b": [user(5)], "GPU-a": [user(6)]}
    nvml(users)
    assert (devices_of([5]), devices_of([6])) == (("GPU-b",), ("GPU-a",))
    nvml(users, ["shared users of GPU-a"])
    assert devices_of([6]) == ("GPU-a",)


def test_what_fails_in_part_leaves_the_rest(nvml):
    """A slice, a card or a list that cannot be had is passed over; a driver that is not there knows nobody."""
    users = {"GPU-a": [user(5)], "GPU-b": [user(5)], "MIG-1": [user(5)], "MIG-2": [user(5)]}
    fake = nvml(users, ["GPU-a", "MIG-1", "instance of MIG-2", "users of GPU-m"])
    assert devices_of([5]) == ("GPU-b",)
    assert fake.open == 0
    nvml(users, ["nvmlInit"])
    assert devices_of([5]) == ("from the variables",)


def test_without_users_the_variables_say_it(nvml):
    """NVML lists none of the processes: they have not begun to use a card."""
    nvml({"GPU-a": [user(9)]})
    assert devices_of([5]) == ("from the variables",)
    assert devices_of([]) is None


def test_numbers_of_another_namespace_are_not_believed(nvml, monkeypatch, tmp_path):
    """In a container NVML may list the host's numbers: all must be processes here that have the driver open."""
    ours = occupancy._ours
    nvml({"GPU-a": [user(5)], "GPU-b": [user(6)]})
    monkeypatch.setattr(occupancy, "_ours", ours)
    monkeypatch.setattr(procfs, "PROC", str(tmp_path))
    assert devices_of([5]) == ("from the variables",)  # /proc does not even say which namespace this is
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "ns" / "pid").touch()
    for pid, target in ((5, "/dev/nvidiactl"), (6, "/dev/null")):
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "fd" / "3").symlink_to(target)
    assert devices_of([5]) == ("from the variables",)
    (tmp_path / "6" / "fd" / "4").symlink_to("/dev/nvidia0")
    assert devices_of([5]) == ("GPU-a",)
    monkeypatch.setattr(occupancy, "_FIRST_NAMESPACE", (tmp_path / "self" / "ns" / "pid").stat().st_ino)
    (tmp_path / "6" / "fd" / "4").unlink()
    assert devices_of([5]) == ("GPU-a",)


def test_without_the_module_nobody_is_known(monkeypatch):
    """The package of NVML is optional."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert running(CARDS) == {}


def test_real_module_has_every_function_called():
    """The installed NVML module has the functions, with as many parameters as are given."""
    pynvml = pytest.importorskip("pynvml")
    for name in NVML_FUNCTIONS:
        given = inspect.signature(getattr(FakeNvml({}), name)).parameters
        inspect.signature(getattr(pynvml, name)).bind(*given)
    fields = dict(pynvml.c_nvmlProcessInfo_v2_t._fields_)
    assert {"pid", "gpuInstanceId", "computeInstanceId"} <= set(fields)
    assert running((), pynvml) == {}
