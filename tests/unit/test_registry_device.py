"""Names and masks resolve to one key per physical device, whichever process asks."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from profwin.errors import SettingError
from profwin.registry import device
from profwin.registry.device import contexts, keys_of, npu_key, physical_npus, unguarded, visible
from profwin.registry.inventory import Card, inventory
from profwin.registry.process import identity

SIX = tuple(Card(f"GPU-{letter}0000000-{letter}", "H", f"{i:02d}") for i, letter in enumerate("abcdef"))
MIXED = (Card("GPU-slow", "T4", "01", 10), Card("GPU-fast", "H100", "02", 90), Card("GPU-mid", "A100", "03", 50))
SLICED = (Card("GPU-p", "H", "01", 1, ("MIG-377e", "MIG-99aa")), Card("GPU-q", "H", "02", 1))


def key(name, mask=None, cards=SIX, **environment):
    """Give the key of one device under a mask."""
    if mask is not None:
        environment["CUDA_VISIBLE_DEVICES"] = mask
    return keys_of([name], environment=environment, cards=cards)[0]


@pytest.mark.parametrize(
    ("mask", "want"),
    [
        (None, "abcdef"),
        ("", ""),
        ("NoDevFiles", ""),
        ("-1", ""),
        ("0", "a"),
        ("2,0", "ca"),
        (" 1 , 3 ", "bd"),
        ("0,9,1", "a"),
        ("0,-1,1", "a"),
        ("0,x,1", "a"),
        ("GPU-a", "a"),
        ("GPU-b0000000-b,GPU-c", "bc"),
        ("1,GPU-a", "ba"),
        ("GPU-", ""),
        ("GPU-z,0", ""),
        ("0,0", ""),
        ("0,GPU-a", ""),
        ("1gpu,2x", "bc"),
    ],
)
def test_cuda_mask(mask, want):
    """Case 56: numbers, UUIDs, their beginnings, empty, unset and invalid entries resolve as CUDA resolves them."""
    environment = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    assert "".join(uuid[4] for uuid in visible(SIX, environment)) == want


def test_masks_remap_numbers():
    """Case 59: one card has one key under two masks, and two cards have two though both are cuda:0."""
    assert key("cuda:0", "2") == key("cuda:1", "0,2") == SIX[2].uuid
    assert key("cuda:0", "2") != key("cuda:0", "5")
    assert key("cuda", "4") == SIX[4].uuid == key("GPU-e", "0")


def test_order_is_fastest_first_unless_by_bus():
    """Case 59: unlike cards are numbered by speed, or by address where the variable says so; like ones by address."""
    assert key("cuda:0", cards=MIXED) == "GPU-fast"
    assert key("cuda:0", cards=MIXED, CUDA_DEVICE_ORDER="PCI_BUS_ID") == "GPU-slow"
    assert key("cuda:0", "1", cards=MIXED) == "GPU-mid"
    assert key("cuda:1") == SIX[1].uuid


def test_slices_have_their_own_keys():
    """A MIG slice is its own device, also by UUID in the mask; a card-wide backend locks the parent too."""
    assert visible(SLICED, {}) == ["MIG-377e"]
    assert key("cuda:0", "MIG-99", cards=SLICED) == "MIG-99aa"
    assert key("cuda:0", "1", cards=SLICED) == "GPU-q"
    assert keys_of(["MIG-99aa"], cards=SLICED, environment={}, card_wide=True) == ("GPU-p", "MIG-99aa")
    assert keys_of(["GPU-q"], cards=SLICED, environment={}, card_wide=True) == ("GPU-q",)
    old = keys_of(["MIG-GPU-p/1/0"], cards=SLICED, environment={}, card_wide=True)
    assert old == ("GPU-p", "MIG-GPU-p/1/0")
    assert key("cuda:0", "MIG-GPU-p/1/0", cards=SLICED) == "MIG-GPU-p/1/0" or visible(
        SLICED, {"CUDA_VISIBLE_DEVICES": "MIG-GPU-p/1/0"}
    ) == ["MIG-GPU-p/1/0"]


def test_spellings_of_one_device_are_one_key():
    """Case 31: a device named in several ways is one key, and keys are sorted."""
    names = ["cuda:1", "GPU-b", "GPU-b0000000-b", "cuda:0"]
    assert keys_of(names, environment={}, cards=SIX) == (SIX[0].uuid, SIX[1].uuid)
    assert keys_of("cuda:0", environment={}, cards=SIX) == (SIX[0].uuid,)


@pytest.mark.parametrize("name", ["", "0", "gpu", "cuda:", "cuda:x", "cuda:6", "cuda:-1", "cpu", "pretend:", "GPU-zz"])
def test_other_names_are_refused(name):
    """A name of no known form, or of no device of this process, is a wrong setting that says what is allowed."""
    with pytest.raises(SettingError, match="devices"):
        key(name)


def test_no_driver_no_cuda_device():
    """Without a driver cuda:0 is refused, and a UUID given by hand stands for itself."""
    with pytest.raises(SettingError, match="driver"):
        key("cuda:0", cards=())
    assert key("GPU-1234", cards=()) == "GPU-1234"


def test_pretend_devices():
    """Pretend devices have keys of their own, and ask for no driver."""
    assert keys_of(["pretend:b", "pretend:a"]) == ("pretend-a", "pretend-b")


def test_npu_numbers_map_to_physical_ones():
    """Case 58: a logical number maps through the mask, a physical one and an unmasked one stand for themselves."""
    masked = {"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}
    assert keys_of(["npu:1"], environment=masked) == (npu_key(5),)
    assert keys_of(["npu-physical:5"], environment=masked) == keys_of(["npu:5"], environment={}) == (npu_key(5),)
    assert npu_key(5) == f"npu-{identity().boot}-5"
    with pytest.raises(SettingError):
        keys_of(["npu:4"], environment=masked)
    with pytest.raises(SettingError):
        keys_of(["npu:0"], environment={"ASCEND_RT_VISIBLE_DEVICES": ""})


@pytest.mark.parametrize(
    ("mask", "count", "numbers", "warned"),
    [
        ("0,1,3,4", 4, [0, 1, 3, 4], None),
        ("0,1,3,4", 3, [0, 1, 3, 4], "dropped"),
        ("3,1", None, [3, 1], "ascend"),
        ("1,1", None, [1, 1], "ascend"),
        ("2,x,3", None, [2], "ignored"),
        ("", None, [], None),
    ],
)
def test_doubtful_npu_masks_are_warned_of(mask, count, numbers, warned):
    """Case 58: a list that CANN may read otherwise is warned of, with its ids."""
    found, problems = physical_npus({"ASCEND_RT_VISIBLE_DEVICES": mask}, count)
    assert found == numbers
    assert bool(problems) == bool(warned)
    if warned:
        assert warned in problems[0]
        assert str(numbers) in problems[0]


class FakeTorch(types.SimpleNamespace):
    """A torch that has started one accelerator."""

    def __init__(self, kind, used=(), count=0, hip=None, uuid=True):
        accelerator = types.SimpleNamespace(
            is_initialized=lambda: True,
            device_count=lambda: count,
            current_device=lambda: used[0],
            get_device_properties=lambda i: types.SimpleNamespace(**({"uuid": f"{i}-uuid"} if uuid else {})),
        )
        private = types.SimpleNamespace(_cuda_hasPrimaryContext=lambda i: i in used)
        super().__init__(version=types.SimpleNamespace(hip=hip), _C=private, **{kind: accelerator})


def test_contexts_are_those_that_exist(monkeypatch):
    """Only devices with a context count, by the UUID that torch gives, else through the mask."""
    monkeypatch.setitem(sys.modules, "torch", FakeTorch("cuda", used=(1, 3), count=4))
    monkeypatch.setattr(device, "inventory", lambda: (Card("GPU-p", slices=("MIG-3-uuid",)),))
    assert contexts() == ("GPU-1-uuid", "MIG-3-uuid")
    monkeypatch.setitem(sys.modules, "torch", FakeTorch("cuda", used=(1,), count=2, uuid=False))
    monkeypatch.setattr(device, "inventory", lambda: SIX)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,4")
    assert contexts() == (SIX[4].uuid,)
    assert unguarded() is None
    monkeypatch.setitem(sys.modules, "torch", FakeTorch("npu", used=(1,), count=2))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "6,7")
    assert contexts() == (npu_key(7),)


@pytest.mark.parametrize(("fake", "name"), [(FakeTorch("cuda", (0,), 1, hip="6.0"), "ROCm"), (FakeTorch("xpu"), "xpu")])
def test_accelerators_without_a_rule_are_unguarded(monkeypatch, fake, name):
    """ROCm and others lock nothing, and say so."""
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert name in unguarded()
    assert contexts() == ()


def test_asking_imports_and_starts_nothing():
    """Contexts are none where torch was not imported, and asking does not import it."""
    code = (
        "import sys; from profwin.registry.device import contexts, unguarded, keys_of; "
        "assert contexts() == () and unguarded() is None and keys_of(['pretend:x']); "
        "assert not {'torch', 'torch_npu', 'pynvml', 'logging', 'asyncio'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_real_torch_without_accelerator_has_no_contexts():
    """The installed torch has the functions that are asked, and no context on this machine's CPU."""
    torch = pytest.importorskip("torch")
    assert hasattr(torch.cuda, "is_initialized")
    if not torch.cuda.is_available():
        assert contexts() == ()
    assert isinstance(inventory(), tuple)
