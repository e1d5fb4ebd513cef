"""What doctor says of devices, of the lock folder, and of who holds what."""

from __future__ import annotations

import os
import stat

import pytest
from doctor_support import by_name, make_host, states

from profwin.doctor import devices, locks
from profwin.doctor.devices import devices as device_lines
from profwin.doctor.locks import locks as lock_lines
from profwin.registry.directory import Mount
from profwin.registry.holder import Mark, identity
from profwin.registry.inventory import Card
from profwin.registry.lock import Registry

CARDS = (Card("GPU-a", "H200", "1"), Card("GPU-b", "H200", "2"), Card("GPU-m", "A100", "3", 0.0, ("MIG-1", "MIG-2")))


@pytest.fixture
def cards(monkeypatch):
    """Return a function that puts cards into the host."""
    return lambda *given: monkeypatch.setattr(devices, "inventory", lambda: given)


def test_a_host_without_any(cards, tmp_path):
    """It is said of each kind; what is missing is nothing wrong."""
    cards()
    assert states(device_lines(make_host(tmp_path))) == {"NVIDIA cards": "note", "NPUs": "note"}


def test_cards_have_their_keys_and_numbers(cards, tmp_path):
    """By the mask of the variables; slices have keys of their own."""
    cards(*CARDS[:2])
    found = by_name(device_lines(make_host(tmp_path, {"CUDA_VISIBLE_DEVICES": "1"})))
    assert found["GPU-b"].data == {"key": "GPU-b", "kind": "cuda", "index": 0}
    assert "cuda:0" in found["GPU-b"].detail
    assert "not visible here" in found["GPU-a"].detail
    assert found["CUDA_VISIBLE_DEVICES"].data == {"value": "1", "visible": ["GPU-b"]}
    cards(*CARDS)
    found = by_name(device_lines(make_host(tmp_path)))
    assert "in slices" in found["GPU-m"].detail
    assert found["MIG-1"].data["index"] == 0
    assert "a slice of GPU-m" in found["MIG-2"].detail


@pytest.mark.parametrize(("mask", "state"), [("0,1", "ok"), ("0,9", "warning"), ("", "ok"), ("0,0", "warning")])
def test_masks_that_are_cut_are_warned_of(cards, tmp_path, mask, state):
    """An entry that names nothing cuts the list; one device twice empties it."""
    cards(*CARDS[:2])
    assert states(device_lines(make_host(tmp_path, {"CUDA_VISIBLE_DEVICES": mask})))["CUDA_VISIBLE_DEVICES"] == state


def test_npus_have_their_keys_and_numbers(cards, tmp_path):
    """By their nodes and the mask; a list that CANN may read otherwise is a warning."""
    cards()
    nodes = dict.fromkeys(("/dev/davinci0", "/dev/davinci3", "/dev/davinci_manager", "/dev/davinci3x"), "")
    found = by_name(device_lines(make_host(tmp_path, {"ASCEND_RT_VISIBLE_DEVICES": "3"}, nodes)))
    assert found["npu-physical:3"].data["index"] == 0
    assert found["npu-physical:3"].data["key"].endswith("-3")
    assert "not visible here" in found["npu-physical:0"].detail
    assert found["ASCEND_RT_VISIBLE_DEVICES"].state == "ok"
    found = by_name(device_lines(make_host(tmp_path, {"ASCEND_RT_VISIBLE_DEVICES": "3,0"})))
    assert found["ASCEND_RT_VISIBLE_DEVICES"].state == "warning"
    assert by_name(device_lines(make_host(tmp_path)))["npu-physical:3"].data["index"] == 3


def test_named_devices_have_keys(cards, tmp_path):
    """Those of the setting: each its key, or why it has none."""
    cards(*CARDS)
    host = make_host(tmp_path, {"PROFWIN_DEVICES": "pretend:x, cuda:7,npu:1", "ASCEND_RT_VISIBLE_DEVICES": "4,2"})
    found = by_name(device_lines(host))
    assert found["pretend:x"].data["key"] == "pretend-x"
    assert found["cuda:7"].state == "no"
    assert found["npu:1"].state == "warning"


def test_devices_without_a_rule_are_warned_of(cards, tmp_path):
    """They are not locked; a driver without NVML's package hides slices and users."""
    cards()
    files = {"/dev/kfd": "", "/proc/driver/nvidia/version": "NVRM version: x\n"}
    found = states(device_lines(make_host(tmp_path, {"ROCR_VISIBLE_DEVICES": "0"}, files)))
    assert (found["ROCm"], found["ROCR_VISIBLE_DEVICES"]) == ("warning", "warning")
    assert found.get("NVML", "warning") == "warning"


def folder(tmp_path, path):
    """Look at a lock folder."""
    return by_name(lock_lines(make_host(tmp_path, {"PROFWIN_LOCK_DIR": str(path)})))


def test_a_folder_is_looked_at_and_not_made(tmp_path):
    """One that is missing and can be made is fine, and stays missing."""
    line = folder(tmp_path, tmp_path / "a" / "b")["lock folder"]
    assert line.state == "ok"
    assert "PROFWIN_LOCK_DIR" in line.detail
    assert "made when first needed" in line.detail
    assert line.data["file_system"]
    assert line.data["exists"] is False
    assert not (tmp_path / "a").exists()
    assert folder(tmp_path, "relative")["lock folder"].state == "no"


def test_folders_that_cannot_be_used(tmp_path, monkeypatch):
    """A link, a file, one that may not be written, one of a network, one below a file."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name, word in (("file", "not a directory"), ("link", "symbolic link"), ("file/x", "read")):
        line = folder(tmp_path, tmp_path / name)["lock folder"]
        assert (line.state, word in line.detail) == ("no", True), line
        assert "PROFWIN_LOCK_DIR" in line.remedy
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        assert "cannot write it" in folder(tmp_path, tmp_path)["lock folder"].detail
        assert "cannot be made" in folder(tmp_path, tmp_path / "new")["lock folder"].detail
    monkeypatch.setattr(locks.folder, "mount_of", lambda *_: Mount("/", "/", "nfs4", "server:/"))
    assert "network file system (nfs4)" in folder(tmp_path, tmp_path)["lock folder"].detail


def test_a_private_folder_is_warned_of(tmp_path, monkeypatch):
    """Other containers would lock other files for the same devices."""
    monkeypatch.setattr(locks.folder, "private", lambda path: True)
    assert folder(tmp_path, tmp_path)["private"].state == "warning"


def test_who_holds_what_is_said(tmp_path):
    """Held, unknown and unusable devices are named, free ones counted."""
    place = tmp_path / "locks"
    registry = Registry(str(place))
    registry.acquire(["free"], kind="training").release()
    held = registry.acquire(["busy"], kind="rollout", name="rollout", step=3)
    marked = registry.acquire(["marked"], kind="rollout")
    marked.set_mark(Mark([identity()], "run", "rollout", 4))
    marked.release()
    os.mkfifo(place / "odd.lock")
    try:
        found = folder(tmp_path, place)
    finally:
        held.release()
    assert found["devices"].data == {"free": 1, "held": 1, "unknown": 1, "unusable": 1}
    assert "step 3" in found["busy"].detail
    assert (found["marked"].state, "--confirm" in found["marked"].remedy) == ("warning", True)
    assert found["odd"].state == "warning"
    assert "free" not in found
    assert stat.S_IMODE(place.stat().st_mode) == 0o1777
