"""The steps on the report's page: for each one its picture, its slowest ranks, its bubbles and its devices."""

from __future__ import annotations

from profwin.evidence.bars import NAMES, bar, look_shares
from profwin.evidence.bubbles import CAUSES
from profwin.evidence.gantt import figure
from profwin.evidence.markup import NONE, SPACE, Unit, counted, percent, seconds, table, text
from profwin.evidence.phases import COSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from profwin.evidence.phases import DevicePhases, StepPhases

__all__ = ["CAUSE_NAMES", "bubble_text", "costs_table", "detail", "overview", "sync_share", "versions_table"]

CAUSE_NAMES = {
    "device": "waiting for the device's lock",
    "profiling": "a profiler started, stopped or wrote",
    "rank": "waiting for a slower rank's stage",
    "samples": "waiting for samples: others generated",
    "training": "waiting for training on other devices",
    "sync": "waiting for a weight sync of other devices",
    "unknown": "not known from the journals",
}
RANKS = {"rollout": "window", "training": "stage", "sync": "weight sync"}
MOST_DEVICES = 32
MOST_NAMES = 60
PARTS = ("rollout", "training", "sync", "sync_at_most", "other", "handover", "idle")


def step_name(step: StepPhases, *, attempts: bool) -> str:
    """Name a step; with its attempt where there are several."""
    return f"Step {step.step}" + (f", attempt {step.attempt}" if attempts else "")


def sync_share(step: StepPhases) -> str:
    """Return the share of weight syncs; where no journal says when they began, as what it is at most."""
    at_most = step.share("sync_at_most")
    share = percent(step.share("sync") + at_most)
    return f"&lt;={SPACE}{share}" if at_most >= 0.01 else share


def overview(steps: Sequence[StepPhases], identifier: str, drawn: Container[int], *, attempts: bool) -> str:
    """Return the table of steps; those at the places ``drawn`` have a section to lead to."""
    unit = Unit.of(step.span for step in steps)
    rows = []
    for index, step in enumerate(steps):
        name = step_name(step, attempts=attempts)
        shares = {kind: step.share(kind) for kind in PARTS}
        label = f"{name}: " + ", ".join(f"{NAMES[kind]} {percent(part)}" for kind, part in shares.items() if part > 0)
        rows.append(
            [
                f'<a href="#{identifier}-{index}">{name}</a>' if index in drawn else name,
                unit.show(step.span),
                bar(look_shares([step]), label, f"{identifier}-b{index}", 180),
                *(percent(step.share(kind)) for kind in ("rollout", "training")),
                sync_share(step),
                *(percent(step.share(kind)) for kind in ("handover", "idle")),
                percent(step.overlap / step.span if step.span else 0),
                NONE if step.staleness is None else str(step.staleness),
                percent(step.cost / step.span if step.span else 0),
            ]
        )
    headers = [
        "Step", f"Length, {unit.name}", "Devices' time", "Rollout", "Training", "Weight sync", "Handover", "Idle",
        "Overlap", "Staleness", "Profiling",
    ]  # fmt: skip
    return table(
        "Profiled steps. Shares are of the time of all devices; overlap and profiling are of the step's length.",
        headers, rows, words=(2,),
    )  # fmt: skip


def detail(step: StepPhases, identifier: str, level: int, *, attempts: bool) -> str:
    """Return the section of one step."""
    name = step_name(step, attempts=attempts)
    parts = [f'<section><h{level} id="{identifier}">{name}</h{level}>', _sentence(step)]
    parts += [figure(step, f"{identifier}-g"), _ranks(step), _causes(step), _devices(step, name), "</section>\n"]
    return "".join(parts)


def _sentence(step: StepPhases) -> str:
    said = [f"{seconds(step.span)} on {counted(len(step.devices), 'device')}."]
    if step.overlap:
        said.append(
            f"Rollout ran beside training on other devices for {seconds(step.overlap)},"
            f" {percent(step.overlap / step.span)} of the step: there it is wanted."
        )
    slow = max(step.ranks, key=lambda ranks: ranks.behind, default=None)
    if slow is not None and slow.behind > 0:
        said.append(f"Slowest: {text(slow.name)} on {text(slow.slowest)}, {seconds(slow.behind)} behind the others.")
    if step.staleness == 0:
        said.append("All its samples were generated with the weights that were trained.")
    elif step.staleness is not None:
        said.append(f"Its oldest samples were {counted(step.staleness, 'weight version')} behind.")
    return f"<p>{' '.join(said)}</p>"


def _ranks(step: StepPhases) -> str:
    unit = Unit.of(ranks.longest for ranks in step.ranks)
    compared = any(ranks.workers > 1 for ranks in step.ranks)
    rows = []
    for ranks in step.ranks[:MOST_NAMES]:
        row = [text(ranks.name), RANKS[ranks.kind], text(ranks.role), str(ranks.workers)]
        row.append(unit.show(ranks.longest if ranks.typical is None else ranks.typical))
        if compared:
            several = ranks.workers > 1
            row += [text(ranks.slowest) if several else NONE, unit.show(ranks.longest if several else 0)]
            row += [unit.show(ranks.behind), percent(ranks.behind / ranks.typical if ranks.typical else 0)]
        rows.append(row)
    headers = ["Name", "Kind", "Role", "Ranks", f"{'Median' if compared else 'Took'}, {unit.name}"]
    if compared:
        headers += ["Slowest", f"Took, {unit.name}", f"Behind, {unit.name}", "Behind, %"]
    caption = "Windows, stages and weight syncs" + (", and their slowest ranks" if compared else "")
    if len(rows) < len(step.ranks):
        caption += f". The first {len(rows)} of {len(step.ranks)}"
    return table(caption, headers, rows, words=(1, 2, 5))


def bubble_text(device: DevicePhases, step: StepPhases) -> str:
    """Name a device of a bubble."""
    host = f" on {text(device.lane.host, 40)}" if len({each.lane.host for each in step.devices}) > 1 else ""
    return text(device.lane.label, 60) + host


def _causes(step: StepPhases) -> str:
    times = {cause: sum(device.causes[cause] for device in step.devices) for cause in CAUSES}
    whole = step.span * len(step.devices)
    if not any(times.values()):
        return ""
    longest: dict[str, tuple[DevicePhases, int, int]] = {}
    for device, piece in step.bubbles():
        longest.setdefault(piece.cause, (device, piece.end - piece.start, piece.start - step.start))
    unit, single = Unit.of(times.values()), Unit.of(took for _, took, _ in longest.values())
    rows = []
    for cause in sorted(times, key=lambda cause: -times[cause]):
        if times[cause]:
            device, took, at = longest[cause]
            rows.append(
                [
                    CAUSE_NAMES[cause], unit.show(times[cause]), percent(times[cause] / whole), single.show(took),
                    bubble_text(device, step), seconds(at),
                ]
            )  # fmt: skip
    headers = ["Cause", f"All devices, {unit.name}", "Share", f"Longest, {single.name}", "Where", "From"]
    return table("Why devices stood still, in handovers and idle time", headers, rows, words=(4,))


def _devices(step: StepPhases, name: str) -> str:
    devices = step.devices
    shown = devices if len(devices) <= MOST_DEVICES else sorted(devices, key=lambda device: device.busy)[:MOST_DEVICES]
    unit = Unit.of([step.span])
    order = (*PARTS, "paused", "unrecorded")
    kinds = [kind for kind in order if any(device.kinds[kind] for device in devices)]
    stages = list(dict.fromkeys(stage for device in devices for stage in device.stages))[:12]
    rows = [
        [
            f"{text(device.lane.label, 40)}<code>{text(device.lane.key, 24)}</code>",
            text(device.lane.host, 40) or NONE,
            *(unit.show(device.kinds[kind]) for kind in kinds),
            *(unit.show(device.stages.get(stage)) for stage in stages),
            percent(device.busy / step.span if step.span else 0),
        ]
        for device in shown
    ]
    names = {
        "sync": "Weight sync", "sync_at_most": "Weight sync, at most", "other": "Other step",
        "unrecorded": "Not profiled",
    }  # fmt: skip
    headers = ["Device", "Host", *(names.get(kind, kind.capitalize()) for kind in kinds), *map(text, stages), "Busy"]
    less = f" The {len(shown)} least busy of {len(devices)}; --json has all." if len(shown) < len(devices) else ""
    caption = f"{name}: devices, times in {unit.name}. Busy time is a union; stages are parts of training.{less}"
    return (
        f"<details><summary>{counted(len(shown), 'device')} of step {step.step}, one by one</summary>"
        f"{table(caption, headers, rows, words=(1,))}</details>"
    )


def costs_table(steps: Sequence[StepPhases], *, attempts: bool) -> str:
    """Return what profiling cost."""
    unit = Unit.of([time for step in steps for time in (*step.costs.values(), step.cost)])
    rows = [
        [
            step_name(step, attempts=attempts),
            *(unit.show(step.costs[kind]) for kind in COSTS),
            unit.show(step.cost),
            percent(step.cost / step.span if step.span else 0),
            text(step.coster) or NONE,
        ]
        for step in steps
    ]
    headers = [
        "Step",
        *(f"{kind.capitalize()}s, {unit.name}" for kind in COSTS),
        f"Together, {unit.name}",
        "Share",
        "Process",
    ]
    return table(
        "What profiling cost, in the process that it took longest of. Together: waits count only while the device stood"
        " still; share of the step's length.",
        headers, rows, words=(7,),
    )  # fmt: skip


def versions_table(steps: Sequence[StepPhases], *, attempts: bool) -> str:
    """Return which weights generated and trained."""

    def shown(versions: list[int]) -> str:
        return ", ".join(map(str, versions[:8])) + (" …" if len(versions) > 8 else "") or NONE

    rows = [
        [
            step_name(step, attempts=attempts), shown(step.generated_with), shown(step.trained_at),
            NONE if step.staleness is None else str(step.staleness),
        ]
        for step in steps
    ]  # fmt: skip
    caption = "Weight versions. Staleness: the newest that was trained minus the oldest that generated."
    return table(caption, ["Step", "Generated with", "Trained at", "Staleness"], rows)
