"""A run as its journals tell it: what is read, and what is said of journals that are damaged, foreign or newer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from journal_builder import SECOND, WALL, JournalBuilder, make_run, write_trace

from profwin.evidence import lines, records
from profwin.evidence.run import Run, find_runs, load
from profwin.journal import FIELDS


def names(run: Run) -> list[str]:
    """Return the codes of what is wrong with the journals."""
    return [finding.code.name for finding in run.findings]


def whole(directory: Path) -> JournalBuilder:
    """Return a journal with a window and a stage, saved."""
    journal = JournalBuilder(directory)
    journal.window(2, 1, 2)
    journal.stage(2, 3, 4)
    journal.end(9).save()
    return journal


def test_a_whole_run_is_read_without_a_finding(tmp_path: Path) -> None:
    """Processes, collections and intervals of every rank and step are there, tied to each other."""
    make_run(tmp_path, ranks=3, steps=2, traces=True)
    run = load(str(tmp_path))
    assert not run.findings
    assert (run.name, run.attempts) == ("a-run", [0])
    assert [process.rank for process in run.processes] == [0, 1, 2]
    assert len(run.collections) == len(run.intervals) == 18
    assert all(each.collection is not None and each.collection.intervals == [each] for each in run.intervals)
    assert {export.found for each in run.collections for export in each.exports} == {10}


def test_times_are_wall_times_by_the_anchor_and_go_back(tmp_path: Path) -> None:
    """A time is the anchor's wall time plus what the monotonic clock went on, to the nanosecond."""
    journal = JournalBuilder(tmp_path, clock=7 * SECOND)
    journal.write("enter", 1.000000001, id=1, what="stage", name="a", step=2, occurrence=1)
    journal.save()
    interval = load(str(tmp_path)).intervals[0]
    assert interval.enter == WALL + SECOND + 1
    assert interval.process.monotonic(interval.enter) == 8 * SECOND + 1


def test_every_kind_of_record_is_known() -> None:
    """The typed records have the kinds and the fields of the journal's schema, no more and no fewer."""
    kinds = {kind.__name__.lower(): kind for kind in records.Record.__subclasses__()}
    assert kinds.keys() == FIELDS.keys()
    for kind, fields in FIELDS.items():
        assert set(kinds[kind].__struct_fields__) == {"t", *fields}, kind


def test_a_skip_an_ask_and_a_wait_belong_to_their_interval(tmp_path: Path) -> None:
    """Those are written before the entry of their interval, and are tied to it all the same."""
    journal = JournalBuilder(tmp_path)
    journal.write("ask", 1, id=1, device="gpu-0", holder="somebody", answer="sent")
    journal.skipped("stage", "update", 2, 3, 4, "busy", device="gpu-0", holder="somebody", waited=2.0)
    journal.save()
    run = load(str(tmp_path))
    (interval,) = run.intervals
    assert interval.skip is run.skips[0]
    assert run.asks[0].interval is run.skips[0].interval is run.waits[0].interval is interval
    assert (run.waits[0].start, run.waits[0].end) == (WALL + SECOND, WALL + 3 * SECOND)


def test_a_paused_interval_has_both_its_collections(tmp_path: Path) -> None:
    """What joins a further collection after a pause names both, in order."""
    journal = JournalBuilder(tmp_path)
    interval, _ = journal.window(2, 1, 9, reason="paused", closed=2, status=None)
    journal.write("paused", 2).write("resumed", 3)
    journal.write("open", 4, collection=7, purpose="rollout", name="rollout", step=2, segment=2)
    journal.write("join", 4, id=interval, collection=7)
    journal.save()
    run = load(str(tmp_path))
    assert [each.identifier for each in run.intervals[0].collections] == [2, 7]
    assert run.collections[1].intervals == run.intervals
    assert run.pauses[0].end == WALL + 3 * SECOND


def test_marks_are_confirmed_by_their_devices(tmp_path: Path) -> None:
    """A confirmation ends the mark of the same devices, not that of others."""
    journal = JournalBuilder(tmp_path)
    journal.write("mark", 1, devices=["a"], processes=[5]).write("mark", 1, devices=["b"], processes=[6])
    journal.write("confirmed", 2, devices=["b"], processes=[6]).save()
    assert [mark.confirmed for mark in load(str(tmp_path)).marks] == [None, WALL + 2 * SECOND]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"kind": "enter", "t": 5, "id"\n', "torn-journal"),
        (b"\x00\xff\n", "torn-journal"),
        (b"[" * 5000 + b"\n", "torn-journal"),
        (b'"' + b"a" * (lines.LONGEST_LINE + 10) + b'"\n', "torn-journal"),
        (b"5\n", "foreign-record"),
        (b'{"name": "a trace"}\n', "foreign-record"),
        (b'{"kind": "enter", "t": "soon", "id": 5}\n', "foreign-record"),
        (b'{"kind": "enter", "t": 99999999999999999999999, "id": 5, "what": "", "name": ""}\n', "foreign-record"),
        (b'{"kind": "close", "t": 5, "collection": 5, "reason": "", "seconds": 1e300}\n', "foreign-record"),
        (b'{"kind": "music", "t": 5}\n', "newer-journal"),
        (b'{"kind": "paused", "t": 5, "why": "lunch"}\n', "newer-journal"),
        (b'{"kind": "exit", "t": 5, "id": 99, "status": "ok"}\n', "contradicting-journal"),
        (b'{"kind": "close", "t": 5, "collection": 99, "reason": "end"}\n', "contradicting-journal"),
        (b'{"kind": "resumed", "t": 5}\n', "contradicting-journal"),
        (b'{"kind": "paused", "t"', "cut-journal"),
    ],
)
def test_a_damaged_line_has_a_code_and_a_place_and_the_rest_is_kept(tmp_path: Path, line: bytes, code: str) -> None:
    """Every kind of damage is named with its line, and the records around it are read."""
    journal = JournalBuilder(tmp_path)
    journal.window(2, 1, 2)
    journal.raw(line)
    if line.endswith(b"\n"):
        journal.stage(2, 3, 4)
    journal.save()
    run = load(str(tmp_path), prefix="some/run")
    (finding,) = run.findings
    assert (finding.code.name, finding.file, finding.place) == (code, "some/run/" + journal.name, "line 6")
    assert len(run.intervals) == 1 + line.endswith(b"\n")


def test_fields_that_are_null_count_as_left_out(tmp_path: Path) -> None:
    """A null is no damage: the first record of a process without rank has some."""
    journal = whole(tmp_path)
    lines = [json.loads(line) for line in journal.lines]
    for record in lines:
        record |= {field: None for field in FIELDS[record["kind"]] if field not in record}
    Path(journal.path).write_text("".join(json.dumps(record) + "\n" for record in lines), encoding="utf-8")
    run = load(str(tmp_path))
    assert not run.findings
    assert len(run.intervals) == 2


def test_a_newer_schema_is_a_remark(tmp_path: Path) -> None:
    """A schema that is not known yet is read as far as it goes, and said."""
    JournalBuilder(tmp_path, fields={"schema": 2}).save()
    assert names(load(str(tmp_path))) == ["newer-journal"]


def test_many_damaged_lines_are_counted(tmp_path: Path) -> None:
    """A journal with a thousand bad lines gives few findings, the last with their number."""
    JournalBuilder(tmp_path).raw(b"bad\n" * 1000).save()
    run = load(str(tmp_path))
    assert names(run) == ["torn-journal"] * 4
    assert run.findings[-1].detail == "997 more lines"


def test_what_is_no_journal_is_said_and_never_waited_for(tmp_path: Path) -> None:
    """An empty file, a headless one, a FIFO, a folder and a dead link each give a finding; nothing blocks."""
    journal = whole(tmp_path)
    folder = Path(journal.path).parent
    (folder / "a.jsonl").write_bytes(b"")
    (folder / "b.jsonl").write_bytes(journal.lines[1])
    os.mkfifo(folder / "c.jsonl")
    (folder / "d.jsonl").mkdir()
    (folder / "e.jsonl").symlink_to("nowhere")
    (folder / "notes.txt").write_text("not a journal", encoding="utf-8")
    run = load(str(tmp_path))
    assert names(run) == ["empty-journal"] + ["unreadable-journal"] * 4
    assert len(run.intervals) == 2


def test_too_many_records_end_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond the bound is left out, which is said once."""
    make_run(tmp_path, ranks=3)
    monkeypatch.setattr("profwin.evidence.journals.MOST_RECORDS", 20)
    run = load(str(tmp_path))
    assert names(run) == ["large-journal"]
    assert len(run.intervals) < 18


def test_a_run_without_journals_is_said(tmp_path: Path) -> None:
    """A manifest alone is a run whose journals are gone; each that it names is said too."""
    manifest = {"schema": 1, "run": "gone", "attempts": [0], "processes": [{"journal": "a.jsonl"}], "settings": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert find_runs(str(tmp_path)) == [str(tmp_path)]
    run = load(str(tmp_path))
    assert names(run) == ["no-journals", "journal-missing"]
    assert (run.name, run.findings[1].file) == ("gone", "journal/a.jsonl")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1, "run": 5}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_manifest_is_said_and_the_journals_are_read(tmp_path: Path, content: bytes) -> None:
    """No manifest stops the journals from being read."""
    whole(tmp_path)
    (tmp_path / "manifest.json").write_bytes(content)
    run = load(str(tmp_path))
    assert names(run) == ["bad-manifest"]
    assert len(run.intervals) == 2


def test_journals_of_two_runs_in_one_directory_are_said(tmp_path: Path) -> None:
    """Two launches that write into one directory are told apart by their names."""
    JournalBuilder(tmp_path, rank=0).save()
    JournalBuilder(tmp_path, rank=1, run="another").save()
    assert names(load(str(tmp_path))) == ["mixed-runs"]


def test_runs_are_found_below_a_directory_without_following_links(tmp_path: Path) -> None:
    """Several runs below one directory are found in order; a loop of links ends nothing."""
    for name in ("b", "a/deep"):
        JournalBuilder(tmp_path / name).save()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "empty" / "journal").mkdir(parents=True)
    assert find_runs(str(tmp_path)) == [str(tmp_path / "a/deep"), str(tmp_path / "b")]
    assert find_runs(str(tmp_path / "b")) == [str(tmp_path / "b")]
    assert find_runs(str(tmp_path / "missing")) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [("step/a.json", 3), ("step/b.json", -1), ("../out.json", None), ("/etc/hostname", None), ("a\0b", -1)],
)
def test_traces_are_looked_for_inside_the_run_alone(tmp_path: Path, path: str, found: int | None) -> None:
    """A path that leads out of the run's directory is not looked at."""
    journal = JournalBuilder(tmp_path / "run")
    journal.stage(2, 1, 2, trace=(path, 3))
    journal.save()
    write_trace(tmp_path / "run", "step/a.json", 3)
    write_trace(tmp_path, "out.json", 3)
    run = load(str(tmp_path / "run"))
    assert run.collections[0].exports[0].found == found
    assert load(str(tmp_path / "run"), look=False).collections[0].exports[0].found is None
