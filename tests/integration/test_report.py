"""``profwin report`` as a user runs it, and what may go wrong; on a real run of the demo it stands with the demo."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from profwin.cli import INTERRUPTED, main

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from report_support import Page, Writer, write_run

ROOT = Path(__file__).resolve().parents[2]


def _report(*arguments, cwd, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "profwin", "report", *map(str, arguments)],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False, **more,
    )  # fmt: skip


def test_the_page_is_not_replaced_without_force(tmp_path):
    """A file of that name stays as it is, with exit status 2; --force replaces it; nothing else is left."""
    write_run(tmp_path / "run", 2, (2,))
    (tmp_path / "report.html").write_text("mine")
    done = _report("run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--force" in done.stderr
    assert (tmp_path / "report.html").read_text() == "mine"
    done = _report("run", "--force", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert sorted(os.listdir(tmp_path)) == ["report.html", "run"]


def test_json_writes_no_page_unless_asked(tmp_path):
    """--json prints one object; the page comes with -o, where it says."""
    write_run(tmp_path / "run", 2, (2, 4))
    done = _report("run", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["runs"][0]["steps"][1]["step"] == 4
    assert os.listdir(tmp_path) == ["run"]
    done = _report("run", "--json", "-o", "there.html", cwd=tmp_path)
    assert json.loads(done.stdout)["schema"] == 1
    assert sorted(os.listdir(tmp_path)) == ["run", "there.html"]


@pytest.mark.parametrize("place", ["nowhere/report.html", "fifo", "link", "folder"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    """A folder that is not there, a FIFO, a link or a folder in the way: exit status 2, and all is as it was."""
    write_run(tmp_path / "run", 1, (2,))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("target")
    done = _report("run", "-o", place, "--force", cwd=tmp_path)
    assert done.returncode == 2
    assert place in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder", "link", "run"]


@pytest.mark.parametrize("content", ["missing", "file", "empty", "no-journal"])
def test_without_a_run_there_is_no_report(tmp_path, content):
    """No directory, a file, nothing in it, or no journal: exit status 2, a sentence, and no page."""
    target = tmp_path / "target"
    if content == "file":
        target.write_text("")
    elif content != "missing":
        target.mkdir()
    if content == "no-journal":
        (target / "trace.json").write_text('{"traceEvents": []}')
    done = _report("target", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("profwin report: error: target: ")
    assert not (tmp_path / "report.html").exists()


def test_damaged_journals_give_a_report_and_findings(tmp_path):
    """What can be read is reported; what cannot is a finding; nothing raises, whatever the times are."""
    write_run(tmp_path / "run", 2, (2,))
    journal = tmp_path / "run" / "journal"
    (journal / "torn.jsonl").write_bytes(b'{"kind":"process"\n\xff\x00garbage\n')
    extreme = Writer(tmp_path / "run", "actor", 9)
    for number, (start, end) in enumerate([(-(2**62), 2**62), (2**62, -(2**62)), (0, 0)]):
        for kind, at in (("enter", start), ("exit", end)):
            more = (
                {"what": "stage", "name": "odd", "step": -5, "occurrence": 1} if kind == "enter" else {"status": "ok"}
            )
            extreme.lines.append(json.dumps({"kind": kind, "t": at, "id": number, **more}))
    extreme.close(1.0)
    done = _report("run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "error" in done.stdout.splitlines()[-1]
    Page((tmp_path / "report.html").read_text())


@pytest.mark.parametrize(
    ("place", "force"),
    [
        ("profwin.evidence.phases.make_lanes", []),
        ("profwin.evidence.phases.make_lanes", ["--force"]),
        ("os.link", []),
        ("os.replace", ["--force"]),
    ],
)
def test_ctrl_c_leaves_nothing_behind(tmp_path, monkeypatch, capsys, place, force):
    """Interrupted while it measures or while it writes: exit status 130, no file, and an older page stays."""
    write_run(tmp_path / "run", 1, (2,))
    if force:
        (tmp_path / "report.html").write_text("mine")

    def interrupted(*_arguments, **_more):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(place, interrupted)
    assert main(["report", "run", *force]) == INTERRUPTED
    assert capsys.readouterr().err == "profwin: interrupted\n"
    assert sorted(os.listdir(tmp_path)) == ["report.html"] * len(force) + ["run"]
    assert not force or (tmp_path / "report.html").read_text() == "mine"


def test_a_full_disk_leaves_no_half_page(tmp_path, monkeypatch, capsys):
    """A page that does not fit is said, and not there."""
    write_run(tmp_path / "run", 1, (2,))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("profwin.cli.report.PAGE", "/dev/full/report.html")
    assert main(["report", "run"]) == 2
    assert "/dev/full/report.html" in capsys.readouterr().err
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        assert main(["report", "run", "-o", "page.html"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "page.html: File too large" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["run"]


def test_the_page_has_the_modes_of_any_new_file(tmp_path):
    """It is as readable as the user's other files, not private as a temporary file is."""
    write_run(tmp_path / "run", 1, (2,))
    assert _report("run", cwd=tmp_path, umask=0o022).returncode == 0
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o644
