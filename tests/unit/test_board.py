"""The step board: whole states for every process, whatever becomes of the writers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from profwin.board import Board


def test_a_fresh_board_knows_no_step():
    """Before anybody writes, both sides have no step and are not selected."""
    board = Board(None)
    for side in ("rollout", "training"):
        assert tuple(board.read(side)) == (-1, False, -1, 0, 0)
    assert board.selected_word().value == 0
    assert board.version("rollout") == -1


def test_sides_are_separate(tmp_path):
    """What is written for one side does not touch the other, and a version counts for its own step."""
    board = Board(str(tmp_path / "b"))
    board.write("rollout", 5, True, version=3)
    board.write("training", 4, False, declarer=(7, 8))
    board.write("rollout", 5, False)
    assert tuple(board.read("rollout")) == (5, False, 3, 0, 0)
    assert tuple(board.read("training")) == (4, False, -1, 7, 8)
    assert board.version("rollout") == 3
    board.write("rollout", 6, True)
    assert board.version("rollout") == -1


def test_what_stands_there_is_not_written_again(tmp_path, monkeypatch):
    """Who says what the board says waits for nobody; whatever differs is written, also after a torn change."""
    board = Board(str(tmp_path / "b"))
    locked = []
    lock = board._lock
    monkeypatch.setattr(board, "_lock", lambda: locked.append(True) or lock())

    def writes(*arguments, **values):
        locked.clear()
        board.write(*arguments, **values)
        written = bool(locked)
        assert tuple(board.read(arguments[0]))[:2] == arguments[1:]
        return written

    assert writes("rollout", 5, True, version=3)
    assert not writes("rollout", 5, True, version=3)
    assert not writes("rollout", 5, True)
    for values in ({"version": 4}, {"declarer": (7, 8)}, {"declarer": (7, 9)}, {}):
        assert writes("rollout", 5, True, **values), values
    assert writes("rollout", 5, False)
    assert writes("rollout", 6, False)
    assert not writes("rollout", 6, False)
    assert writes("training", 6, False)
    board._words[8] += 1  # a writer that died in there
    assert writes("rollout", 6, False)


def test_another_process_sees_each_change(tmp_path):
    """A process that maps the same file reads what this one wrote, and this one what that wrote."""
    board = Board(str(tmp_path / "b"), attempt=2)
    board.write("training", 9, True, version=1)
    code = (
        "import sys; from profwin.board import Board\n"
        "board = Board(sys.argv[1], attempt=2)\n"
        "print(*board.read('training'))\n"
        "board.write('rollout', 10, True)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, board.path], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.split() == ["9", "True", "1", "0", "0"]
    assert board.read("rollout").step == 10


def test_the_selected_word_is_live_and_binary(tmp_path):
    """The word that decorated calls read follows the training side, and holds 0 or 1: compiled code guards on it."""
    board = Board(str(tmp_path / "b"))
    word = board.selected_word()
    board.write("training", 12, True)
    assert word.value == 1
    board.write("training", 13, False)
    assert word.value == 0


def test_a_second_writer_is_not_kept_out_by_the_mapping(tmp_path):
    """Making a board gives its lock back, although mmap keeps a duplicate of the descriptor that holds it."""
    first = Board(str(tmp_path / "b"))
    second = Board(str(tmp_path / "b"))
    first.write("rollout", 1, True)
    second.write("rollout", 2, True)
    assert first.read("rollout").step == 2


def test_a_writer_that_died_in_the_middle_is_seen_through(tmp_path):
    """An odd sequence number with nobody at work does not keep readers waiting, and the next writer mends it."""
    board = Board(str(tmp_path / "b"))
    board.write("rollout", 1, True)
    board._words[8] += 1
    assert board.read("rollout").step == 1
    board._words[8] |= 1
    board.write("rollout", 2, False)
    assert board.read("rollout").step == 2


def test_an_earlier_attempts_board_is_wiped(tmp_path):
    """A restarted run does not go on from the step at which the first attempt ended; a later process of it does."""
    path = str(tmp_path / "b")
    Board(path, attempt=0).write("training", 40, True)
    assert Board(path, attempt=0).read("training").step == 40
    assert Board(path, attempt=1).read("training").step == -1
    Board(path, attempt=1).write("training", 3, True)
    assert Board(path, attempt=1, fresh=True).read("training").step == -1


@pytest.mark.parametrize("planted", ["symlink", "hard link", "directory", "fifo"])
def test_a_planted_file_is_refused(tmp_path, planted):
    """A board that is not this user's own regular file is not mapped."""
    path, other = tmp_path / "b", tmp_path / "other"
    other.write_bytes(bytes(4096))
    if planted == "symlink":
        path.symlink_to(other)
    elif planted == "hard link":
        os.link(other, path)
    elif planted == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(OSError):  # noqa: PT011  # which one differs; that it is an OSError is what callers rely on
        Board(str(path))


def test_another_users_file_is_refused(tmp_path):
    """A board that another user made is not mapped, even where it could be written."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path = tmp_path / "b"
    path.write_bytes(bytes(4096))
    os.chown(path, 12345, 12345)
    with pytest.raises(PermissionError):
        Board(str(path))
