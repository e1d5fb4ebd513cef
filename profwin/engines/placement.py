"""Which devices a server was given: its visible-devices variables, and how many of them its command line asks for.

Read in the sources of vLLM 0.32 and SGLang 0.5.23. Both start a worker for each device, and number the devices as the
variable lists them: worker *n* takes the *n*-th. The variable is one for all workers (vLLM does not change it for
tensor-parallel workers), so it says what they may see, and the command line how many of these they take.
"""

from __future__ import annotations

from itertools import pairwise

from profwin.engines import procfs
from profwin.registry.device import physical_npus, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from profwin.registry.inventory import Card

__all__ = ["devices_asked", "granted"]

_CUDA, _ASCEND = "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"
_VARIABLES = (_CUDA, _ASCEND, "CUDA_DEVICE_ORDER")

_SIZES = {
    "--tensor-parallel-size": "tensor", "-tp": "tensor", "--tp-size": "tensor", "--tp": "tensor",
    "--pipeline-parallel-size": "pipeline", "-pp": "pipeline", "--pp-size": "pipeline", "--pp": "pipeline",
    "--data-parallel-size": "data", "-dp": "data", "--dp-size": "data", "--dp": "data",
    "--prefill-context-parallel-size": "prefill", "-pcp": "prefill",
}  # fmt: skip
"""Options whose values, multiplied, are the number of devices."""
_HARMLESS = ("--data-parallel-backend", "--data-parallel-address", "--data-parallel-rpc-port", "-dpa", "-dpp", "-dpb")
_BEGINNINGS = ("--tensor", "--tp", "--pipeline", "--pp", "--data-par", "--dp", "--prefill-context", "-dp")
"""Options that begin so, and are none of those above, may place the workers otherwise, or shorten one of them."""
_OTHERWISE = ("--config", "--device-ids", "--base-gpu-id", "--gpu-id-step", "--nnodes", "--node-rank", "-n", "-r")
_SERVERS = ("vllm", "sglang")


def granted(pids: Sequence[int], cards: Sequence[Card]) -> tuple[str, ...] | None:
    """Return the devices that processes were given: UUIDs of cards and slices, or ``npu-physical:`` names.

    The variables are those that a process was started with. Where the processes that a server has started were all
    given others than the server, those count (a program can set them before it starts its workers); where they differ
    among themselves, all that any of them may see.

    Args:
        pids: parents before children.
        cards: of this host.

    Returns:
        Sorted; empty where they may see none; None where no variable says it and this host shows no card either.
    """
    family = procfs.parents(pids)
    found: set[str] = set()
    for top in (pid for pid in pids if family.get(pid) not in pids):
        below = [pid for pid in procfs.within(top, family)[1:] if pid in pids]
        devices = _given(top, below, cards)
        if devices is None:
            return None
        found |= devices
    return tuple(sorted(found))


def _given(top: int, below: Sequence[int], cards: Sequence[Card]) -> set[str] | None:
    environment = procfs.environment(top)
    if environment is None:
        return None
    masks = [_mask(environment)]
    others = {_mask(each) for pid in below if (each := procfs.environment(pid)) is not None}
    if others and others != set(masks):
        masks = sorted(others, key=repr)
    lists = [_visible(dict(mask), cards) for mask in masks]
    if any(devices is None for devices in lists):
        return None
    number = devices_asked(procfs.arguments(top)) if len(lists) == 1 else None
    return {device for devices in lists if devices is not None for device in devices[:number]}


def _mask(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, environment[name]) for name in _VARIABLES if name in environment)


def _visible(environment: Mapping[str, str], cards: Sequence[Card]) -> list[str] | None:
    """List the devices that a process sees, in its order; None where it cannot be told."""
    if cards:
        return visible(cards, environment)
    if _ASCEND in environment:
        numbers, problems = physical_npus(environment)
        # A list that CANN may read otherwise than we do proves nothing.
        return None if numbers is None or problems else [f"npu-physical:{number}" for number in numbers]
    return [] if environment.get(_CUDA) == "" else None


def devices_asked(line: Sequence[str]) -> int | None:
    """Return how many devices the command line of a vLLM or SGLang server asks for; None where it does not tell.

    It does not where the options stand in a file, where some of the workers are on other hosts or are another server's,
    and where the process has put a title in the place of its command line.

    Args:
        line: the server's command line.
    """
    if not any(server in part for part in line[:3] for server in _SERVERS) or len(line) < 2:
        return None
    sizes: dict[str, int] = {}
    for part, following in pairwise([*line, ""]):
        option, equals, value = part.partition("=")
        option = option.replace("_", "-")
        size = _SIZES.get(option)
        if size is not None:
            text = value if equals else following
            if not text.isdecimal() or int(text) < 1:
                return None
            sizes[size] = int(text)
        elif option in _OTHERWISE or (option.startswith(_BEGINNINGS) and option not in _HARMLESS):
            return None
    number = 1
    for each in sizes.values():
        number *= each
    return number
