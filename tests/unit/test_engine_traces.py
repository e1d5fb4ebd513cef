"""Bringing an engine's files: which are taken, what becomes of their names, and that none is ever lost."""

from __future__ import annotations

import errno
import gzip
import os
import threading
import time

import pytest

from profwin.engines import traces
from profwin.engines.traces import bring

TOKEN = "step2_rollout_0a1b2c3d"
STEM = "norank_rollout_p1-0000_n1_a0"
WHOLE = gzip.compress(b'{"traceEvents": []}')


@pytest.fixture
def source(tmp_path):
    """Return an engine's directory."""
    folder = tmp_path / "engine"
    folder.mkdir()
    return folder


@pytest.fixture
def step(tmp_path):
    """Return where the files belong; it is not there yet."""
    return tmp_path / "run" / "step_000002" / "rollout"


def _bring(source, step):
    return [os.path.relpath(path, step) for path in bring(str(source), TOKEN, str(step), STEM, time.time_ns())]


@pytest.mark.parametrize(
    ("name", "new"),
    [
        (f"{TOKEN}_rank0.1764520000123456789.pt.trace.json.gz", "rank0.pt.trace.json.gz"),
        (
            f"{TOKEN}_dp0_pp0_tp1_dcp0_ep0_rank1.1764520000123456789.pt.trace.json.gz",
            "dp0_pp0_tp1_dcp0_ep0_rank1.pt.trace.json.gz",
        ),
        (f"{TOKEN}_node7_4711.async_llm.1764520000123456789.pt.trace.json.gz", "node7_4711.async_llm.pt.trace.json.gz"),
        (f"{TOKEN}-profwin-TP-3-DP-1-EXTEND.trace.json.gz", "profwin-TP-3-DP-1-EXTEND.trace.json.gz"),
        (f"proton_{TOKEN}_rank0_pid7_ab_run0.hatchet", "proton.rank0_pid7_ab_run0.hatchet"),
        (f"{TOKEN} of\u00e9~$(x).trace.json.gz", "_of_x_.trace.json.gz"),
    ],
)
def test_names(source, step, name, new):
    """A file's new name is the window's, with the worker that the engine named."""
    (source / name).write_bytes(WHOLE)
    assert _bring(source, step) == [f"{STEM}.{new}"]
    assert (step / f"{STEM}.{new}").read_bytes() == WHOLE
    assert not list(source.iterdir())


def test_a_table_is_brought_and_not_named(source, step):
    """The text that vLLM writes beside a trace goes with it; alone it is no trace."""
    (source / f"{TOKEN}_rank0.profiler_out.txt").write_text("a table")
    with pytest.raises(FileNotFoundError, match="no trace of it in"):
        _bring(source, step)
    (source / f"{TOKEN}_rank0.1.pt.trace.json.gz").write_bytes(WHOLE)
    assert len(_bring(source, step)) == 1
    assert len(list(step.iterdir())) == 2


def test_only_plain_files_of_this_window_are_taken(source, step, tmp_path):
    """Links, pipes, folders, empty files, other windows' files and names that control a terminal stay."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (source / f"{TOKEN}_link.trace.json").symlink_to(secret)
    (source / f"{TOKEN}_up.trace.json").symlink_to("../../secret")
    (source / f"{TOKEN}_folder.trace.json").mkdir()
    (source / f"{TOKEN}_empty.trace.json").touch()
    (source / f"{TOKEN}_\x1b[2J.trace.json").write_bytes(b"{}")
    (source / "step2_rollout_ffffffff_rank0.1.pt.trace.json.gz").write_bytes(WHOLE)
    os.mkfifo(source / f"{TOKEN}_pipe.trace.json")
    before = sorted(source.iterdir())
    (source / f"{TOKEN}_rank0.trace.json").write_bytes(b"{}")
    assert _bring(source, step) == [f"{STEM}.rank0.trace.json"]
    assert sorted(source.iterdir()) == before
    assert [path.is_symlink() for path in step.iterdir()] == [False]


def test_a_link_that_takes_a_files_place_is_not_followed(source, step, tmp_path, monkeypatch):
    """Where a file is replaced by a link after it was looked at, nothing is brought."""
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    name = source / f"{TOKEN}_rank0.trace.json"
    name.write_bytes(b"{}")

    def replace(*_):
        name.unlink()
        name.symlink_to(secret)
        return True

    monkeypatch.setattr(traces, "whole", replace)
    with pytest.raises(OSError, match="no file any more"):
        _bring(source, step)
    assert not list(step.iterdir())


def test_nothing_is_overwritten(source, step):
    """Where a name is taken the next one is used; the file that is there stays as it is."""
    step.mkdir(parents=True)
    (step / f"{STEM}.rank0.pt.trace.json.gz").write_text("there before")
    (step / f"{STEM}.rank1.trace.json").symlink_to("nowhere")
    (source / f"{TOKEN}_rank0.1764520000123456789.pt.trace.json.gz").write_bytes(WHOLE)
    (source / f"{TOKEN}_rank1.trace.json").write_bytes(b"{}")
    assert _bring(source, step) == [f"{STEM}.rank0.2.pt.trace.json.gz", f"{STEM}.rank1.2.trace.json"]
    assert (step / f"{STEM}.rank0.pt.trace.json.gz").read_text() == "there before"
    assert not (step / "nowhere").exists()


@pytest.fixture
def no_links(monkeypatch):
    """Let the two directories be on different file systems."""

    def link(source, target, **options):
        if "src_dir_fd" in options:
            raise OSError(errno.EXDEV, "another file system")
        return real(source, target, **options)

    real = os.link
    monkeypatch.setattr(os, "link", link)


def test_another_file_system(source, step, no_links):
    """Between file systems a file is copied, whole and then named, and its old name goes."""
    (source / f"{TOKEN}_rank0.1.pt.trace.json.gz").write_bytes(WHOLE)
    assert len(_bring(source, step)) == 1
    assert not list(source.iterdir())
    assert [path.read_bytes() for path in step.iterdir()] == [WHOLE]


def test_a_copy_that_fails_loses_nothing(source, step, no_links, monkeypatch):
    """Where the disk is full the file is still in its old place, and no half one in the new."""

    def fail(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(traces.shutil, "copyfileobj", fail)
    (source / f"{TOKEN}_rank0.1.pt.trace.json.gz").write_bytes(WHOLE)
    with pytest.raises(OSError, match="no space"):
        _bring(source, step)
    assert len(list(source.iterdir())) == 1
    assert not list(step.iterdir())


def test_a_file_of_somebody_else_stays(source, step, monkeypatch):
    """A file that may not be removed is brought all the same."""

    def refuse(path, **options):
        if "dir_fd" in options:
            raise PermissionError(path)
        real(path)

    real = os.unlink
    monkeypatch.setattr(os, "unlink", refuse)
    (source / f"{TOKEN}_rank0.1.pt.trace.json.gz").write_bytes(WHOLE)
    assert len(_bring(source, step)) == 1
    assert len(list(source.iterdir())) == 1


def test_the_folder_itself(source, tmp_path):
    """An engine that writes into the step's folder has its files renamed there."""
    (source / f"{TOKEN}_rank0.1.pt.trace.json.gz").write_bytes(WHOLE)
    assert _bring(source, source) == [f"{STEM}.rank0.1.pt.trace.json.gz"]
    assert len(list(source.iterdir())) == 1


def test_half_a_file_is_waited_for(source, step):
    """A file that is being written is taken when its checksum is there; one that comes later than the first, too."""
    path = source / f"{TOKEN}_rank0.1.pt.trace.json.gz"
    path.write_bytes(WHOLE[:-4])

    def finish():
        time.sleep(0.1)
        (source / f"{TOKEN}_rank1.1.pt.trace.json.gz").write_bytes(WHOLE)
        with path.open("ab") as file:
            file.write(WHOLE[-4:])

    writer = threading.Thread(target=finish)
    writer.start()
    assert len(_bring(source, step)) == 2
    writer.join()
    assert all(file.read_bytes() == WHOLE for file in step.iterdir())


def test_a_copy_of_half_a_file_leaves_the_rest(source, step, no_links, monkeypatch):
    """Where a file does not become whole its copy is brought, and the file stays with what may still be written."""
    monkeypatch.setattr(traces, "COMPLETE", 0.05)
    (source / f"{TOKEN}_rank0.1.pt.trace.json.gz").write_bytes(WHOLE[:-4])
    assert len(_bring(source, step)) == 1
    assert len(list(source.iterdir())) == 1


@pytest.mark.parametrize(("end", "good"), [(b"}", True), (b"]\n", True), (b",", False), (b"", False)])
def test_the_end_of_json(source, end, good):
    """JSON that is not compressed is whole with its last bracket."""
    (source / "a.json").write_bytes(b'{"traceEvents": [' + end if end else b"")
    folder = os.open(source, os.O_RDONLY)
    try:
        assert traces.whole(folder, "a.json") is good
        assert not traces.whole(folder, "absent")
    finally:
        os.close(folder)


def test_no_directory(tmp_path, step):
    """A directory that is not there holds no trace."""
    with pytest.raises(FileNotFoundError):
        _bring(tmp_path / "absent", step)
