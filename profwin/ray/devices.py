"""The devices that Ray has given to a worker."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["granted"]

_KINDS = (("GPU", "cuda", "CUDA_VISIBLE_DEVICES"), ("NPU", "npu", "ASCEND_RT_VISIBLE_DEVICES"))


def granted(ids: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Name the devices of a worker as :func:`profwin.configure` takes them; empty where Ray gave it none.

    Ray's ids are entries of the node's list of visible devices: numbers, or UUIDs. By default Ray 2.60 puts them into
    the worker's own list, where each is found at its place; with ``RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES`` (or
    ``..._ASCEND_RT_VISIBLE_DEVICES``), which verl sets, that list is unset, or somebody else's.

    A worker that Ray has given none, and whose list it leaves alone by that variable, works on all of its list: so are
    the servers of verl, which set the list themselves to the devices of those workers that they belong to.

    Args:
        ids: of ``get_accelerator_ids()``, which has NPUs, too, as ``get_gpu_ids()`` has not.
        environment: the variables of the worker.
    """
    found = []
    for resource, kind, variable in _KINDS:
        mask = environment.get(variable)
        entries = None if mask is None else [entry.strip() for entry in mask.split(",")]
        for device in ids.get(resource, ()):
            if device.startswith(("GPU-", "MIG-")):
                found.append(device)
            elif entries is None:
                found.append(f"{kind}:{device}")
            elif device in entries:
                found.append(f"{kind}:{entries.index(device)}")
    return tuple(found) if any(ids.get(resource) for resource, _, _ in _KINDS) else _listed(environment)


def _listed(environment: Mapping[str, str]) -> tuple[str, ...]:
    for _, kind, variable in _KINDS:
        if environment.get(f"RAY_EXPERIMENTAL_NOSET_{variable}") and environment.get(variable):
            return tuple(f"{kind}:{number}" for number in range(len(environment[variable].split(","))))
    return ()
