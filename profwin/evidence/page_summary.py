"""The first screen of the report's page: is the data whole, where did the time go, what is slowest."""

from __future__ import annotations

from itertools import groupby

from profwin.evidence.bars import NAMES, bar, look_shares, swatch
from profwin.evidence.bubbles import KINDS
from profwin.evidence.markup import Unit, counted, percent, seconds, table, text
from profwin.evidence.page_steps import CAUSE_NAMES, bubble_text, step_name
from profwin.evidence.phases import totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.finding import Finding
    from profwin.evidence.phases import StepPhases
    from profwin.evidence.report import Report, RunReport

__all__ = ["answers", "index", "verdict"]

SHORT = {
    "rollout": "rollout", "training": "training", "sync": "weight sync", "sync_at_most": "weight sync at most",
    "other": "another step", "handover": "handover", "paused": "paused", "unrecorded": "not profiled", "idle": "idle",
}  # fmt: skip


def index(report: Report) -> str:
    """Return the table of several runs."""
    unit = Unit.of(step.span for run in report.runs for step in run.steps)
    rows = []
    for number, run in enumerate(report.runs):
        looks = look_shares(run.steps)
        label = f"{text(run.title)}: " + ", ".join(f"{NAMES[name]} {percent(share)}" for name, share in looks)
        times, lengths = totals(run.steps), sum(step.span for step in run.steps)
        whole = sum(times.values()) or 1
        look, said = verdict([finding for finding in report.findings if _belongs(finding, run, report)])
        rows.append(
            [
                f'<a href="#r{number}">{text(run.title)}</a>',
                f'<span class="{look} nobreak">{said.partition(" and ")[0].partition(",")[0]}</span>',
                str(len(run.steps)),
                unit.show(max((step.span for step in run.steps), default=0)),
                bar(looks, label, f"r{number}-index", 140),
                *(percent(times[kind] / whole) for kind in ("rollout", "training", "idle")),
                percent(sum(step.overlap for step in run.steps) / lengths if lengths else 0),
            ]
        )
    headers = ["Run", "Is the data whole?", "Steps", f"Longest, {unit.name}", "Devices' time"]
    headers += ["Rollout", "Training", "Idle", "Overlap"]
    caption = "Runs, and where the time of their devices went. Overlap is of the steps' length."
    return table(caption, headers, rows, words=(1, 4))


def verdict(findings: list[Finding]) -> tuple[str, str]:
    """Return a class and words that say whether the data is whole."""
    counts = {
        severity: sum(finding.code.severity == severity for finding in findings)
        for severity in ("error", "warning", "remark")
    }
    said = " and ".join(
        counted(count, severity) for severity, count in counts.items() if count
    ).replace(" and ", ", ", 1 if all(counts.values()) else 0)  # fmt: skip
    if counts["error"]:
        return "error", f"No: {said}"
    if counts["warning"]:
        return "warning", f"Not quite: {said}"
    return "good", f"Yes, with {said}" if counts["remark"] else "Yes"


def answers(report: Report, run: RunReport, identifier: str, level: int) -> str:
    """Return the three answers for one run."""
    heading = f"h{level}"
    findings = [finding for finding in report.findings if _belongs(finding, run, report)]
    look, said = verdict(findings)
    groups = [(code, len(list(every))) for code, every in groupby(findings, key=lambda finding: finding.code.name)]
    items = "".join(
        f'<li><a href="#f-{text(code)}">{text(code)}</a>{f", {count} times" if count > 1 else ""}</li>'
        for code, count in groups[:4]
    )
    if len(groups) > 4:
        items += f'<li><a href="#findings">and {len(groups) - 4} more</a></li>'
    return (
        f'<div class="answers"><div><{heading} id="{identifier}-q1">Is the data'
        f' whole?</{heading}><p class="answer {look}">{said}</p>'
        f"{f'<ul>{items}</ul>' if items else '<p>Nothing is missing, damaged or mixed.</p>'}</div>"
        f"{_where(run, identifier, heading)}{_slowest(run, identifier, heading)}</div>\n"
    )


def _belongs(finding: Finding, run: RunReport, report: Report) -> bool:
    prefix = run.run.prefix
    return len(report.runs) == 1 or not prefix or (finding.file + "/").startswith(prefix + "/")


def _where(run: RunReport, identifier: str, heading: str) -> str:
    times = totals(run.steps)
    whole = sum(times.values())
    shares = {kind: time / whole for kind, time in times.items() if time} if whole else {}
    top = sorted(shares, key=lambda kind: -shares[kind])[:2]
    answer = ", ".join(f"{SHORT[kind]} {percent(shares[kind])}" for kind in top).capitalize() or "Nothing was profiled"
    order = [*(kind for kind in KINDS if kind not in ("handover", "idle")), "handover", "idle"]
    rows = "".join(
        f"<dt>{swatch(kind, 14)}{NAMES[kind].capitalize()}</dt><dd>{percent(shares[kind])}</dd>"
        f'<dd class="soft">{seconds(times[kind])}</dd>'
        for kind in order
        if kind in shares
    )
    looks = look_shares(run.steps)
    profiling = dict(looks).get("profiling", 0.0)
    if profiling > 0:
        rows += (
            f'<dt class="soft">{swatch("profiling", 14)}in these two: {NAMES["profiling"]}</dt>'
            f'<dd class="soft">{percent(profiling)}</dd><dd></dd>'
        )
    label = "The devices' time: " + ", ".join(f"{NAMES[name]} {percent(share)}" for name, share in looks)
    drawn = bar(looks, label, f"{identifier}-where")
    return (
        f'<div><{heading} id="{identifier}-q2">Where did the devices\' time go?'
        f'</{heading}><p class="answer">{answer}</p>{drawn if shares else ""}<dl>{rows}</dl></div>'
    )


def _slowest(run: RunReport, identifier: str, heading: str) -> str:
    attempts = len(run.run.attempts) > 1
    ranks = [(step, ranks) for step in run.steps for ranks in step.ranks]
    answer, items = "Nothing was profiled", []
    if ranks:
        step, slow = max(ranks, key=lambda pair: pair[1].behind)
        if slow.behind > 0:
            answer = f"{text(slow.name)} on {text(slow.slowest)}"
            items.append(
                f"{seconds(slow.behind)} behind the other ranks, in {step_name(step, attempts=attempts).lower()}"
            )
        else:
            step, slow = max(ranks, key=lambda pair: pair[1].longest)
            answer = f"{text(slow.name)}, {seconds(slow.longest)}"
            items.append(f"{text(slow.slowest)}, in {step_name(step, attempts=attempts).lower()}; no ranks to compare")
        longest = max(run.steps, key=lambda step: step.span)
        items.append(f"Longest step: {_name(longest, attempts=attempts)}, {seconds(longest.span)}")
        bubbles = [(step, *step.bubbles()[0]) for step in run.steps if step.bubbles()]
        if bubbles:
            at, device, piece = max(bubbles, key=lambda found: found[2].end - found[2].start)
            items.append(
                f"Longest bubble: {seconds(piece.end - piece.start)} on {bubble_text(device, at)}, in"
                f" {_name(at, attempts=attempts)}: {CAUSE_NAMES[piece.cause]}"
            )
        costly = max(run.steps, key=lambda step: step.cost / (step.span or 1))
        items.append(f"Profiling itself: up to {percent(costly.cost / (costly.span or 1))} of a step")
    listed = "".join(f"<li>{item}</li>" for item in items)
    return (
        f'<div><{heading} id="{identifier}-q3">What is slowest?</{heading}>'
        f'<p class="answer">{answer}</p><ul>{listed}</ul></div>'
    )


def _name(step: StepPhases, *, attempts: bool) -> str:
    return step_name(step, attempts=attempts).lower()
