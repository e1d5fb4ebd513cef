"""The demo's verification sees each thing that can be wrong, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_run_directory import WORK, RunDirectory

from profwin.demo.verify import verify
from profwin.demo.witness import gather

ORDER, TRACE_ORDER, INSIDE, LOOSE, WHOLE, SKIPPED = range(6)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run as it should be."""
    return RunDirectory(str(tmp_path / "run"))


def problems(run: RunDirectory, *, misuse: bool = False) -> dict[int, list[str]]:
    """Return the numbers of the checks that fail, with what they say."""
    checks = verify(gather(run.write()), {2: WORK}, misuse=misuse)
    return {number: check.problems for number, check in enumerate(checks) if not check.passed}


def test_a_good_run_passes(run: RunDirectory) -> None:
    """A run with nothing wrong has no problem."""
    assert problems(run) == {}


def test_an_overlap_in_the_journals_is_seen(run: RunDirectory) -> None:
    """A window that closes after the first stage opened fails the journals' check, by name and length."""
    run.records("driver", "close")[0]["t"] = 25_000_000
    found = problems(run)
    assert list(found) == [ORDER]
    assert (
        "'rollout' of step 2 (driver) and stage 'old_log_prob' of step 2 (actor) overlap: 4.000 ms" in found[ORDER][0]
    )


def test_an_overlap_on_other_devices_is_none(run: RunDirectory) -> None:
    """Collections on devices that are not shared may overlap."""
    run.records("driver", "close")[0]["t"] = 25_000_000
    run.records("driver", "open")[0]["devices"] = ["pretend:other"]
    assert problems(run) == {}


def test_an_overlap_that_only_the_traces_show_is_seen(run: RunDirectory) -> None:
    """Traces that overlap fail, even where the journals claim that their collections do not."""
    path = "step_000002/rollout.pt.trace.json.gz"
    _start, _end, metadata, operators = run.traces[path]
    run.traces[path] = (12, 30, metadata, operators)
    assert list(problems(run)) == [TRACE_ORDER]


def test_a_trace_far_from_its_collection_is_seen(run: RunDirectory) -> None:
    """A journal cannot claim another time than that of its trace."""
    path = "step_000002/actor_update.pt.trace.json.gz"
    _start, _end, metadata, operators = run.traces[path]
    run.traces[path] = (60, 900, metadata, operators)
    assert list(problems(run)) == [INSIDE]


def test_a_trace_of_another_step_is_seen(run: RunDirectory) -> None:
    """The step in a trace's metadata must be its collection's."""
    run.traces["step_000002/advantages.pt.trace.json.gz"][2]["step"] = 3
    assert list(problems(run)) == [INSIDE]


def test_a_trace_that_no_journal_knows_is_seen(run: RunDirectory) -> None:
    """Every trace must belong to a collection."""
    run.traces["step_000002/stray.pt.trace.json.gz"] = (1, 2, {}, {"aten::add": 1})
    assert list(problems(run)) == [INSIDE]


def test_a_collection_without_an_end_is_seen(run: RunDirectory) -> None:
    """A window that is never closed fails as open, and as overlapping all that follows."""
    run.journals["driver"] = [record for record in run.journals["driver"] if record["kind"] != "close"]
    assert list(problems(run)) == [ORDER, LOOSE]


def test_a_collection_of_an_unprofiled_step_is_seen(run: RunDirectory) -> None:
    """What was recorded without being asked for fails."""
    run.add("driver", 9, "rollout", "rollout", 100, 110, step=3)
    assert list(problems(run)) == [LOOSE]


@pytest.mark.parametrize("name", ["rollout", "old_log_prob", "ref_log_prob", "advantages", "actor_update"])
def test_each_missing_trace_is_seen(run: RunDirectory, name: str) -> None:
    """A window or stage without its trace fails."""
    del run.traces[f"step_000002/{name}.pt.trace.json.gz"]
    assert problems(run) == {WHOLE: [f"step 2 has no trace of {name!r}"]}


@pytest.mark.parametrize("name", ["rollout", "old_log_prob", "ref_log_prob", "advantages", "actor_update"])
@pytest.mark.parametrize("difference", [-1, 1])
def test_each_half_or_mixed_trace_is_seen(run: RunDirectory, name: str, difference: int) -> None:
    """A trace with fewer operators than the body ran lost a part, one with more got something else: both fail."""
    operators = run.traces[f"step_000002/{name}.pt.trace.json.gz"][3]
    operator, count = next(iter(WORK.expected(name).items()))
    operators[operator] = count + difference
    assert list(problems(run)) == [WHOLE]


def test_an_unreadable_trace_is_seen(run: RunDirectory) -> None:
    """A torn trace counts as unreadable and as missing."""
    path = Path(run.write()) / "step_000002/rollout.pt.trace.json.gz"
    path.write_bytes(path.read_bytes()[:-20])
    checks = verify(gather(run.path), {2: WORK})
    assert [number for number, check in enumerate(checks) if not check.passed] == [INSIDE, WHOLE]


def test_devices_must_be_named(run: RunDirectory) -> None:
    """Where no collection names a device nothing was guarded, so nothing is proved."""
    for role in run.journals:
        for record in run.records(role, "open"):
            record["devices"] = []
    assert list(problems(run)) == [ORDER]


def test_misuse_may_lack_what_a_finding_names(run: RunDirectory) -> None:
    """A finding that was made while the window was being closed names it; one of another time does not."""
    del run.traces["step_000002/rollout.pt.trace.json.gz"]
    finding = {"kind": "finding", "t": 25_000_000, "code": "engine-died", "detail": "it died"}
    run.journals["driver"].append(finding)
    checks = verify(gather(run.write()), {2: WORK}, misuse=True)
    assert [number for number, check in enumerate(checks) if not check.passed] == [4]
    finding["t"] = 19_000_000
    other = RunDirectory(f"{run.path}-2")
    other.journals["driver"].append(finding)
    del other.traces["step_000002/rollout.pt.trace.json.gz"]
    assert problems(other, misuse=True) == {}


def skip(run: RunDirectory, name: str) -> None:
    """Take a stage's collection and trace away and write that it ran unrecorded."""
    number = next(record["collection"] for record in run.records("actor", "open") if record["name"] == name)
    run.journals["actor"] = [record for record in run.journals["actor"] if record.get("collection") != number]
    del run.traces[f"step_000002/{name}.pt.trace.json.gz"]
    run.journals["actor"] += [
        {"kind": "skip", "t": 90_000_000, "id": 77, "reason": "busy"},
        {"kind": "enter", "t": 90_000_001, "id": 77, "what": "stage", "name": name, "step": 2},
    ]


def test_a_skip_is_no_success(run: RunDirectory) -> None:
    """A stage that ran unrecorded fails as missing and as skipped."""
    skip(run, "advantages")
    assert list(problems(run)) == [WHOLE, SKIPPED]


def test_misuse_may_lack_what_the_journal_names(run: RunDirectory) -> None:
    """With a mistake made on purpose, data may be missing if a skip names it."""
    skip(run, "advantages")
    assert problems(run, misuse=True) == {}


def test_misuse_may_not_lack_anything_in_silence(run: RunDirectory) -> None:
    """With a mistake made on purpose, data that is missing without a word in the journal fails."""
    skip(run, "advantages")
    del run.traces["step_000002/old_log_prob.pt.trace.json.gz"]
    found = problems(run, misuse=True)
    assert list(found) == [4]
    assert found[4] == ["step 2 has no trace of 'old_log_prob'; nor does the journal say why"]
