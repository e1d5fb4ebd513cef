"""Weight syncs as check, timeline and report see them: exact where journals have their bodies, else a bound."""

from __future__ import annotations

import json

import pytest
from journal_builder import SECOND, WALL, JournalBuilder
from report_support import Writer
from timeline_support import draw, named, paths

from profwin.evidence.page import page
from profwin.evidence.phases import measure
from profwin.evidence.report import as_json, gather
from profwin.evidence.report_text import report_text
from profwin.evidence.run import load


def _journal(tmp_path, *records):
    journal = JournalBuilder(tmp_path)
    for at, kind, fields in records:
        journal.write(kind, at, **fields)
    journal.end(9).save()
    return load(str(tmp_path))


BEGIN = {"id": 5, "version": 7, "name": "rollout", "side": "rollout", "devices": ["gpu-0"]}


def test_a_body_has_its_begin_its_end_and_how_it_ended(tmp_path):
    """Begin and end are one sync, with what both say, in its process."""
    run = _journal(
        tmp_path, (1, "step", {"side": "training", "step": 3, "selected": True}), (2, "sync", BEGIN),
        (4, "synced", {"id": 5, "status": "error", "error": "OSError"}),
    )  # fmt: skip
    (sync,) = run.syncs
    assert not run.findings
    assert (sync.version, sync.name, sync.side, sync.devices, sync.step) == (7, "rollout", "rollout", ("gpu-0",), 3)
    assert (sync.start - WALL, sync.end - WALL) == (2 * SECOND, 4 * SECOND)
    assert (sync.status, sync.error, sync.process) == ("error", "OSError", run.processes[0])


@pytest.mark.parametrize(
    ("records", "step"),
    [
        ([], None),
        ([("rollout", 4, True)], 4),
        ([("training", 4, True)], 4),
        ([("rollout", 4, True), ("training", 3, True)], 4),
        ([("rollout", 4, False), ("training", 3, True)], 3),
        ([("rollout", 4, True), ("rollout", 5, False)], None),
    ],
)
def test_a_sync_belongs_to_the_profiled_step_before_it(tmp_path, records, step):
    """That of its own side, else that of the other; none where a step that is not profiled has begun."""
    steps = [
        (1, "step", {"side": side, "step": number, "selected": selected}) for side, number, selected in records
    ]  # fmt: skip
    assert [sync.step for sync in _journal(tmp_path, *steps, (2, "sync", BEGIN)).syncs] == [step]


END = {"id": 5, "status": "ok"}


@pytest.mark.parametrize(
    "records",
    [
        [(2, "sync", BEGIN), (3, "sync", BEGIN)],
        [(2, "synced", END)],
        [(2, "sync", BEGIN), (3, "synced", END), (4, "synced", END)],
        [(3, "sync", BEGIN), (2, "synced", END)],
    ],
)
def test_records_that_contradict_each_other_are_found(tmp_path, records):
    """Twice begun, twice ended, never begun, or ended before it began: each is a finding with its line."""
    (finding,) = _journal(tmp_path, *records).findings
    assert (finding.code.name, finding.place) == ("contradicting-journal", f"line {len(records) + 1}")
    twin = [(2, "sync", BEGIN), (3, "synced", END), (4, "sync", {**BEGIN, "id": 6})]
    assert not _journal(tmp_path / "twin", *twin).findings


def _run(tmp_path, *writers):
    for writer in writers:
        writer.close(100.0)
    return measure(load(tmp_path))


def _seconds(device):
    return {kind: time / SECOND for kind, time in device.kinds.items() if time}


def _sync(writer, start, end, version, devices, side="rollout", number=1000):
    writer.write(start, "sync", id=number + version, version=version, name="rollout", side=side, devices=devices)
    if end is not None:
        writer.write(end, "synced", id=number + version, status="ok")


def _rollouter(directory, *, told):
    writer = Writer(directory, "rollout", 0)
    writer.step(1.0, "rollout", 1, version=0)
    writer.body(1.0, 5.0, "window", "rollout", 1, ["a"], profiler=False)
    if told:
        _sync(writer, 6.0, 7.5, 1, ["a"])
    writer.step(9.0, "rollout", 2, selected=False, version=1)
    return writer


def test_the_time_of_a_sync_is_that_of_its_body(tmp_path):
    """With records the step ends with the body, and no bound is made of what else there was; without, a bound is."""
    (step,) = _run(tmp_path / "told", _rollouter(tmp_path / "told", told=True))
    assert step.span / SECOND == 6.5
    assert _seconds(step.devices[0]) == {"rollout": 4.0, "sync": 1.5, "idle": 1.0}
    assert [(ranks.kind, ranks.name) for ranks in step.ranks] == [("rollout", "rollout"), ("sync", "weight sync v1")]
    (step,) = _run(tmp_path / "older", _rollouter(tmp_path / "older", told=False))
    assert step.span / SECOND == 8.0
    assert _seconds(step.devices[0]) == {"rollout": 4.0, "sync_at_most": 4.0}
    assert [ranks.kind for ranks in step.ranks] == ["rollout"]


def test_the_report_says_which_of_the_two_it_is(tmp_path):
    """Table, page and JSON show a bound as such, and an exact time without."""
    for name, told in (("told", True), ("older", False)):
        _rollouter(tmp_path / name, told=told).close(100.0)
    told, older = (gather(str(tmp_path / name)) for name in ("told", "older"))
    assert "<= 50 %" in report_text(older)
    assert "<=" not in report_text(told)
    assert " 23 %" in report_text(told)
    assert "weight sync, at most" in page(older).partition('id="words"')[0]
    assert "weight sync v1" in page(told)
    assert "weight sync, at most" not in page(told).partition('id="words"')[0]
    (first,), (second,) = (as_json(report)["runs"] for report in (told, older))
    assert (first["seconds"]["sync"], first["seconds"]["sync_at_most"]) == (1.5, 0.0)
    assert (second["seconds"]["sync"], second["seconds"]["sync_at_most"]) == (0.0, 4.0)
    assert json.dumps(first["steps"][0]["shares"])


def test_a_sync_in_a_window_counts_for_the_sync_and_is_no_overlap(tmp_path):
    """Where syncs end no window, the inner counts: the devices load weights and do not generate."""
    rollouter, trainer = Writer(tmp_path, "rollout", 0), Writer(tmp_path, "actor", 1)
    rollouter.step(0.5, "rollout", 1, version=0)
    _sync(rollouter, 3.0, 4.0, 1, ["a", "b"])
    rollouter.body(1.0, 9.0, "window", "rollout", 1, ["a"], profiler=False)
    trainer.body(1.0, 3.0, "stage", "update", 1, ["b"], profiler=False)
    trainer.body(4.5, 6.0, "stage", "update", 1, ["b"], profiler=False)
    (step,) = _run(tmp_path, rollouter, trainer)
    rollout, training = (_seconds(device) for device in step.devices)
    assert rollout == {"rollout": 7.0, "sync": 1.0}
    assert training["sync"] == 1.0
    assert training["training"] == step.overlap / SECOND == 3.5


def test_a_device_may_wait_for_a_sync_of_others(tmp_path):
    """What stands still while weights are on their way elsewhere says so."""
    first, second = Writer(tmp_path, "actor", 0), Writer(tmp_path, "actor", 1)
    for writer, device in ((first, ["a"]), (second, ["b"])):
        writer.step(0.5, "training", 1)
        writer.body(1.0, 3.0, "stage", "update", 1, device, profiler=False)
    _sync(first, 4.0, 6.0, 1, ["a"], "training")
    (step,) = _run(tmp_path, first, second)
    assert {cause: time / SECOND for cause, time in step.devices[1].causes.items() if time} == {
        "sync": 2.0,
        "unknown": 1.0,
    }


def test_a_sync_is_one_whatever_step_it_belongs_to(tmp_path):
    """In the time of a step, that of another one or of none is a sync too; a rank that trained waits for samples."""
    rollouter, trainer = Writer(tmp_path, "rollout", 0), Writer(tmp_path, "actor", 1)
    other = Writer(tmp_path, "actor", 2)
    rollouter.body(1.0, 9.0, "window", "rollout", 1, ["a"], profiler=False)
    trainer.body(1.0, 3.0, "stage", "update", 1, ["b"], profiler=False)
    other.body(1.0, 9.0, "stage", "values", 1, ["c"], profiler=False)
    _sync(trainer, 5.0, 6.0, 0, ["b"], "training")
    trainer.step(7.0, "training", 2)
    _sync(trainer, 8.0, 9.0, 2, ["b"], "training")
    (step,) = _run(tmp_path, rollouter, trainer, other)
    assert _seconds(step.devices[1]) == {"training": 2.0, "sync": 2.0, "idle": 4.0}
    assert step.devices[1].causes["samples"] / SECOND == 2.0


def test_who_only_syncs_is_no_device(tmp_path):
    """A driver without a device, with nothing but syncs, has no row; and a sync alone makes no step."""
    driver = Writer(tmp_path, "driver", None)
    for step in (1, 2):
        driver.step(step * 10.0, "training", step, version=0)
        _sync(driver, step * 10.0 + 1, step * 10.0 + 2, step, [])
    driver.step(30.0, "training", 3, version=0)
    _sync(driver, 31.0, 32.0, 3, ["a"])
    (step,) = _run(tmp_path, driver, _rollouter(tmp_path, told=True))
    assert [device.lane.key for device in step.devices] == ["a"]
    assert step.step == 1


def test_a_sync_that_never_ended_lasts_as_long_as_its_process(tmp_path):
    """Of a process that died in it; the check says that it did."""
    writer = Writer(tmp_path, "rollout", 0)
    writer.step(1.0, "rollout", 1, version=0)
    writer.body(1.0, 5.0, "window", "rollout", 1, ["a"], profiler=False)
    _sync(writer, 6.0, None, 1, ["a"])
    writer.write(8.0, "finding", code="x", detail="")
    writer.close(9.0, reason=None)
    (step,) = measure(load(tmp_path))
    assert _seconds(step.devices[0]) == {"rollout": 4.0, "sync": 2.0, "idle": 1.0}
    assert "no-end" in {finding.code.name for finding in gather(str(tmp_path)).findings}


def test_the_timeline_has_a_row_of_syncs(tmp_path):
    """Each body is a slice on its process's row; with a step asked for, those that belong to it."""
    directory = tmp_path / "run"
    journal = JournalBuilder(directory)
    journal.step(2, 1)
    journal.stage(2, 1, 2)
    journal.write("sync", 3, **BEGIN).write("synced", 4, id=5, status="ok")
    journal.step(3, 5, selected=False)
    journal.write("sync", 6, **{**BEGIN, "id": 6, "version": 8})
    journal.save()
    row = ("actor (rank 0, pid 100)", "weight syncs")
    _timeline, tracks = draw(directory)
    assert row in paths(tracks)
    found = named(tracks, *row).slices
    assert [(start - WALL, end - WALL, name, kind) for start, end, name, kind, _ in found] == [
        (3 * SECOND, 4 * SECOND, "weight sync v7", "sync"),
        (6 * SECOND, 6 * SECOND, "weight sync v8 (never ended)", "sync"),
    ]
    assert found[0][4] == {
        "weights": 7, "windows": "rollout", "side": "rollout", "step": 2, "status": "ok", "devices": "gpu-0",
    }  # fmt: skip
    _timeline, tracks = draw(directory, step=2)
    assert [each[2] for each in named(tracks, *row).slices] == ["weight sync v7"]
