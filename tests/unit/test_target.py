"""The file that a timeline is written to is there whole or not at all."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys

import pytest

from profwin.evidence import target
from profwin.evidence.target import Target


@pytest.fixture(params=["nameless", "hidden", "no-proc"], autouse=True)
def kind(request, monkeypatch):
    """Let the file system know files without a name, or not; the last is a system where such a file gets no name."""
    if request.param == "hidden":
        monkeypatch.delattr(os, "O_TMPFILE")
    elif request.param == "no-proc":
        monkeypatch.setattr(target, "_OWN_FILES", "/nowhere")
    return request.param


def _write(path, data=b"x" * 100_000, *, force=False):
    with Target(str(path), force=force) as made:
        made.write(data)
        made.finish()
    return made


def test_whole_file(tmp_path):
    """After `finish` the file is there under its name, with the usual mode, and nothing else."""
    made = _write(tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"x" * 100_000
    assert made.size == 100_000
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o666 & ~mask
    assert os.listdir(tmp_path) == ["a.bin"]


def test_compressed(tmp_path):
    """A name in .gz is kept to."""
    _write(tmp_path / "a.gz")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"x" * 100_000


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, ValueError])
def test_failure_leaves_nothing(tmp_path, error):
    """Whatever ends the writing, no file is left, hidden or not."""

    def fail() -> None:
        with Target(str(tmp_path / "a.gz"), force=False) as made:
            made.write(os.urandom(1_000_000))
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []


def test_without_finish(tmp_path):
    """What is not finished is not there."""
    with Target(str(tmp_path / "a"), force=False) as made:
        made.write(b"half")
    assert os.listdir(tmp_path) == []


def test_never_overwrites(tmp_path):
    """A file that is there is kept, and said to be there before anything is written; force replaces it."""
    (tmp_path / "a").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        Target(str(tmp_path / "a"), force=False)
    assert (tmp_path / "a").read_bytes() == b"mine"
    _write(tmp_path / "a", b"new", force=True)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("links", [True, False])
def test_somebody_else_was_faster(tmp_path, monkeypatch, kind, links):
    """A file that appears while this one is written is kept too."""
    if not links and kind != "nameless":
        monkeypatch.setattr(os, "link", _no_links)
    with Target(str(tmp_path / "a"), force=False) as made:
        (tmp_path / "a").write_bytes(b"theirs")
        with pytest.raises(FileExistsError):
            made.finish()
    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a"]


def test_file_system_without_links(tmp_path, monkeypatch, kind):
    """Then it is renamed; one that knows files without names has links, so a failure there leaves nothing."""
    monkeypatch.setattr(os, "link", _no_links)
    if kind == "nameless":
        with pytest.raises(OSError, match="not supported"):
            _write(tmp_path / "a", b"new")
        assert os.listdir(tmp_path) == []
        return
    _write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def _no_links(*_arguments, **_more):
    raise OSError(95, "not supported")


def test_what_is_no_file(tmp_path):
    """A folder, a FIFO or a device is not replaced, and not waited for."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name in ("folder", "fifo"):
        with pytest.raises(FileExistsError):
            Target(str(tmp_path / name), force=True)
    with pytest.raises(FileExistsError):
        Target("/dev/null", force=True)


def test_no_such_folder(tmp_path):
    """A folder that is not there is not made."""
    with pytest.raises(FileNotFoundError):
        Target(str(tmp_path / "none" / "a"), force=False)


@pytest.mark.parametrize("force", [False, True])
def test_a_link_that_is_there(tmp_path, force):
    """A link is replaced by the file, and what it leads to is kept."""
    (tmp_path / "real").write_bytes(b"mine")
    (tmp_path / "a").symlink_to("real")
    if not force:
        with pytest.raises(FileExistsError):
            _write(tmp_path / "a")
        return
    _write(tmp_path / "a", b"new", force=True)
    assert not (tmp_path / "a").is_symlink()
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "real").read_bytes()) == (b"new", b"mine")
    assert sorted(os.listdir(tmp_path)) == ["a", "real"]


@pytest.mark.parametrize("place", ["link", "replace"])
def test_interrupted_while_it_gets_its_name(tmp_path, monkeypatch, place):
    """Ctrl-C then leaves the old file, and nothing else."""
    (tmp_path / "a").write_bytes(b"mine")

    def interrupted(*_arguments, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        _write(tmp_path / "a", b"new", force=True)
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["a"]


def test_nothing_is_to_be_seen_before_the_end(tmp_path, kind):
    """Where the file system can, there is no file until it is whole."""
    with Target(str(tmp_path / "a"), force=False) as made:
        made.write(b"half")
        assert len(os.listdir(tmp_path)) == (kind != "nameless")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_by_a_signal(tmp_path, kind, number):
    """A process that is ended while it writes leaves nothing; only a kill leaves a hidden file, where one is needed."""
    script = f"""
import os, sys, time
from profwin.evidence import target
if {kind!r} == "hidden":
    del os.O_TMPFILE
elif {kind!r} == "no-proc":
    target._OWN_FILES = "/nowhere"
with target.Target({str(tmp_path / "a")!r}, force=False) as made:
    made.write(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert errors == b""
    nameless = kind == "nameless" or number == signal.SIGKILL
    assert process.returncode == (-number if nameless else 128 + number)
    assert len(os.listdir(tmp_path)) == (kind != "nameless" and number == signal.SIGKILL)


def test_the_handler_of_others_is_kept(tmp_path):
    """Whoever handles the signal already goes on doing so, during and after; by default nothing handles it after."""
    _write(tmp_path / "a")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    mine = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        before = signal.getsignal(signal.SIGTERM)
        with Target(str(tmp_path / "b"), force=False):
            assert signal.getsignal(signal.SIGTERM) is before
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGTERM, mine)
