"""The report's page: one HTML file that needs no network, no script and no font."""

from __future__ import annotations

import time
from itertools import groupby

from profwin.evidence.markup import counted, table, text
from profwin.evidence.page_steps import costs_table, detail, overview, versions_table
from profwin.evidence.page_style import patterns, style_sheet
from profwin.evidence.page_summary import answers, index, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.evidence.finding import Finding
    from profwin.evidence.report import Report, RunReport

__all__ = ["page"]

MOST_PICTURES = 40
"""So many steps have a section of their own: of a longer run the longest."""
MOST_LISTED = 200
"""So many steps stand in the tables."""
MOST_OF_A_CODE = 6
WORDS = (
    ("Busy", "windows, stages and weight syncs. Their union: what overlaps counts once."),
    ("Handover", "from the end of a window to the beginning of the next stage on the same device."),
    ("Weight sync", "the body of one, as the journals say; inside a window it counts for the sync."),
    (
        "Weight sync, at most",
        "where no journal says when one began: what nothing else explains before the record that names new weights.",
    ),
    ("Idle", "no window and no stage ran on the device, as far as the journals say."),
    ("Cause", "what the journals show at that moment; where several hold, the one that stands first in the JSON."),
    ("Another step", "the device worked for another profiled step at that time, as pipelined loops do."),
    ("Step not profiled", "what ran then is in no journal, so it is neither busy nor idle."),
    ("Overlap", "rollout on some devices while training ran on others. On one device it would be a finding."),
)


def page(report: Report) -> str:
    """Return the page. Whatever comes from files is escaped."""
    single = len(report.runs) == 1
    title = text(report.runs[0].title) if single else f"{len(report.runs)} runs in {text(report.directory)}"
    body = [_header(report, title, single=single), '<main id="main">\n']
    if single:
        body += [answers(report, report.runs[0], "r0", 2), _run(report.runs[0], "r0", 2)]
    else:
        body.append(index(report))
        for number, run in enumerate(report.runs):
            identifier = f"r{number}"
            body.append(f'<section aria-labelledby="{identifier}"><h2 id="{identifier}">{text(run.title)}</h2>')
            body += [f'<p class="meta">{_meta(run)}</p>', answers(report, run, identifier, 3)]
            body += [_run(run, identifier, 3), "</section>\n"]
    body += [_findings(report), _words(), "</main>\n", _footer(report)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title} \N{EN DASH} profwin report</title>\n<style>{style_sheet()}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the report</a>\n{patterns()}{"".join(body)}</body>\n</html>\n'
    )


def _header(report: Report, title: str, *, single: bool) -> str:
    if single:
        links = [("r0-steps", "Steps"), ("r0-costs", "Cost of profiling"), ("r0-versions", "Weights")]
        links = links if report.runs[0].steps else []
        under = _meta(report.runs[0])
    else:
        links = []
        under = f"Is the data whole? {verdict(report.findings)[1]}."
    links += [("findings", "Findings"), ("words", "How to read it")]
    items = "".join(f'<li><a href="#{target}">{label}</a></li>' for target, label in links)
    return (
        f'<header><h1>{title}</h1><p class="meta">{under}</p>'
        f'<nav aria-label="Contents"><ul>{items}</ul></nav></header>\n'
    )


def _meta(run: RunReport) -> str:
    devices = max((len(step.devices) for step in run.steps), default=0)
    said = [counted(len(run.steps), "profiled step"), counted(devices, "device"), counted(run.hosts, "host")]
    said.append(f"{len(run.run.processes)} process{'' if len(run.run.processes) == 1 else 'es'}")
    if len(run.run.attempts) > 1:
        said.append(counted(len(run.run.attempts), "attempt"))
    if run.steps:
        said.append("began " + _date(min(step.start for step in run.steps)))
    return " · ".join(said)


def _date(wall: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(wall // 10**9))
    except (ValueError, OverflowError, OSError):
        return "at an impossible time"


def _run(run: RunReport, identifier: str, level: int) -> str:
    if not run.steps:
        return "<p>Its journals have no window and no stage.</p>\n"
    attempts = len(run.run.attempts) > 1
    listed = run.steps[:MOST_LISTED]
    drawn = sorted(sorted(range(len(listed)), key=lambda index: -listed[index].span)[:MOST_PICTURES])
    parts = [
        f'<h{level} id="{identifier}-steps">Steps</h{level}>',
        overview(listed, identifier, drawn, attempts=attempts),
    ]
    notes = [f"{text(note[:1].upper() + note[1:], 1000)}." for note in run.alignment.notes]
    if len(listed) < len(run.steps):
        notes.append(f"These are the first {len(listed)} of {len(run.steps)} steps; --json has all.")
    if len(drawn) < len(listed):
        notes.append(f"The {len(drawn)} longest of them follow one by one.")
    if run.left_out:
        notes.append(f"{counted(run.left_out, 'more step')} would be too much to be measured.")
    parts += [f'<p class="soft note">{note}</p>' for note in notes]
    parts += [detail(listed[index], f"{identifier}-{index}", level + 1, attempts=attempts) for index in drawn]
    parts += [f'<h{level} id="{identifier}-costs">Cost of profiling</h{level}>', costs_table(listed, attempts=attempts)]
    parts += [f'<h{level} id="{identifier}-versions">Weights</h{level}>', versions_table(listed, attempts=attempts)]
    return "".join(parts)


def _findings(report: Report) -> str:
    parts = ['<h2 id="findings">Findings</h2>']
    if not report.findings:
        return "".join([*parts, "<p>None. <code>profwin check</code> found the data whole and unmixed.</p>\n"])
    rows = []
    for name, every in groupby(report.findings, key=lambda finding: finding.code.name):
        found = list(every)
        code = found[0].code
        severity = text(code.severity)
        rows.append(
            [
                f'<code id="f-{text(name)}">{text(name)}</code><br><span class="{severity}">{severity}</span>',
                f"{text(code.meaning, 400)}<br>{text(code.remedy, 400)}",
                _places(found),
            ]
        )
    headers = ["Code", "What is wrong, and what to do", "Where"]
    return "".join([*parts, table("Of <code>profwin check</code>, the gravest first", headers, rows, words=(1, 2))])


def _places(findings: list[Finding]) -> str:
    items = []
    before = ""
    for finding in findings[:MOST_OF_A_CODE]:
        where = ", ".join(filter(None, (text(finding.file, 200), text(finding.place, 60))))
        said = f"<br><code>{where}</code>" if where and where != before else ""
        items.append(f"<li>{text(finding.detail, 300)}{said}</li>")
        before = where
    if len(findings) > MOST_OF_A_CODE:
        items.append(f"<li>and {len(findings) - MOST_OF_A_CODE} more; <code>profwin check</code> has them</li>")
    return f"<ul>{''.join(items)}</ul>"


def _words() -> str:
    terms = "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in WORDS)
    return f'<h2 id="words">How to read it</h2>\n<dl class="words">{terms}</dl>\n'


def _footer(report: Report) -> str:
    import profwin

    return f"<footer>profwin {text(profwin.__version__)} report of {text(report.directory, 200)}</footer>\n"
