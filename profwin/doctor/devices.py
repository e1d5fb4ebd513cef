"""The devices of this host, with the keys that their locks have, and which of them a process like this one sees."""

from __future__ import annotations

from profwin.doctor.engines import version_of
from profwin.doctor.line import NO, NOTE, OK, WARNING, Line
from profwin.errors import SettingError
from profwin.registry.device import keys_of, npu_key, physical_npus, visible
from profwin.registry.inventory import inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from profwin.doctor.host import Host
    from profwin.registry.inventory import Card

__all__ = ["devices"]

_CUDA, _ASCEND, _PRETEND = "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "PROFWIN_DEVICES"
_OTHERS = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "HABANA_VISIBLE_DEVICES")
_ROCM = "/dev/kfd"


def devices(host: Host) -> Iterator[Line]:
    """List cards, their slices and NPUs, what the variables say of them, and the devices that profwin is told of.

    No context is made, and no framework imported: an NPU's number may mean another device where CANN numbers them anew.
    """
    host.say("the cards")
    cards = inventory()
    yield from _cards(host, cards)
    yield from _npus(host)
    for name in _OTHERS:
        if name in host.environment:
            yield Line(name, WARNING, _unguarded(f"{name} is set"))
    if host.exists(_ROCM):
        yield Line("ROCm", WARNING, _unguarded(f"there is {_ROCM}"))
    if given := host.environment.get(_PRETEND):
        yield from _named(host, given, cards)


def _cards(host: Host, cards: Sequence[Card]) -> Iterator[Line]:
    seen = visible(cards, host.environment)
    for card in cards:
        yield _card(card.uuid, f"{card.name}, {card.bus}", seen, sliced=bool(card.slices))
        for uuid in card.slices:
            yield _card(uuid, f"a slice of {card.uuid}", seen)
    if not cards:
        yield Line("NVIDIA cards", NOTE, "none is listed by NVML or by a driver in /proc", data={"cards": 0})
    if host.exists("/proc/driver/nvidia/version") and version_of("nvidia-ml-py") is None:
        detail = "without NVML's package slices are not seen, nor which processes use a card"
        yield Line("NVML", WARNING, detail, "pip install 'profwin[nvidia]'")
    if _CUDA in host.environment:
        mask = host.environment[_CUDA]
        detail = f"{mask!r}: a process like this one sees {len(seen)} of {len(cards)} cards"
        doubtful = bool(cards) and bool(mask.strip()) and len(seen) != len(mask.split(","))
        yield Line(_CUDA, WARNING if doubtful else OK, detail, data={"value": mask, "visible": seen})


def _card(key: str, what: str, seen: Sequence[str], *, sliced: bool = False) -> Line:
    index = seen.index(key) if key in seen else None
    place = "in slices" if sliced else "not visible here" if index is None else f"cuda:{index}"
    return Line(key, OK, f"{what}; {place}", data={"key": key, "kind": "cuda", "index": index})


def _npus(host: Host) -> Iterator[Line]:
    nodes = host.paths("/dev/davinci[0-9]*")
    physical, problems = physical_npus(host.environment)
    for node in nodes:
        number = int(node.removeprefix("/dev/davinci")) if node.removeprefix("/dev/davinci").isdecimal() else None
        if number is None:
            continue
        index = number if physical is None else physical.index(number) if number in physical else None
        place = "not visible here" if index is None else f"npu:{index}"
        key = npu_key(number)
        yield Line(f"npu-physical:{number}", OK, f"{key}; {place}", data={"key": key, "kind": "npu", "index": index})
    if not nodes:
        yield Line("NPUs", NOTE, "there is no /dev/davinci*", data={"npus": 0})
    if _ASCEND in host.environment:
        detail = "; ".join(problems) or repr(host.environment[_ASCEND])
        yield Line(_ASCEND, WARNING if problems else OK, detail, data={"value": host.environment[_ASCEND]})


def _named(host: Host, given: str, cards: Sequence[Card]) -> Iterator[Line]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        notes: list[str] = []
        try:
            keys = keys_of([name], environment=host.environment, cards=cards, warn=notes.append)
        except SettingError as error:
            yield Line(name, NO, f"{_PRETEND}: {error}")
            continue
        detail = "; ".join([f"{', '.join(keys)}, by {_PRETEND}", *notes])
        yield Line(name, WARNING if notes else OK, detail, data={"key": keys[0], "kind": "named", "index": None})


def _unguarded(sign: str) -> str:
    return f"{sign}, and profwin has no rule for such devices: none is locked, so profilers may overlap there"
