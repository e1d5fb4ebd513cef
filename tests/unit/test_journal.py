"""The journal: every record is whole, as the schema says, and never in the way of the training."""

from __future__ import annotations

import json
import threading

import pytest

import profwin
from profwin import rollout_window, span, training_stage
from profwin.journal import FIELDS, SCHEMA, Journal, read


def _journal(tmp_path, **header):
    return Journal(str(tmp_path / "deep" / "journal" / "one.jsonl"), header)


def test_the_first_record_anchors_the_clock(tmp_path):
    """The first record has the header's fields and both clocks; later ones only the monotonic one, in order."""
    journal = _journal(tmp_path, schema=SCHEMA, run="r")
    journal.write("exit", id=1, status="ok")
    journal.write("exit", id=2, status="error", error="ValueError")
    journal.close()
    first, second, third = read(journal.path)
    assert (first["kind"], first["run"], first["schema"]) == ("process", "r", SCHEMA)
    assert first["wall"] > 1_700_000_000_000_000_000
    assert first["t"] <= second["t"] or second["t"] <= third["t"]
    assert second["t"] <= third["t"]
    assert third["error"] == "ValueError"


def test_nulls_are_left_out(tmp_path):
    """A field without a value is not in the record, so that readers have one way to ask."""
    journal = _journal(tmp_path)
    journal.write("skip", id=1, reason="peer", device=None, holder="x")
    journal.close()
    assert list(read(journal.path))[1].keys() == {"kind", "t", "id", "reason", "holder"}


def test_no_file_without_a_record(tmp_path):
    """A process that has nothing to say leaves no file."""
    journal = _journal(tmp_path)
    journal.close()
    assert not (tmp_path / "deep").exists()
    assert not journal.started


def test_an_existing_file_is_never_touched(tmp_path):
    """A name that is taken, as when a pid comes again, gets a number; the old file stays as it was."""
    first, second = _journal(tmp_path), _journal(tmp_path)
    first.write("end", reason="a")
    second.write("end", reason="b")
    first.close()
    second.close()
    assert first.path != second.path
    assert [record.get("reason") for record in read(first.path)] == [None, "a"]
    assert [record.get("reason") for record in read(second.path)] == [None, "b"]


def test_a_truncated_last_line_is_normal(tmp_path):
    """What a kill cut off is left out; a broken line elsewhere is an error that names its place."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"kind":"process","t":1}\n{"kind":"en')
    assert [record["kind"] for record in read(str(path))] == ["process"]
    path.write_bytes(b'{"kind":"process","t":1}\n{"kind":"en\n{"kind":"end","t":2}\n')
    with pytest.raises(ValueError, match=r"j\.jsonl:2"):
        list(read(str(path)))
    path.write_bytes(b"[1]\n")
    with pytest.raises(ValueError, match="not a journal record"):
        list(read(str(path)))


def test_threads_write_whole_records(tmp_path):
    """Records of several threads do not mix, and none is lost."""
    journal = _journal(tmp_path)
    threads = [
        threading.Thread(
            target=lambda number=number: [journal.write("exit", id=number, status="ok") for _ in range(200)]
        )
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert sorted(record["id"] for record in read(journal.path) if record["kind"] == "exit") == sorted(
        number for number in range(4) for _ in range(200)
    )


def test_a_journal_that_cannot_be_written_is_said_once(tmp_path, caplog):
    """A directory that cannot be made costs the evidence and one warning, not the training."""
    (tmp_path / "file").write_text("")
    journal = Journal(str(tmp_path / "file" / "journal" / "one.jsonl"), {})
    journal.write("end", reason="a")
    journal.write("end", reason="b")
    assert journal.dropped == 2
    assert len(caplog.records) == 1
    assert "evidence" in caplog.text


def test_every_record_has_the_schemas_fields(tmp_path):
    """A run that meets most kinds of records writes none with a field that the schema does not know."""
    profwin.configure(steps="1-2", output=tmp_path, devices="pretend:0", run="r")

    @training_stage
    def update(error=None):
        with span("inner"):
            if error is not None:
                raise error

    for step in (1, 2, 3):
        with rollout_window(step, weight_version=step):
            if step == 2:
                update()
            with profwin.paused():
                update()
        with pytest.raises(KeyError):
            update(KeyError("x"))
    profwin.shutdown()
    (path,) = (tmp_path / "r" / "journal").iterdir()
    kinds = set()
    for line in path.read_text().splitlines():
        record = json.loads(line)
        kinds.add(record["kind"])
        assert record.keys() - {"kind", "t"} <= set(FIELDS[record["kind"]]), record
    assert kinds >= {"process", "step", "open", "enter", "exit", "close", "skip", "overlap", "paused", "resumed", "end"}
