"""Assertions on a record: each says what is wrong, where in the code, and shows the timeline around it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    from profwin.testing.record import Interval, Record

    Problem: TypeAlias = tuple[str, int]

__all__ = ["assert_all_recorded", "assert_no_overlap", "assert_rollout_before_training"]

_SHOWN = 8


def assert_no_overlap(record: Record) -> None:
    """Assert that no two collections overlap on a device, and that profwin did not have to prevent it.

    A stage that began inside an open window of its device is an overlap in the loop's code, although profwin closed the
    window in time. Overlaps on devices that are not shared are none.

    Args:
        record: what happened.

    Raises:
        AssertionError: something overlaps; or nothing was recorded, so that nothing is shown.
    """
    __tracebackhide__ = True
    problems = [*_collections_overlap(record), *_handovers(record)]
    if not record.collections:
        problems.append(("nothing was recorded, so nothing is shown to be apart", 0))
    _judge("rollout and training overlap", problems, record)


def assert_rollout_before_training(record: Record, step: int | None = None) -> None:
    """Assert that on each device rollout comes before training and is over when training begins.

    By the code's own windows and stages, recorded or not: no window is open when a stage of its device begins, none
    begins inside a stage, and the first stage of a step on a device comes after the first window of that step there.
    More windows between the stages of a step are allowed, and devices that are not shared need no order. Windows
    inside ``paused()`` do not count.

    Args:
        record: what happened.
        step: look at this step alone; default: all.

    Raises:
        AssertionError: the order is another; or the step, or every step, lacks windows or stages, so that nothing is
            shown.
    """
    __tracebackhide__ = True
    windows = [each for each in record.windows if not each.paused]
    stages = [each for each in record.stages if not each.paused and step in (None, each.step)]
    problems = [problem for stage in stages for problem in _out_of_order(stage, windows)]
    problems += _training_first(stages, windows)
    if not {each.step for each in stages} & {each.step for each in windows}:
        where = "no step has" if step is None else f"step {step} does not have"
        problems.append((f"{where} both a window and a stage", 0))
    _judge("rollout does not come before training", problems, record)


def assert_all_recorded(
    record: Record,
    steps: int | Iterable[int] | None = None,
    stages: str | Iterable[str] | None = None,
    windows: str | Iterable[str] | None = None,
) -> None:
    """Assert that every window and stage of a selected step was recorded, and whole.

    One that was skipped, closed before its end, never left, or whose profiler failed, is not. Only what the loop itself
    left out by ``paused()`` need not be.

    Args:
        record: what happened.
        steps: look at these alone; each must have a recorded window and a recorded stage. Default: all that were
            entered.
        stages: names of stages that each of the steps must have recorded; ``()``: none is needed.
        windows: the same for windows.

    Raises:
        AssertionError: something was not recorded; or nothing was.
    """
    __tracebackhide__ = True
    wanted = None if steps is None else {steps} if isinstance(steps, int) else set(steps)
    entered = [each for each in (*record.windows, *record.stages) if wanted is None or each.step in wanted]
    problems = [(f"{each}: {each.problem}", each.entered) for each in entered if each.problem is not None]
    recorded = {(each.what, each.step, each.name) for each in entered if each.recorded}
    for what, names in (("window", windows), ("stage", stages)):
        problems += _missing(recorded, what, names, record.steps if wanted is None else sorted(wanted), wanted is None)
    if not recorded:
        problems.append(("nothing was recorded", 0))
    _judge("not all was recorded", problems, record)


def _collections_overlap(record: Record) -> Iterator[Problem]:
    for device in record.devices:
        here = [each for each in record.collections if device in each.devices and not each.elsewhere]
        for number, first in enumerate(here):
            for second in here[number + 1 :]:
                if second.opened >= first.end:
                    break  # they are by the time they opened
                yield f"on {device}, {second} began to be recorded while {first} was", second.opened


def _handovers(record: Record) -> Iterator[Problem]:
    for each in record.overlaps:
        stage = f"stage {each.stage!r} of step {each.step} ({each.process}, {each.stage_site})"
        window = f"the open window {each.window!r} ({each.window_site})"
        yield f"{stage} began inside {window}, which profwin closed there: close the window first", each.time


def _out_of_order(stage: Interval, windows: Iterable[Interval]) -> Iterator[Problem]:
    for window in windows:
        shared = sorted(set(stage.devices) & set(window.devices))
        if shared and window.entered < stage.entered < window.end:
            yield f"on {shared[0]}, {stage} began while {window} was open", stage.entered
        elif shared and stage.entered < window.entered < stage.end:
            yield f"on {shared[0]}, {window} began inside {stage}", window.entered


def _training_first(stages: Iterable[Interval], windows: Iterable[Interval]) -> Iterator[Problem]:
    seen: set[tuple[int, str]] = set()
    for stage in stages:  # by the time they were entered
        for device in stage.devices:
            if (stage.step, device) in seen:
                continue
            seen.add((stage.step, device))
            window = next((each for each in windows if each.step == stage.step and device in each.devices), None)
            if window is not None and stage.end <= window.entered:
                yield f"on {device}, {stage} was over before the step's first {window} began", stage.entered


def _missing(
    recorded: Iterable[tuple[str, int, str]],
    what: str,
    names: str | Iterable[str] | None,
    steps: Iterable[int],
    all_steps: bool,
) -> Iterator[Problem]:
    found = {(step, name) for kind, step, name in recorded if kind == what}
    if names is None:
        if not all_steps:
            with_any = {step for step, _name in found}
            yield from ((f"step {step} has no recorded {what}", 0) for step in steps if step not in with_any)
        return
    names = (names,) if isinstance(names, str) else tuple(names)
    for step in steps:
        for name in names:
            if (step, name) not in found:
                yield f"step {step} has no recorded {what} {name!r}", 0


def _judge(headline: str, problems: list[Problem], record: Record) -> None:
    __tracebackhide__ = True
    if not problems:
        return
    from profwin.testing.timeline import draw

    lines = [f"  - {text}" for text, _time in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        lines.append(f"  - and {len(problems) - _SHOWN} more")
    focus = next((moment for _text, moment in problems if moment), None)
    raise AssertionError("\n".join([f"{headline}:", *lines, "", draw(record, focus)]))
