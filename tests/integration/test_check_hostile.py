"""`profwin check` on what nobody meant to be checked: no traceback, no waiting, never clean where data is damaged."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest
from check_support import codes, copy, only_progress, report, run_check, small_run, traces

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(100)]

NAMES = [
    "trace.json", "trace.json.gz", "rank0.pt.trace.json.gz", "export.sqlite", "report.nsys-rep", "left.qdstrm",
    "trace.pftrace", "host.xplane.pb", "memory.pickle", "manifest.json", "journal/rank0_actor_p1-0000_a0.jsonl",
    "x_ascend_pt/profiler_info_0.json", "x_ascend_pt/profiler_metadata.json",
    "x_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", "x_ascend_pt/ASCEND_PROFILER_OUTPUT/step_trace_time.csv",
    "x_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db",
    "x_ascend_pt/PROF_000001_2026_A/device_0/data/a.slice_0",
]  # fmt: skip
EVENT = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"device":0,"stream":7}}'
CONTENTS = {
    "nothing": b"",
    "a zero": b"\0",
    "zeros": b"\0" * 5000,
    "noise": random.Random(1).randbytes(5000),
    "a letter": b"x",
    "an opening": b"{",
    "a list": b"[",
    "null": b"null\n",
    "deep": b'{"traceEvents":' + b"[" * 200_000,
    "deep objects": b'{"a":' * 50_000,
    "odd events": b'{"schemaVersion":1,"traceEvents":[1,null,[],"x",{},{"ph":7},{"ph":"X","ts":"x","dur":{}},'
    + EVENT
    + b"]}",
    "huge numbers": b'{"schemaVersion":1,"traceEvents":[{"ph":"X","name":"n","ts":1e400,'
    b'"dur":9999999999999999999999999,"pid":1e99,"tid":-0.0}],"baseTimeNanoseconds":1e30}',
    "not a number": b'{"schemaVersion":1,"traceEvents":[{"ph":"X","name":"n","ts":NaN,"dur":-Infinity}]}',
    "surrogates": b'{"schemaVersion":1,"traceEvents":[{"ph":"X","name":"\\ud800","ts":1,"dur":1,'
    b'"pid":"\\udfff","tid":1}]}',
    "records": b'{"kind":"process"}\n{"kind":"open","t":"x"}\n{"kind":7}\n[]\n{"kind":"close","t":1e500}\n',
    "half a gzip": gzip.compress(b'{"schemaVersion":1,"traceEvents":[' + EVENT + b"]}")[:60],
    "two gzips": gzip.compress(b'{"traceEvents":[' + EVENT) + gzip.compress(b"]}") + b"more",
    "half a database": b"SQLite format 3\0" + bytes(range(100)),
    "a csv": b"Step,Computing\t,\n1,nan,\xff\xfe\n\n,,,,,",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_any_content_under_any_name(content, tmp_path):
    """Every content under every name that means something: a listing, a status, and no file changed or added."""
    for name in NAMES:
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    before = _state(tmp_path)
    status, output, errors = run_check(tmp_path / "out")
    assert status == 1
    assert only_progress(errors)
    assert "not clean" in output
    assert "reader-failed" not in output
    assert "check-failed" not in output
    report(tmp_path / "out")
    for name in NAMES:
        alone = tmp_path / "alone"
        (alone / name).parent.mkdir(parents=True)
        (alone / name).write_bytes(content)
        assert "reader-failed" not in codes(alone), name
        shutil.rmtree(alone)
    assert _state(tmp_path) == before


def _state(directory: Path) -> list[tuple[str, int, int]]:
    found = [(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in directory.rglob("*")]
    return sorted(each for each in found if "/alone" not in each[0])


def test_what_is_no_file(tmp_path):
    """FIFOs, loops of links, links to nowhere and to devices, and folders named like traces: named, not read."""
    for name in ("trace.json.gz", "export.sqlite", "manifest.json"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "journal").mkdir()
    os.mkfifo(tmp_path / "journal" / "rank0_actor_p1-0000_a0.jsonl")
    (tmp_path / "folder.pt.trace.json.gz").mkdir()
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "self.json").symlink_to("self.json")
    (tmp_path / "gone.json.gz").symlink_to("no such file")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    (tmp_path / "up").symlink_to("..")
    status, output, errors = run_check(tmp_path)
    assert status == 1
    assert only_progress(errors)
    assert "trace.json.gz" in output
    assert "reader-failed" not in output
    assert "check-failed" not in output


def test_hostile_names(tmp_path):
    """Names that would clear the screen, forge a line or are not Unicode are shown escaped, and JSON stays JSON."""
    hostile = [
        b"\x1b[2J\x1b[H.json",
        b"a\nclean: no findings.json",
        b"\xff\xfe.json.gz",
        b"\xe2\x80\xaenosj.json",
        b"-x.json",
    ]
    for name in hostile:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(b"{")
    status, output, _ = run_check(tmp_path)
    assert status == 1
    assert all(line.isprintable() for line in output.split("\n"))
    assert not any(line.startswith("clean") for line in output.splitlines())
    report(tmp_path)


def test_a_tree_without_end(tmp_path):
    """A very deep tree ends the walk, with a finding or without, and not with a traceback."""
    inside = tmp_path
    for _ in range(300):
        inside = inside / "d"
    inside.mkdir(parents=True)
    assert run_check(tmp_path)[0] == 1


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A whole run."""
    pytest.importorskip("torch")
    return small_run(tmp_path_factory.mktemp("run"))


def test_the_run_itself_is_clean(run):
    """What the other tests damage is clean before."""
    assert codes(run) == set()


@pytest.mark.parametrize("seed", range(6))
def test_a_truncated_trace_is_never_clean(run, tmp_path, seed):
    """A trace of the run that ends anywhere before its end is found, as is one with a byte changed or added."""
    chance = random.Random(seed)
    path = chance.choice(traces(run)).relative_to(run)
    whole = (run / path).read_bytes()
    cut = chance.randrange(len(whole))
    damaged = {
        "cut": whole[:cut],
        "filled": whole[:cut] + b"\0" * (len(whole) - cut),
        "flipped": whole[:cut] + bytes([whole[cut] ^ 1 << chance.randrange(8)]) + whole[cut + 1 :],
        "added": whole + b"x",
        "other": random.Random(seed).randbytes(len(whole)),
    }
    for how, content in damaged.items():
        if content == whole or (how == "flipped" and cut < 10):
            continue  # the header of gzip has bytes that mean nothing to anybody
        target = copy(run, tmp_path / how)
        (target / path).write_bytes(content)
        found = codes(target, mildest="error")
        assert found, (how, cut)
        assert "reader-failed" not in found


@pytest.mark.parametrize("seed", range(6))
def test_a_truncated_journal_or_manifest_gives_no_traceback(run, tmp_path, seed):
    """Journals and manifests that end anywhere or hold noise in the middle are judged, and what is lost is named."""
    chance = random.Random(seed)
    for path in [*run.glob("journal/*.jsonl"), run / "manifest.json"]:
        whole = path.read_bytes()
        cut = chance.randrange(len(whole))
        noise = whole[:cut] + chance.randbytes(20) + whole[cut:]
        for how, content in {"cut": whole[:cut], "noise": noise}.items():
            target = copy(run, tmp_path / f"{how}_{path.name}")
            (target / path.relative_to(run)).write_bytes(content)
            found = codes(target, mildest="remark")
            assert "reader-failed" not in found
            assert found, (how, path.name, cut)


def test_a_missing_part_is_named(run, tmp_path):
    """A run whose trace, journal or manifest was deleted."""
    path = traces(run)[0].relative_to(run)
    target = copy(run, tmp_path / "trace")
    (target / path).unlink()
    found = report(target)["findings"]
    assert ("trace-missing", str(path)) in {(each["code"], each["file"]) for each in found}
    target = copy(run, tmp_path / "journal")
    for journal in target.glob("journal/*"):
        journal.unlink()
    assert codes(target) & {"no-journals", "journal-missing"}
    target = copy(run, tmp_path / "manifest")
    (target / "manifest.json").unlink()
    assert codes(target) == set()


def test_a_trace_of_another_stage_is_named(run, tmp_path):
    """Two traces that were swapped say themselves what they are of."""
    target = copy(run, tmp_path / "swapped")
    first, *_, last = traces(target)
    first.rename(target / "x")
    last.rename(first)
    (target / "x").rename(last)
    assert "trace-of-another" in codes(target)


def test_a_foreign_trace_beside_is_judged_alone(run, tmp_path):
    """A whole trace that no journal names is a remark; a damaged one is as wrong as anywhere."""
    target = copy(run, tmp_path / "foreign")
    with gzip.open(traces(run)[0]) as file:
        trace = json.load(file)
    del trace["profwin"]
    (target / "other.json").write_text(json.dumps(trace))
    assert codes(target) == set()
    assert "trace-not-in-journal" in codes(target, mildest="remark")
    (target / "other.json").write_text(json.dumps(trace)[:-300])
    assert codes(target) >= {"truncated"}
