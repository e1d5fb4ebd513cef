"""What `profwin check` prints: made-up findings, in order, escaped, counted; and its exit status."""

from __future__ import annotations

import json
import sys

import pytest

from profwin.cli.printing import show
from profwin.evidence.escaping import jsonable, printable
from profwin.evidence.finding import Code, Finding
from profwin.evidence.listing import MOST_FINDINGS, result_text, span_text
from profwin.evidence.model import Clock, Name, Recording
from profwin.evidence.result import Result, in_order, summarise

ERROR = Code("broken-file", "error", "The file is broken.", "Copy it again.")
WARNING = Code("odd-file", "warning", "The file is odd.", "Look at it.")
REMARK = Code("small-file", "remark", "The file is small.", "Nothing.")


def _result(*findings: Finding) -> Result:
    return Result("out", in_order(findings), seconds=0.25)


def test_the_gravest_come_first_and_places_in_their_order():
    """Findings are sorted by severity, code, file and place, where 9 comes before 10; none is there twice."""
    findings = [
        Finding(REMARK, "r"),
        Finding(ERROR, "e", "b.json", "byte 10"),
        Finding(WARNING, "w", "a.json"),
        Finding(ERROR, "e", "b.json", "byte 9"),
        Finding(ERROR, "e", "a.json"),
        Finding(ERROR, "e", "a.json"),
    ]
    ordered = [(each.code.name, each.file, each.place) for each in in_order(findings)]
    assert ordered == [
        ("broken-file", "a.json", ""),
        ("broken-file", "b.json", "byte 9"),
        ("broken-file", "b.json", "byte 10"),
        ("odd-file", "a.json", ""),
        ("small-file", "", ""),
    ]


def test_the_directory_itself_has_no_name():
    """A finding about a whole run names its directory, and one about all that was checked names nothing."""
    files = [each.file for each in in_order(Finding(ERROR, "e", file) for file in ("a/b/.", ".", "a/b"))]
    assert files == ["", "a/b"]


@pytest.mark.parametrize(
    ("worst", "threshold", "clean"),
    [
        (None, "remark", True),
        (REMARK, "remark", False),
        (REMARK, "warning", True),
        (WARNING, "warning", False),
        (WARNING, "error", True),
        (ERROR, "error", False),
    ],
)
def test_the_threshold_decides(worst, threshold, clean):
    """Clean is what has no finding at or above the threshold, and the listing and the JSON say the same."""
    result = _result(*([] if worst is None else [Finding(worst, "x")]))
    assert result.clean(threshold) is clean
    assert result.as_json(threshold)["clean"] is clean
    assert result_text(result, threshold).splitlines()[-1].startswith("clean: " if clean else "not clean: ")


def test_a_remedy_is_said_once_for_all_findings_of_a_code():
    """Findings are grouped by code; what is beyond the first ones is counted, and whole in the JSON."""
    result = _result(*[Finding(ERROR, f"detail {number}", f"{number:03}.json") for number in range(25)])
    text = result_text(result, "warning")
    assert text.count(ERROR.remedy) == 1
    assert text.count("detail") == MOST_FINDINGS["error"] == 10
    assert "broken-file (25 times)" in text
    assert "and 15 more" in text
    assert len(result.as_json()["findings"]) == 25


HOSTILE = ["a\x1b[2Jb", "a\nb", "a\rb", "a\u202eb", "a\udcffb", "a\x07b", "a\x9bb", "a\u2028b"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_do_nothing_to_the_terminal(name):
    """No name or detail from a file moves the cursor, breaks a line, reverses text or fails to be printed."""
    result = _result(Finding(ERROR, name, name, name))
    result.directory = name
    result.recordings = [Recording("kineto", name, Clock("wall"), name=Name(step=1, stage=name, purpose="rollout"))]
    result.rows = summarise([], result.recordings)
    plain = _result(Finding(ERROR, "a?b", "a?b", "a?b"))
    plain.directory, plain.rows = "a?b", result.rows
    text = result_text(result, "warning")
    assert len(text.splitlines()) == len(result_text(plain, "warning").splitlines())
    assert all(line.isprintable() for line in text.split("\n"))
    text.encode()
    encoded = json.dumps(jsonable(result.as_json()), allow_nan=False)
    assert json.loads(encoded)["findings"][0]["file"].encode()


def test_long_names_are_cut_in_the_middle():
    """A text that would fill the screen keeps its beginning and its end."""
    assert printable("x" * 50) == "x" * 50
    cut = printable("a" + "x" * 100_000 + "b")
    assert cut[0] + cut[-1] == "ab"
    assert len(cut) < 500


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: (2, b"x")}, {"a": [object]}], ids=repr)
def test_any_value_becomes_json(value):
    """Whatever a reader put into a finding, the JSON is one that every parser takes."""
    json.loads(json.dumps(jsonable(value), allow_nan=False))


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 3], "0-3"), ([9, 0, 1, 5], "0-1,5,9")], ids=str
)
def test_ranks_are_drawn_together(numbers, text):
    """512 ranks are a few characters."""
    assert span_text(numbers) == text


def test_the_json_has_a_stable_schema():
    """The keys that scripts rely on, of the whole and of its parts."""
    result = _result(Finding(ERROR, "d", "f", "byte 1", {"step": 2}))
    result.recordings = [Recording("nsys", "r.sqlite", Clock("wall"), window=(1, 2))]
    result.rows = summarise([], result.recordings)
    value = result.as_json("error")
    assert set(value) == {
        "schema", "directory", "clean", "fail_on", "counts", "findings", "summary", "recordings", "runs", "seconds"
    }  # fmt: skip
    assert value["counts"] == {"error": 1, "warning": 0, "remark": 0}
    assert value["findings"] == [
        {
            "code": "broken-file", "severity": "error", "file": "f", "place": "byte 1", "detail": "d",
            "remedy": "Copy it again.", "data": {"step": 2},
        }
    ]  # fmt: skip
    assert value["recordings"][0]["window"] == [1, 2]
    assert value["summary"] == [
        {"step": None, "purpose": "", "name": "", "ranks": [], "recorded": 1, "unrecorded": 0}
    ]  # fmt: skip


def test_recordings_are_counted_by_step_and_stage():
    """Ranks and recordings add up; what says no step comes last."""
    names = [
        Name(),
        *[Name(step=2, purpose="training", stage="update", rank=rank) for rank in (1, 0)],
        Name(step=1, purpose="rollout", stage="rollout", rank=0),
    ]
    rows = summarise([], [Recording("kineto", "x", Clock("wall"), name=name) for name in names])
    assert [(row.step, row.name, sorted(row.ranks), row.recorded) for row in rows] == [
        (1, "rollout", [0], 1),
        (2, "update", [0, 1], 2),
        (None, "", [], 1),
    ]


def test_a_terminal_without_unicode(monkeypatch, capsys):
    """What the terminal's encoding lacks is shown as its escape, not as a traceback."""

    class Plain:
        encoding = "ascii"
        written = ""

        def write(self, text: str) -> None:
            text.encode("ascii")
            self.written += text

        def flush(self) -> None:
            pass

    plain = Plain()
    monkeypatch.setattr(sys, "stdout", plain)
    show("a…é")
    assert plain.written == "a\\u2026\\xe9\n"
