"""Layout: windows and stages by device: stages that no window precedes, devices on which nothing is decorated."""

from __future__ import annotations

from profwin.evidence import codes_run as codes
from profwin.evidence.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from profwin.evidence.expectation import Expectation
    from profwin.evidence.run import Interval, Run

    Key = tuple[str, str]  # the boot and the device: one key may be on two hosts

__all__ = ["layout"]


def layout(run: Run, expectation: Expectation) -> Iterator[Finding]:
    """Say where a window or the stages are missing that the rest of the run has.

    Rollout and training may be on different devices, always or now and then; so a device is compared with those that
    run the same windows, or the same stages in the same step.

    Args:
        run: the run.
        expectation: what was asked for.
    """
    windows: dict[Key, list[Interval]] = {}
    stages: dict[Key, list[Interval]] = {}
    for each in run.intervals:
        if each.what != "span":
            devices = windows if each.what == "window" else stages
            for key in each.keys:
                devices.setdefault((each.process.boot, key), []).append(each)
    if (not windows or not stages) and (expectation.stages or expectation.roles):
        return  # it may well be what was asked for
    if windows and not stages:
        detail = f"{sum(map(len, windows.values()))} windows on {len(windows)} devices, 0 stages"
        yield Finding(codes.NO_STAGES, detail, run.path("journal"))
        return
    if stages and not windows:
        detail = f"{sum(map(len, stages.values()))} stages on {len(stages)} devices, 0 windows"
        yield Finding(codes.NO_WINDOWS, detail, run.path("journal"))
        return
    yield from _bare(run, windows, stages)
    yield from _unpreceded(run, windows, stages)


def _bare(run: Run, windows: dict[Key, list[Interval]], stages: dict[Key, list[Interval]]) -> Iterator[Finding]:
    """Look for devices without stages among those that run windows of one name."""
    names: dict[str, set[Key]] = {}
    for key, found in windows.items():
        for each in found:
            if each.devices:  # a process that stands for its device is no sibling of one
                names.setdefault(each.name, set()).add(key)
    for name, keys in sorted(names.items()):
        bare = sorted(key for key in keys if key not in stages)
        if len(bare) == len(keys):
            continue  # they are for rollout alone
        for key in bare:
            detail = f"device {key[1]!r} has windows {name!r} and no stage; {len(keys) - len(bare)} of its {len(keys)} "
            detail += "siblings have stages"
            file = run.path(windows[key][0].process.journal)
            yield Finding(codes.WINDOW_WITHOUT_STAGES, detail, file, data={"device": key[1], "window": name})


def _unpreceded(run: Run, windows: dict[Key, list[Interval]], stages: dict[Key, list[Interval]]) -> Iterator[Finding]:
    """Look for steps whose stages no window precedes on their device, though that has windows in other steps."""
    begins: dict[tuple[Key, int | None], int] = {}
    for key, found in windows.items():
        for each in found:
            begin = _entry(each)
            begins[key, each.step] = min(begin, begins.get((key, each.step), begin))
    steps: dict[tuple[int | None, str], dict[Key, Interval]] = {}
    for key, found in stages.items():
        for each in found:
            there = steps.setdefault((each.step, each.name), {})
            if key in windows and (key not in there or _entry(each) < _entry(there[key])):
                there[key] = each
    said: set[tuple[Key, int | None]] = set()
    for (step, name), there in sorted(steps.items(), key=lambda item: (item[0][0] or 0, item[0][1])):
        lent = any((key, step) in begins for key in there)
        for key, each in there.items():
            first = begins.get((key, step))
            late = first is not None and first > _entry(each)
            if (late or (first is None and lent)) and (key, step) not in said:
                said.add((key, step))
                why = "its first window began after" if late else "it has no window, and its siblings have"
                detail = f"step {step} on device {key[1]!r}: {why} stage {name!r}"
                data = {"step": step, "stage": name, "device": key[1]}
                yield Finding(codes.STAGE_WITHOUT_WINDOW, detail, run.path(each.process.journal), data=data)


def _entry(interval: Interval) -> int:
    """Return when it began, on the clock that all processes of its boot share."""
    return interval.process.monotonic(interval.enter)
