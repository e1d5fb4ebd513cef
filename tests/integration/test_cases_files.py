"""Reported failures that are about files: what `profwin check` says of each, and that a near twin is clean.

The numbers are those under which the failures were collected, as in other tests.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit"))
import ascend_support as ascend
import nsys_support as nsys
from check_support import ROOT, codes, report
from kineto_support import kernel, launch, operator, pairs, trace

from profwin.evidence.codes import CODES

GOOD = trace([*pairs(*range(100)), operator()])
HALF, PACKED = GOOD[: len(GOOD) // 2], gzip.compress(GOOD.encode())


def answer(directory: Path, **contents: str | bytes) -> set[str]:
    """Write files, whose names have ``__`` for a dot, and return the codes that a check of them gives."""
    for name, content in contents.items():
        data = content if isinstance(content, bytes) else content.encode()
        (directory / name.replace("__", ".")).write_bytes(data)
    return codes(directory)


@pytest.mark.parametrize(
    ("bad", "code", "near"),
    [
        (r'"C:\Users\x"', "invalid-escape", r'"C:\\Users\\x"'),
        ('"a\x01b"', "control-character", r'"a\u0001b"'),
        ('"m","args":{"bandwidth":inf}', "not-a-number", '"m","args":{"bandwidth":"inf"}'),
        ('"m","args":{"bandwidth":NaN}', "not-a-number", '"m","args":{"bandwidth":null}'),
    ],
)
def test_case_42_invalid_json(tmp_path, bad, code, near):
    """Case 42: what viewers refuse is an error with its file and byte; the same thing written properly is clean."""
    text = GOOD.replace('"aten::add"', bad)
    (tmp_path / "a.json").write_text(text)
    (finding,) = report(tmp_path)["findings"]
    assert (finding["code"], finding["severity"], finding["file"]) == (code, "error", "a.json")
    place = int(finding["place"].removeprefix("byte "))
    assert text[:place].rindex("{") > text.index("kernel_99")
    assert answer(tmp_path, a__json=GOOD.replace('"aten::add"', near)) == set()


def test_case_42_the_timeline_is_valid_json(tmp_path):
    """Case 42: what is drawn of such a file is JSON that every reader takes."""
    from profwin.evidence.timeline import draw_timeline

    bad = GOOD.replace('"aten::add"', '"a\x01b","args":{"bandwidth":NaN,"other":inf}')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(bad)
    draw_timeline(str(tmp_path / "in"), str(tmp_path / "out.json"), kind="json")
    text = (tmp_path / "out.json").read_text()
    assert all(ord(character) >= 32 or character == "\n" for character in text)

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    assert json.loads(text, parse_constant=refuse)["traceEvents"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (HALF, "truncated"),
        (GOOD + GOOD[-50:], "trailing-garbage"),
        (HALF + GOOD, "interleaved"),
        (GOOD + GOOD, "interleaved"),
        ("", "empty-file"),
        ("{}", "nothing-found"),
        ("[]", "nothing-found"),
        (PACKED[:-8], "truncated"),
        (PACKED[:100], "truncated"),
        (PACKED + b"more", "trailing-garbage"),
    ],
    ids=["half", "tail", "half-whole", "twice", "empty", "object", "list", "no-trailer", "gzip-head", "gzip-more"],
)
def test_case_44_spoilt_files(tmp_path, content, code):
    """Case 44: truncated, interleaved, and followed by garbage are told apart, and none passes."""
    found = answer(tmp_path, a__json=content)
    assert code in found
    assert len(found & {"truncated", "trailing-garbage", "interleaved", "empty-file", "nothing-found"} - {code}) <= (
        code == "empty-file"
    )


def test_case_44_a_wrong_extension_is_no_damage(tmp_path):
    """Case 44: gzip under .json, plain text under .gz, and gzip in several members are read by their content."""
    members = gzip.compress(HALF.encode()) + gzip.compress(GOOD[len(HALF) :].encode())
    assert answer(tmp_path, a__json=PACKED, b__json__gz=GOOD, c__json__gz=members) == set()
    assert {each["events"] for each in report(tmp_path)["recordings"]} == {202}


LONE = '[{"ph":"X","name":"a","ts":1,"dur":1}]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (trace([operator()], deviceProperties=[]), {"host-only"}),
        (trace(pairs(1, 2)), set()),
        (trace(pairs(1, 2), distributedInfo={"backend": "nccl"}), set()),
        (json.dumps({"schemaVersion": 1, "traceEvents": []}), {"no-events"}),
        (LONE, {"no-clock", "host-only", "no-span"}),
        (json.dumps({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1}]}), {"no-events"}),
        (trace([operator(), {"ph": "?", "name": "x", "pid": 1, "tid": 1, "ts": 5}]), {"host-only"}),
    ],
    ids=["cpu-only", "no-distributed-info", "no-rank", "empty", "lone", "metadata-only", "unknown-phase"],
)
def test_case_50_unusual_traces(tmp_path, text, expected):
    """Case 50: traces without kernels, rank, steps or events get an ordinary answer, and none a traceback."""
    (tmp_path / "a.json").write_text(text)
    assert codes(tmp_path, mildest="remark") == expected
    (recording,) = report(tmp_path)["recordings"]
    assert recording["rank"] is None


_PEAK = """
import re, sys
from profwin.cli import main
status = main(["check", sys.argv[1], "--json"])
print(status, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""


MOST_MEMORY = 100
"""In MiB."""


def _peak(path: Path) -> tuple[set[str], int]:
    """Return the codes that a check gives, and the most memory that it took, in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    peak = int(done.stderr.split()[-1]) >> 10
    return {each["code"] for each in json.loads(done.stdout)["findings"]}, peak


@pytest.mark.slow
def test_case_51_memory_does_not_grow(tmp_path):
    """Case 51: memory is bounded: by that of a small trace for a large one and a bomb, and for one huge text too."""
    events = [json.dumps(event) for event in pairs(*range(10_000))]
    head, tail = trace([]).rsplit("]", 1)
    for name, times in (("small", 1), ("large", 20)):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "a.json.gz", "wt", compresslevel=1) as file:
            file.write(head)
            for _ in range(times):
                file.write("," + ",".join(events))
            file.write("]" + tail)
    (tmp_path / "bomb").mkdir()
    blanks = gzip.compress(b" " * (16 << 20))
    with open(tmp_path / "bomb" / "a.json.gz", "wb") as file:
        file.write(gzip.compress(head.encode()))
        for _ in range(80):
            file.write(blanks)
    (tmp_path / "text").mkdir()
    with open(tmp_path / "text" / "a.json", "w") as file:
        file.write(head + ',{"ph":"X","name":"')
        for _ in range(100):
            file.write("x" * (1 << 20))
        file.write('","pid":1,"tid":1,"ts":1,"dur":1}]' + tail)
    found, small = _peak(tmp_path / "small")
    assert found == set()
    for name, expected in (("large", set()), ("bomb", {"inflates-too-far"}), ("text", {"too-large"})):
        found, peak = _peak(tmp_path / name)
        assert expected <= found
        assert peak < MOST_MEMORY, name
        assert peak < 1.2 * small + 10 or name == "text", name  # of one text some of it is read before it is too large


def _without(*tables: str) -> dict[str, Any]:
    return {table: rows for table, rows in nsys.whole().items() if table not in tables}


def test_case_52_exports_that_lack_tables(tmp_path):
    """Case 52: no kernel table is "not captured", newer names of tables are found, and no NVTX is no crash."""
    nsys.write(tmp_path / "a.sqlite", _without("NVTX_EVENTS"))
    assert codes(tmp_path) == set()
    renamed = {
        f"{table}_V2" if table.startswith(("NVTX", "CUPTI")) else table: rows for table, rows in _without().items()
    }
    nsys.write(tmp_path / "a.sqlite", renamed)
    assert codes(tmp_path) == set()
    (recording,) = report(tmp_path)["recordings"]
    assert recording["device_slices"] == 3
    nsys.write(tmp_path / "a.sqlite", _without("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"))
    assert codes(tmp_path) == {"nsys-no-device-tables"}
    assert "no kernel was captured" in CODES["nsys-no-device-tables"].meaning


def test_case_52_what_is_no_export(tmp_path):
    """Case 52: zero bytes, a text, half a database and one of something else are each named for what they are."""
    whole = nsys.write(tmp_path / "whole.sqlite", nsys.whole()).read_bytes()
    (tmp_path / "whole.sqlite").unlink()
    nsys.write(tmp_path / "other.sqlite", {"StringIds": []})
    for name, content in {"zero": b"", "text": b"some text", "half": whole[: len(whole) // 2]}.items():
        (tmp_path / f"{name}.sqlite").write_bytes(content)
    found = {each["file"]: each["code"] for each in report(tmp_path)["findings"] if each["file"]}
    assert found == {
        "zero.sqlite": "empty-file", "text.sqlite": "unknown-file", "half.sqlite": "nsys-half",
        "other.sqlite": "other-database",
    }  # fmt: skip


SLICES = ("PROF_000001_2026_A/device_4/data/a.slice_0", "PROF_000001_2026_A/device_4/data/a.slice_0.done")
STEPS = tuple(range(10))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"results": None, "raw": SLICES}, {"ascend-not-analysed"}),
        ({"results": {}}, {"ascend-analysis-failed"}),
        ({"results": {"trace_view.json": json.dumps(ascend.timeline(tasks=0))}}, {"no-device-events"}),
        ({"results": {"kernel_details.csv": ascend.kernels({1: 2, 2: 2})[:-4]}}, {"ascend-file-cut"}),
        ({"results": {"kernel_details.csv": "\ufeff" + ascend.kernels({1: 2, 2: 2})}}, set()),
        ({"told": "{broken"}, {"ascend-info-damaged"}),
        ({}, set()),
    ],
    ids=["raw", "failed", "no-device-data", "cut", "byte-order-mark", "settings", "whole"],
)
def test_case_54_ascend_folders(tmp_path, parts, expected):
    """Case 54: not analysed, failed, without device data, and damaged are told apart; a whole folder is clean."""
    results = parts.get("results", {})
    if results or "results" not in parts:
        results = ascend.text_files() | results
        if "trace_view.json" in parts.get("results", {}):
            results["kernel_details.csv"] = ascend.kernels({})
    ascend.make(tmp_path, parts.get("told", ascend.info()), results, parts.get("raw", ()))
    assert codes(tmp_path) == expected


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ({step: int(step > 1) for step in STEPS}, "ascend-head-lost"),
        ({step: int(step != 5) for step in STEPS}, "ascend-steps-lost"),
        (dict.fromkeys(STEPS, 1), None),
    ],
)
def test_case_54_fewer_tasks_than_steps(tmp_path, rows, code):
    """Case 54: steps whose device tasks are lost are told by where they lie; with a task in each it is clean."""
    told = ascend.info(
        end_info={"collectionTimeEnd": ascend.START + 20 * 10**9, "MonotonicTimeEnd": ascend.TICK + 20 * 10**9}
    )
    ascend.make(tmp_path, told, ascend.text_files(STEPS) | {"kernel_details.csv": ascend.kernels(rows)})
    assert codes(tmp_path) == ({code} if code else set())


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ({"a__nsys-rep": "", "b__sqlite": ""}, {"empty-file", "nothing-found"}),
        ({"a__qdstrm": b"QDSTRM" + bytes(100)}, {"nsys-unfinished", "nothing-found"}),
        ({"a__json__gz__tmp": PACKED}, {"leftover-temporary"}),
    ],
    ids=["zero", "stream", "temporary"],
)
def test_case_8_unfinished_reports(tmp_path, contents, expected):
    """Case 8: a report of no bytes, a stream that never became a report, and a temporary file are errors."""
    assert expected <= answer(tmp_path, **contents)


def test_case_8_a_range_that_never_ended(tmp_path):
    """Case 8: a tool that was told to finish after more ranges than came leaves one open, which is said."""
    rows = nsys.whole()
    nsys.write(tmp_path / "a.sqlite", rows)
    assert codes(tmp_path) == set()
    rows["NVTX_EVENTS"] = [(nsys.SECOND, None, 59, None, 5, nsys.PROCESS | 78)]
    nsys.write(tmp_path / "a.sqlite", rows)
    assert codes(tmp_path) == {"nsys-range-open"}


def test_case_5_a_trace_without_device_data(tmp_path):
    """Case 5: a trace that another profiler kept from the device is an error; with its kernels it is clean."""
    calls = [launch(number) for number in range(5)]
    found = answer(tmp_path, a__json=trace(calls))
    assert found & {"no-device-events", "launches-without-kernels"}
    assert answer(tmp_path, a__json=trace([*calls, *map(kernel, range(5))])) == set()
