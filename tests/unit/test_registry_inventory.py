"""The list of cards, from a fake NVML and from the driver's files; the real module has what is called."""

# The methods of a fake are described by those that they stand for:
# ruff: noqa: D102

from __future__ import annotations

import inspect

import pytest

from profwin.registry.inventory import NVML_FUNCTIONS, inventory, listed, measured


class NVMLError(Exception):
    """What the module raises for everything."""


class FakeNvml:
    """NVML with two cards in the order of the driver, which need not be that of their addresses."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(self, text=str, failing=()):
        self.text, self.failing, self.open = text, failing, 0

    def __getattribute__(self, name):
        if name.startswith("nvml") and name in object.__getattribute__(self, "failing"):
            raise NVMLError(name)
        return object.__getattribute__(self, name)

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUUID(self, handle):
        return self.text(f"GPU-{handle}" if isinstance(handle, int) else handle)

    def nvmlDeviceGetName(self, handle):
        return self.text("H200")

    def nvmlDeviceGetPciInfo(self, handle):
        return type("Info", (), {"busId": self.text(f"00000000:{9 - handle:02X}:00.0")})

    def nvmlDeviceGetNumGpuCores(self, handle):
        return 100

    def nvmlDeviceGetMaxClockInfo(self, handle, clock):
        return 10 * (handle + 1)

    def nvmlDeviceGetMigMode(self, handle):
        if handle == 1:
            raise NVMLError("not supported")
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle):
        return 3

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, index):
        if index == 1:
            raise NVMLError("not found")
        return f"MIG-{index}"


@pytest.mark.parametrize("text", [str, str.encode])
def test_cards_come_by_address_with_slices(text):
    """Cards are sorted by PCI address, with their speed and slices; NVML is closed again; old versions give bytes."""
    nvml = FakeNvml(text)
    cards = measured(nvml)
    assert [(card.uuid, card.name, card.speed, card.slices) for card in cards] == [
        ("GPU-1", "H200", 2000, ()),
        ("GPU-0", "H200", 1000, ("MIG-0", "MIG-2")),
    ]
    assert nvml.open == 0


def test_missing_driver_is_no_cards():
    """Where NVML cannot start or fails midway there are no cards, and it is closed."""
    assert measured(FakeNvml(failing=["nvmlInit"])) == ()
    broken = FakeNvml(failing=["nvmlDeviceGetUUID"])
    assert measured(broken) == ()
    assert broken.open == 0
    assert measured(FakeNvml(failing=["nvmlDeviceGetNumGpuCores"]))[0].speed == 0


def test_driver_files_are_read_where_nvml_is_missing(tmp_path):
    """The driver's own files give UUID, model and address."""
    for name, uuid in (("b", "GPU-2"), ("a", "GPU-1"), ("c", "????")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "information").write_text(
            f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nBus Location: \t 0000:{name.upper()}0:00.0\nno colon\n"
        )
    cards = listed(str(tmp_path / "*/information"))
    assert [(card.uuid, card.name, card.bus) for card in cards] == [
        ("GPU-1", "NVIDIA H200", "0000:a0:00.0"),
        ("GPU-2", "NVIDIA H200", "0000:b0:00.0"),
    ]


def test_inventory_answers_on_any_machine():
    """Whatever is installed here, asking does not raise, and the answer is kept."""
    assert inventory() is inventory()


def test_real_module_has_every_function_called():
    """The installed NVML module has the functions, with as many parameters as are given, and the error class."""
    pynvml = pytest.importorskip("pynvml")
    for name in NVML_FUNCTIONS:
        given = inspect.signature(getattr(FakeNvml(), name)).parameters
        inspect.signature(getattr(pynvml, name)).bind(*given)
    assert issubclass(pynvml.NVMLError, Exception)
    assert isinstance(pynvml.NVML_CLOCK_SM, int)
    assert measured(pynvml) == () or measured(pynvml)[0].uuid.startswith("GPU-")
