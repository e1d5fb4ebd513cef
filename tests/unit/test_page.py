"""The report's page: whole HTML for any content, escaped, small, and to be read without colours, mouse or eyes."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from report_support import Page, Writer, write_run

from profwin.evidence.bars import NAMES, swatch
from profwin.evidence.finding import Code, Finding
from profwin.evidence.markup import NONE, Unit, percent, seconds, table, text
from profwin.evidence.page import page
from profwin.evidence.page_style import PALETTES, style_sheet
from profwin.evidence.phases import measure
from profwin.evidence.report import Report, RunReport, as_json
from profwin.evidence.report_text import report_text
from profwin.evidence.run import load

HOSTILE = (
    "</title><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "<!--", "]]>", "&lt;b&gt;", "\u202egnp.exe", "\x1b[2J\x07", "\ud800", "a" * 5000, "url(#p)", "-->",
)  # fmt: skip


def _report(*directories, findings=()):
    runs = [load(directory, prefix="" if len(directories) == 1 else directory.name) for directory in directories]
    return Report("runs", [RunReport(run, measure(run)) for run in runs], list(findings))


@pytest.fixture(params=["few", "many", "several", "empty", "long"])
def source(request, tmp_path):
    """Return the page of a run with few devices, with many, of several runs, without work, and of many steps."""
    if request.param == "several":
        return page(_report(write_run(tmp_path / "a", 2), write_run(tmp_path / "b", 4, pipelined=True)))
    if request.param == "long":
        return page(_report(write_run(tmp_path, 2, range(1, 60))))
    if request.param == "empty":
        Writer(tmp_path, "actor", 0).close(1.0)
        return page(_report(tmp_path))
    code = Code("made-up", "warning", "It is made up.", "Nothing.")
    return page(_report(write_run(tmp_path, 4 if request.param == "few" else 60), findings=[Finding(code, "why", "f")]))


def test_the_page_is_whole_and_needs_no_network(source):
    """Elements nest, ids are unique, every link and label leads somewhere, and nothing is loaded or run."""
    parsed = Page(source)
    assert len(parsed.ids) == len(set(parsed.ids))
    for _, attrs, _ in parsed.tags:
        assert not {"src", "srcset", "data", "action", "style"} & set(attrs)
        assert not [name for name in attrs if name.startswith("on")]
        for reference in (attrs.get("aria-labelledby") or "").split():
            assert reference in parsed.ids
    assert all(attrs["href"].startswith("#") and attrs["href"][1:] in parsed.ids for attrs in parsed.all("a"))
    assert not {"script", "link", "iframe", "image", "use", "foreignobject"} & {tag for tag, _, _ in parsed.tags}
    assert set(re.findall(r"https?:[^\"' <]*|@import|@font-face", source)) == set()
    for name in re.findall(r"url\(#([a-z-]+)\)", source):
        assert name in parsed.ids


def test_the_page_can_be_read_without_eyes(source):
    """Headings step down by one, pictures have a title, tables a caption and scoped headers, what scrolls focus."""
    parsed = Page(source)
    levels = [int(tag[1]) for tag, _, _ in parsed.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    for svg in re.findall(r"<svg.*?</svg>", source, re.DOTALL):
        assert "<title" in svg
        assert ('role="img"' in svg and "aria-labelledby" in svg) or 'aria-hidden="true"' in svg
    for whole in re.findall(r"<table>.*?</table>", source, re.DOTALL):
        assert "<caption>" in whole
        assert not re.search(r"<th(?![^>]* scope=)[ >]", whole)
    for _, attrs, _ in parsed.tags:
        if {"plot", "wide"} & set((attrs.get("class") or "").split()):
            assert (attrs["tabindex"], attrs["role"]) == ("0", "group")
            assert attrs["aria-label"]
    assert parsed.all("html")[0]["lang"] == "en"
    assert len(parsed.all("main")) == 1


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("ranks", [1, 50])
def test_names_from_files_are_escaped_everywhere(tmp_path, name, ranks):
    """Whatever a run, host, role, stage, device, file or finding is called, it is text, and moves nothing."""
    raw = name.encode("utf-8", "replace").decode()
    for rank in range(ranks):
        writer = Writer(tmp_path, raw, rank, host=raw, boot="b", run=raw)
        writer.name = f"rank{rank}"
        writer.body(1.0, 2.0, "window", raw, 1, [f"{raw}{rank}"], role=raw)
        writer.body(3.0, 9.0, "stage", raw, 1, [f"{raw}{rank}"], role=raw)
        writer.close(10.0)
    code = Code(name, "error", name, name)
    report = _report(tmp_path, findings=[Finding(code, name, name, name)])
    report.directory = name
    made = page(report)
    parsed = Page(made)
    assert not {"script", "img", "b"} & {tag for tag, _, _ in parsed.tags}
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", made)
    assert made.encode("utf-8", "strict" if name.isprintable() else "backslashreplace")
    told = report_text(report)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", told)
    assert max(map(len, told.splitlines())) < 1000


def _luminance(colour):
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", PALETTES)
def test_contrasts_reach_aa(mode):
    """Text has 4.5 to 1 on the ground and on both colours of its bar; what is drawn has 3 to 1."""
    colours = PALETTES[mode]
    for name in ("ink", "soft", "link", "error", "warning", "good"):
        assert _contrast(colours[name], colours["ground"]) >= 4.5, name
    for name in ("rollout", "training", "sync", "other"):
        assert _contrast(colours[name], colours["ground"]) >= 3, name
        for under in (name, f"{name}-2"):
            assert _contrast(colours["on-bar"], colours[under]) >= 4.5, under
    assert _contrast(colours["line"], colours["ground"]) >= 3


def test_both_palettes_have_the_same_names_and_are_used():
    """Dark is no half of light; the sheet switches by the reader's preference and names no colour that is not there."""
    assert PALETTES["light"].keys() == PALETTES["dark"].keys()
    sheet = style_sheet()
    assert "@media(prefers-color-scheme:dark)" in sheet
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", sheet)) <= PALETTES["light"].keys()


def test_every_look_differs_without_its_colour():
    """No two samples of the legend differ by the fill's colour alone: patterns, lines and outlines do."""
    styles = dict(re.findall(r"^\.([a-z_]+)\{([^}]*)\}$", style_sheet(), re.MULTILINE))
    seen = set()
    for name in NAMES:
        shape = re.sub(r"<title>.*?</title>", "", swatch(name)).replace(f'class="{name}"', "")
        without_colour = re.sub(r"var\(--[a-z0-9-]+\)", "colour", styles[name])
        seen.add((shape, without_colour))
    assert len(seen) == len(NAMES)


def test_512_ranks_and_10_steps_stay_under_3_megabytes(tmp_path):
    """The page of a large run can be sent and opened; every device is in its pictures."""
    made = page(_report(write_run(tmp_path, 512, range(1, 11))))
    assert len(made.encode()) < 3_000_000
    assert made.count("512 devices") >= 10
    Page(made)


def test_a_step_of_very_many_pieces_stays_small(tmp_path):
    """Thousands of short stages on one device are drawn together, not one by one."""
    writer = Writer(tmp_path, "actor", 0)
    for index in range(4000):
        writer.body(1.0 + index, 1.5 + index, "stage", f"s{index}", 1, ["a"], profiler=False)
    writer.close(5000.0)
    made = page(_report(tmp_path))
    assert len(made) < 400_000
    Page(made)


def test_text_and_figures():
    """Figures have about three digits, a unit, and a dash for nothing; a table's times have one unit."""
    assert text('<"&') == "&lt;&quot;&amp;"
    shown = [
        seconds(time).replace("\xa0", " ") for time in (0, 1, 1_500_000, 2 * 10**9, 75 * 10**9, 4 * 10**11, 10**14)
    ]
    assert shown == ["0", "0.0 ms", "1.5 ms", "2.00 s", "75.0 s", "400 s", "27.8 h"]
    assert [percent(share).replace("\xa0", " ") for share in (0.0, 0.001, 0.5, 1.0)] == [
        NONE,
        "&lt;1 %",
        "50 %",
        "100 %",
    ]
    unit = Unit.of([5_000_000, 2 * 10**9])
    assert (unit.name, unit.show(5_000_000), unit.show(1), unit.show(0)) == ("s", "0.01", "&lt;0.01", NONE)
    assert 'scope="row">a</th><td class="n">1</td>' in table("c", ["A", "B"], [["a", "1"]])


def test_the_json_is_stable(tmp_path):
    """Its keys are these: programs read them."""
    made = as_json(_report(write_run(tmp_path, 2, (2,))))
    assert list(made) == ["schema", "directory", "runs", "findings"]
    (run,) = made["runs"]
    assert list(run) == [
        "name", "directory", "attempts", "processes", "hosts", "clocks", "steps_left_out", "seconds", "steps",
    ]  # fmt: skip
    (step,) = run["steps"]
    assert list(step) == [
        "attempt", "step", "start", "seconds", "shares", "overlap", "generated_with", "trained_at", "staleness",
        "ranks", "profiling", "bubbles", "devices",
    ]  # fmt: skip
    assert list(step["devices"][0]) == ["device", "host", "workers", "seconds", "causes", "stages"]
    assert sum(step["devices"][0]["seconds"].values()) == pytest.approx(step["seconds"])
