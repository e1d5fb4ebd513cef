"""`profwin check` as a user runs it: exit statuses and options. Its word on the demo's runs stands with the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from check_support import ROOT, codes, run_check

sys.path.append(str(ROOT / "tests/unit"))
from journal_builder import JournalBuilder


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
