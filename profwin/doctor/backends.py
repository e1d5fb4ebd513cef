"""Which backends can record in a process that is started like this one."""

from __future__ import annotations

from profwin.backends import available, load
from profwin.doctor.line import NO, OK, UNKNOWN, WARNING, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.doctor.host import Host

__all__ = ["backends"]

_WHAT = {
    "memory": "snapshots of the device allocator",
    "nsys": "capture ranges of Nsight Systems",
    "nvtx": "NVTX ranges alone",
    "record": "the journal alone, which is always on",
    "testing": "records nothing; for tests",
    "torch": "torch.profiler",
    "torch_npu": "torch_npu.profiler",
}


def backends(host: Host) -> Iterator[Line]:
    """Look at every backend, those of other packages too. Imports what a backend needs to say whether it works."""
    for name, reason in available().items():
        host.say(f"the backend {name}")
        try:
            yield _failed(name, reason) if reason is not None else _looked_at(host, name)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a profiler that breaks is an answer
            yield Line(name, UNKNOWN, f"looking at it failed: {type(error).__name__}: {error}")


def _failed(name: str, reason: str) -> Line:
    problem, _, remedy = reason.partition(": ")
    return Line(name, NO, problem, remedy or None)


def _looked_at(host: Host, name: str) -> Line:
    kind = load(name)
    what = _WHAT.get(name) or f"of the package that holds {kind.__module__}"
    data: dict[str, object] = {"exclusive": bool(kind.exclusive)}
    unusable = getattr(kind, "unusable", None)
    problem: str | None = unusable() if unusable is not None else None
    if problem is not None:
        return Line(name, NO, problem, data=data)
    stand_in = getattr(kind, "stand_in", None)
    answer: tuple[str, str] | None = stand_in() if stand_in is not None else None
    if answer is not None:
        return Line(name, NO, f"{answer[0]!r} records in its place: {answer[1]}", data={**data, "stand_in": answer[0]})
    if name == "torch":
        return _torch(what, data)
    if name == "nsys":
        return _nsys(host, what, data)
    return Line(name, OK, what, data=data)


def _torch(what: str, data: dict[str, object]) -> Line:
    import torch
    from torch.profiler import supported_activities

    found = supported_activities()  # type: ignore[no-untyped-call]  # torch has no annotation there
    kinds = sorted(activity.name for activity in found)
    detail = f"{what} of torch {torch.__version__}, which can record {' and '.join(kinds)}"
    return Line("torch", OK, detail, data={**data, "activities": kinds})


def _nsys(host: Host, what: str, data: dict[str, object]) -> Line:
    from profwin.backends.nsys_launch import launched

    sign = launched(host.environment, f"{host.root}/proc/self/maps")
    if sign is not None:
        return Line("nsys", OK, f"{what}; {sign}", data={**data, "launched": True})
    remedy = "`nsys profile` must launch the program; `profwin nsys-options` prints its options"
    detail = f"{what}; nothing shows that nsys launched this process, where they record nothing"
    return Line("nsys", WARNING, detail, remedy, {**data, "launched": False})
