"""Which physical devices are meant: names and masks in, keys that all processes of the host agree on out.

The key of a card is its UUID, of a MIG slice its own, of an NPU its physical number with the boot id. Nothing
here makes a context or imports a framework.

No accelerator was at hand when this was written. The rules of the masks are those of the CUDA and CANN
manuals; what the driver does beyond them is private, and noted where it matters.
"""

from __future__ import annotations

import os
import sys

from profwin.errors import SettingError
from profwin.registry.holder import identity
from profwin.registry.inventory import Card, inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

__all__ = ["contexts", "keys_of", "npu_key", "physical_npus", "unguarded", "visible"]

_NAMES = (
    "device names such as 'cuda:0' or 'npu:0' (numbers as this process sees them), 'npu-physical:4', a UUID "
    "'GPU-…' or 'MIG-…', or 'pretend:NAME'"
)
_OTHERS = ("xpu", "hpu", "mlu", "musa", "gcu")


def visible(cards: Sequence[Card], environment: Mapping[str, str]) -> list[str]:
    """List the UUIDs of the devices that CUDA numbers 0, 1, ... under an environment.

    ``CUDA_VISIBLE_DEVICES`` may hold numbers, UUIDs or beginnings of them, and MIG ids; unset means all,
    empty none; the first entry that names nothing cuts the list; one device named twice empties it. Of a card
    in MIG mode CUDA shows a slice, and only one slice to a process. Numbers count by PCI address if
    ``CUDA_DEVICE_ORDER=PCI_BUS_ID``; else fastest first, by a rule of the driver's that is private and here
    approximated by cores times clock, ties by address. Both orders are the same where all cards are of one
    model.

    Args:
        cards: of this host, by PCI address.
        environment: the variables of the process meant.
    """
    order = list(cards)
    if environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and len({card.name for card in cards}) > 1:
        order.sort(key=lambda card: -card.speed)
    mask = environment.get("CUDA_VISIBLE_DEVICES")
    if mask is None:
        found = [card.slices[0] if card.slices else card.uuid for card in order]
    else:
        found = []
        for entry in mask.split(","):
            uuid = _resolve(entry.strip(), order)
            if uuid is None:
                break
            found.append(uuid)
    slices = {uuid for card in cards for uuid in card.slices}
    if any(uuid in slices for uuid in found):
        found = [uuid for uuid in found if uuid in slices][:1]
    return found if len(set(found)) == len(found) else []


def _resolve(entry: str, order: Sequence[Card]) -> str | None:
    """Resolve one entry of the mask; None where it names nothing, or several."""
    if entry.startswith("MIG-GPU-"):  # MIG-GPU-<uuid>/<instance>/<instance>, of drivers before R470
        return entry if any(entry[4:].startswith(card.uuid) for card in order) else None
    if entry.startswith(("GPU-", "MIG-")):
        every = [uuid for card in order for uuid in (card.uuid, *card.slices)]
        matches = [uuid for uuid in every if uuid.startswith(entry)]
        return matches[0] if len(matches) == 1 else None
    digits = entry[: len(entry) - len(entry.lstrip("0123456789"))]
    if not digits or int(digits) >= len(order):
        return None
    card = order[int(digits)]
    return card.slices[0] if card.slices else card.uuid


def physical_npus(environment: Mapping[str, str], count: int | None = None) -> tuple[list[int] | None, list[str]]:
    """List the physical numbers of the NPUs that this process numbers 0, 1, ....

    Args:
        environment: with ``ASCEND_RT_VISIBLE_DEVICES``, or without, which means all.
        count: how many NPUs the process really sees; None where nobody has asked.

    Returns:
        The numbers, None for "as they are"; and warnings in words: CANN silently drops what it does not
        accept, and then numbers may mean other devices than the list says.
    """
    mask = environment.get("ASCEND_RT_VISIBLE_DEVICES")
    if mask is None:
        return None, []
    numbers: list[int] = []
    for entry in mask.split(","):
        if not entry.strip().isdecimal():
            break
        numbers.append(int(entry))
    shown, problems = f"ASCEND_RT_VISIBLE_DEVICES={mask!r}", []
    if len(numbers) != len(mask.split(",")) and mask.strip():
        problems.append(f"{shown}: only {numbers} can be read, the rest is ignored")
    if numbers != sorted(set(numbers)):
        problems.append(f"{shown}: the ids {numbers} do not ascend, so CANN may number them otherwise")
    if count is not None and count != len(numbers):
        problems.append(
            f"{shown} lists the ids {numbers}, but this process sees {count} NPUs: an id may have been "
            "dropped, and device locks may be taken for the wrong NPU"
        )
    return numbers, problems


def npu_key(physical: int) -> str:
    """Give the key of an NPU, from its physical number: what Ray's ``get_accelerator_ids()`` gives.

    In a container that numbers its NPUs anew the key differs from the host's; share numbers, or name keys by
    hand.
    """
    return f"npu-{identity().boot}-{physical}"


def keys_of(
    names: Iterable[str],
    *,
    card_wide: bool = False,
    environment: Mapping[str, str] | None = None,
    cards: Sequence[Card] | None = None,
    warn: Callable[[str], None] | None = None,
) -> tuple[str, ...]:
    """Give the keys of the devices that are named, sorted, each once.

    Args:
        names: ``"cuda:1"``, ``"npu:1"`` (as this process numbers them; without a number: its current device,
            else its first), ``"npu-physical:5"``, a UUID, or ``"pretend:NAME"``.
        card_wide: add the card's own key to that of a MIG slice: for a backend that records the whole card.
        environment: the variables to read the masks from; None for this process's.
        cards: of this host; None to look.
        warn: told of masks whose meaning is doubtful; None logs them.

    Raises:
        SettingError: a name has none of these forms, or names no device of this process.
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    if cards is None:
        cards = () if all(name.startswith(("pretend:", "npu")) for name in names) else inventory()
    environment = os.environ if environment is None else environment
    keys: set[str] = set()
    for name in names:
        key = _key(name, environment, cards, warn or _log)
        keys.add(key)
        keys.update(card.uuid for card in cards if card_wide and _part_of(key, card))
    return tuple(sorted(keys))


def _part_of(key: str, card: Card) -> bool:
    return key in card.slices or key.startswith(f"MIG-{card.uuid}/")


def _key(name: str, environment: Mapping[str, str], cards: Sequence[Card], warn: Callable[[str], None]) -> str:
    kind, _, rest = name.partition(":")
    if kind == "pretend" and rest:
        return f"pretend-{rest}"
    if kind == "npu-physical" and rest.isdecimal():
        return npu_key(int(rest))
    if name.startswith(("GPU-", "MIG-")):
        uuid = _resolve(name, cards)
        if uuid is None and cards and not name.startswith("MIG-"):
            raise SettingError("devices", name, "the UUID of one of this host's cards (`nvidia-smi -L` lists them)")
        return uuid or name
    if kind in {"cuda", "npu"} and (rest.isdecimal() or name == kind):
        index = int(rest) if rest else _current(kind)
        return _cuda(name, index, environment, cards) if kind == "cuda" else _npu(name, index, environment, warn)
    raise SettingError("devices", name, _NAMES)


def _cuda(name: str, index: int, environment: Mapping[str, str], cards: Sequence[Card]) -> str:
    uuids = visible(cards, environment)
    if index < len(uuids):
        return uuids[index]
    if not cards:
        raise SettingError("devices", name, "a device of a host that has an NVIDIA driver (none was found here)")
    raise SettingError("devices", name, f"one of the {len(uuids)} CUDA devices that this process may see")


def _npu(name: str, index: int, environment: Mapping[str, str], warn: Callable[[str], None]) -> str:
    npu = _started("npu")
    physical, problems = physical_npus(environment, npu.device_count() if npu is not None else None)
    for problem in problems:
        warn(problem)
    if physical is None:
        return npu_key(index)
    if index >= len(physical):
        raise SettingError("devices", name, f"one of the {len(physical)} NPUs of ASCEND_RT_VISIBLE_DEVICES")
    return npu_key(physical[index])


def contexts() -> tuple[str, ...]:
    """Give the keys of the devices on which this process already has a context, sorted.

    It makes no context and imports nothing. Empty where torch is not imported or has not started its
    accelerator: such a process records no device.
    """
    keys: set[str] = set()
    cuda = _started("cuda")
    if cuda is not None and not sys.modules["torch"].version.hip:
        for index in range(cuda.device_count()):
            if sys.modules["torch"]._C._cuda_hasPrimaryContext(index):
                keys.add(_used_cuda(cuda, index))
    npu = _started("npu")
    if npu is not None:
        # torch_npu does not say on which devices it has contexts: the current one is the one that it
        # profiles.
        keys.add(_npu("npu", npu.current_device(), os.environ, _log))
    return tuple(sorted(keys))


def _used_cuda(cuda: Any, index: int) -> str:
    """Ask torch for the UUID: what it has opened, whatever has become of the mask since."""
    uuid = str(getattr(cuda.get_device_properties(index), "uuid", ""))
    if not uuid:
        return _cuda(f"cuda:{index}", index, os.environ, inventory())
    slices = [name for card in inventory() for name in card.slices]
    return f"MIG-{uuid}" if f"MIG-{uuid}" in slices else f"GPU-{uuid}"


def unguarded() -> str | None:
    """Say in a sentence which accelerator this process uses that profwin has no rule for; None if none."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    found = [name for name in _OTHERS if _started(name) is not None]
    if _started("cuda") is not None and torch.version.hip:
        found.insert(0, "ROCm")
    if not found:
        return None
    return f"no device is locked: profwin has no rule for {', '.join(found)}, so profilers may overlap there"


def _started(kind: str) -> Any:
    """Give torch's module of an accelerator that is in use here, else None."""
    module = getattr(sys.modules.get("torch"), kind, None)
    asked = getattr(module, "is_initialized", None)
    return module if asked is not None and asked() else None


def _current(kind: str) -> int:
    module = _started(kind)
    return 0 if module is None else int(module.current_device())


def _log(problem: str) -> None:
    import logging

    logging.getLogger("profwin").warning("%s", problem)
