"""The file that a timeline is written to is there whole or not at all."""

from __future__ import annotations

import gzip
import os

import pytest

from profwin.evidence.target import Target


def _write(path, data=b"x" * 100_000, *, force=False):
    with Target(str(path), force=force) as target:
        target.write(data)
        target.finish()
    return target


def test_whole_file(tmp_path):
    """After `finish` the file is there under its name, with the usual mode, and nothing else."""
    target = _write(tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"x" * 100_000
    assert target.size == 100_000
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
        with Target(str(tmp_path / "a.gz"), force=False) as target:
            target.write(os.urandom(1_000_000))
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []


def test_without_finish(tmp_path):
    """What is not finished is not there."""
    with Target(str(tmp_path / "a"), force=False) as target:
        target.write(b"half")
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
def test_somebody_else_was_faster(tmp_path, monkeypatch, links):
    """A file that appears while this one is written is kept too."""
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    with Target(str(tmp_path / "a"), force=False) as target:
        (tmp_path / "a").write_bytes(b"theirs")
        with pytest.raises(FileExistsError):
            target.finish()
    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a"]


def test_file_system_without_links(tmp_path, monkeypatch):
    """Then it is renamed."""
    monkeypatch.setattr(os, "link", _no_links)
    _write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def _no_links(*_arguments):
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
