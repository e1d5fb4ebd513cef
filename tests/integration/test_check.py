"""`profwin check` as a user runs it: exit statuses, options, and the runs of the demo, good ones and misused ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from check_support import ROOT, codes, only_progress, report, run_check
from demo_support import Demo

sys.path.append(str(ROOT / "tests/unit"))
from journal_builder import JournalBuilder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(250)]

LOOPS = ["colocate", "fully_async", "separate", "sync"]
MISUSES = {
    "stage-in-window": {"handover-order", "skipped-busy"},
    "no-stop": {"stale-window", "skipped-busy"},
    "second-profiler": {"skipped-foreign"},
    "kill-engine": {"engine-died", "export-failed"},
}


@pytest.fixture(scope="module")
def demos(tmp_path_factory) -> dict[str, Path]:
    """The output of the demo's four loops, and of its four misuses, by name: each run once."""
    pytest.importorskip("torch")

    def run(name: str) -> Path:
        directory = tmp_path_factory.mktemp(name)
        arguments = (
            ("--loop", "all", "--steps", "5") if name == "all" else ("--misuse", name, "--steps", "3", "--profile", "2")
        )
        code, output, errors = Demo(directory).run(*arguments)
        assert code == 0, output + errors
        return directory / "out"

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(["all", *MISUSES], pool.map(run, ["all", *MISUSES]), strict=True))


def test_the_four_loops_are_clean(demos):
    """All four loops of the demo, checked at once and each alone: no finding that counts, and every stage in sight."""
    status, output, errors = run_check(demos["all"])
    assert status == 0, output
    assert only_progress(errors)
    for run in sorted(demos["all"].iterdir()):
        value = report(run)
        assert value["clean"]
        assert {row["name"] for row in value["summary"]} >= {"rollout", "old_log_prob", "actor_update"}
        assert sum(row["recorded"] for row in value["summary"]) == len(value["recordings"])
    assert sorted(run["name"].partition("-")[0] for run in report(demos["all"])["runs"]) == LOOPS


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_found_with_its_code(demos, misuse):
    """Each of the four commonest mistakes is found, in the run's own words, with the exit status 1."""
    assert MISUSES[misuse] <= codes(demos[misuse])
    assert run_check(demos[misuse])[0] == 1


def test_with_and_without_processes_the_same(demos, monkeypatch):
    """Two processes find what one finds."""
    from profwin.evidence import workers

    alone = report(demos["kill-engine"])
    monkeypatch.setattr(workers, "WORTH", 0)
    several = report(demos["kill-engine"])
    assert alone["findings"] == several["findings"]
    assert alone["recordings"] == several["recordings"]


def test_an_empty_folder_is_never_clean(tmp_path):
    """Nothing is not what was asked for, whatever the threshold."""
    for threshold in ("remark", "warning", "error"):
        assert run_check(tmp_path, "--fail-on", threshold)[0] == 1
    assert codes(tmp_path) == {"nothing-found"}
    (tmp_path / "notes.txt").write_text("nothing of a profiler")
    (tmp_path / "folder").mkdir()
    assert codes(tmp_path) == {"nothing-found"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("no/such/folder",),
        (os.devnull,),
        (".", "--steps", "x"),
        (".", "--ranks", "5-1"),
        (".", "--stages", ","),
        (".", "--format", "no-such-format"),
        (".", "--group-timeout", "soon"),
        (".", "--group-timeout", "0"),
        (".", "--fail-on", "everything"),
    ],
    ids=" ".join,
)
def test_what_cannot_run(arguments):
    """No such folder, and options that mean nothing: the exit status 2, one sentence, and nothing on the output."""
    status, output, errors = run_check(*arguments)
    assert (status, output) == (2, "")
    assert "error: " in errors
    assert "Traceback" not in errors


def test_the_timeout_of_the_process_group(tmp_path):
    """A stop of 3 s is slow for a group that gives up after 10 s, and not for torch's default."""
    journal = JournalBuilder(tmp_path, world=2)
    journal.stage(2, 1, 2, seconds=3)
    journal.end().save()
    assert "slow-stop" in codes(tmp_path, "--group-timeout", "10")
    assert "slow-stop" not in codes(tmp_path)


def test_the_codes_are_listed():
    """The command lists its codes, for people and for programs."""
    from profwin.evidence.codes import CODES

    status, output, _ = run_check("--list-codes")
    assert status == 0
    assert all(f"{code.severity}: {name}\n" in output for name, code in CODES.items())
    status, output, _ = run_check("--list-codes", "--json")
    assert set(json.loads(output)) == set(CODES)


def test_a_reader_of_the_output_may_leave(tmp_path):
    """`profwin check | head` ends without a traceback."""
    command = f"'{sys.executable}' -m profwin check --list-codes | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
