"""``profwin report`` as a user runs it: on a real run of the demo, and on what may go wrong."""

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
from profwin.journal import read

sys.path.append(str(Path(__file__).parents[1] / "unit"))
from report_support import Page, Writer, write_run

ROOT = Path(__file__).resolve().parents[2]


def _report(*arguments, cwd, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "profwin", "report", *map(str, arguments)],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False, **more,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_real_run_of_three_loops(tmp_path):
    """Loops of a demo stand in one table and one page; overlap is where devices are apart; every device adds up."""
    pytest.importorskip("torch")
    for loop in ("sync", "separate", "fully_async"):
        demo = [sys.executable, "-m", "profwin", "demo", "--loop", loop, "--steps", "3", "--profile", "2"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([*demo, "--output", "runs"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    done = _report("runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1 profiled step") == 3
    assert "STALENESS" in done.stdout
    assert "error" not in done.stdout.splitlines()[-1]
    parsed = Page((tmp_path / "report.html").read_text())
    assert parsed.tags
    made = json.loads(_report("runs", "--json", cwd=tmp_path).stdout)
    fully_async, separate, sync = made["runs"]
    assert sync["steps"][0]["overlap"]["seconds"] == 0
    for pipelined in (separate, fully_async):
        assert 0 < pipelined["steps"][0]["overlap"]["share"] <= 1
        assert pipelined["seconds"]["sync_at_most"] == 0
        (step,) = pipelined["steps"]
        own, others = _syncs(tmp_path / "runs" / pipelined["directory"], step["step"])
        assert own.keys() == {device["device"] for device in step["devices"]}
        for device in step["devices"]:
            # The end of the one before may lie in the step, too.
            took, least = device["seconds"]["sync"], own[device["device"]]
            assert least - 1e-6 <= took <= least + others.get(device["device"], 0) + 1e-6
    assert sync["seconds"]["sync"] == 0  # it has no event for that
    for run in made["runs"]:
        (step,) = run["steps"]
        assert [ranks["name"] for ranks in step["ranks"] if ranks["kind"] == "training"] == [
            "old_log_prob", "ref_log_prob", "advantages", "actor_update",
        ]  # fmt: skip
        for device in step["devices"]:
            assert sum(device["seconds"].values()) == pytest.approx(step["seconds"])
        assert step["profiling"]["share"] > 0
        assert step["staleness"] in (0, 1, 2)


def _syncs(directory, version):
    """Return what the bodies of a version's sync took on each device, in seconds, by the journals; and all others'."""
    own, others = {}, {}
    for path in directory.glob("journal/*.jsonl"):
        records = list(read(str(path)))
        ends = {record["id"]: record["t"] for record in records if record["kind"] == "synced"}
        for record in records:
            if record["kind"] == "sync":
                took = (ends[record["id"]] - record["t"]) / 1e9
                for device in record["devices"]:
                    times = own if record["version"] == version else others
                    times[device] = times.get(device, 0) + took
    return own, others


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
