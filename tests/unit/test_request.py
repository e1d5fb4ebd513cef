"""The request to release as it is written and read: what is refused, ignored and cut."""

from __future__ import annotations

import gc
import os
import stat
from select import PIPE_BUF
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profwin.registry.holder import Holder, decode, leased_record
from profwin.registry.lock import Busy, Registry
from profwin.registry.process import identity
from profwin.registry.request import FLOOD, Ask, Inbox, decode_ask, encode_ask, fresh_lease, place

WHAT = ("run", "rollout", "window", 3)
LEASE = "0123456789abcdef"

words = st.text(st.characters(codec="utf-8"), max_size=100)
asks = st.builds(
    Ask,
    lease=st.text("0123456789abcdef", min_size=16, max_size=16),
    run=words,
    pid=st.integers(1, 2**31),
    start=st.integers(0, 2**62),
    purpose=st.sampled_from(["rollout", "training"]),
    name=words,
    step=st.none() | st.integers(-(10**17), 10**17),
)


@pytest.fixture
def registry(locks):
    """Give the registry of the test's own directory."""
    return Registry(locks)


@pytest.fixture
def inbox(registry):
    """Give the inbox of a device named ``card``, not yet open."""
    inbox = Inbox(SimpleNamespace(key="card", path=registry.path("card")), WHAT)
    yield inbox
    inbox.close()


def ask_for(registry, lease=LEASE, *, run="run", uid=None, name="stage", step=4, asker="run"):
    """Send a request to a holder with such a record."""
    own = identity()
    uid = os.geteuid() if uid is None else uid
    holder = Holder(own.pid, own.start, own.boot, own.namespace, uid, run, "rollout", "window", 3, lease=lease)
    return registry.ask(Busy("card", holder, "busy"), run=asker, purpose="training", name=name, step=step)


def own_place(inbox):
    """Name the FIFO of the inbox."""
    return os.fsdecode(place(inbox._file.path))


@given(asks)
def test_requests_come_back(ask):
    """A decoded request is the one that was encoded, and is one line that a FIFO takes whole."""
    line = encode_ask(ask)
    assert len(line) <= PIPE_BUF
    assert line.count(b"\n") == 2
    assert decode_ask(line.strip(b"\n")) == ask
    assert ask.describe().isprintable()


@given(st.binary(max_size=300))
def test_foreign_bytes_never_raise(data):
    """Any bytes decode to no request."""
    assert decode_ask(data) is None


@pytest.mark.parametrize("line", [b"[" * 3000, b'{"lease":1}', b'{"lease":"short","run":"","pid":1}', b"\xff"])
def test_hostile_lines_are_no_requests(line):
    """Deep nesting, wrong types, missing fields and broken text are ignored."""
    assert decode_ask(line) is None


def test_a_request_says_who_asks(registry, inbox):
    """What is read names process, window or stage, step and run of the one who asked."""
    assert inbox.open()
    assert ask_for(registry)
    own = identity()
    assert inbox.read() == [Ask(LEASE, "run", own.pid, own.start, "training", "stage", 4)]
    assert inbox.read() == []


def test_long_and_odd_names_are_cut_to_fit(registry, inbox):
    """Runs and names of any length and content, and steps of any size, make a request all the same."""
    run = "r" * 500 + "\ud800"
    assert inbox.open()
    cut = decode(leased_record(run, "rollout", "n", 1, LEASE)).run
    assert ask_for(registry, run=cut, asker=run, name="\n\ud800é" * 900, step=10**30)
    (ask,) = inbox.read()
    assert ask.run == cut
    assert ask.name.startswith("\n?é\n")
    assert ask.step is None


def test_the_record_has_the_lease(registry):
    """A lease in the record comes back, and one without is none."""
    assert decode(leased_record(*WHAT, LEASE)).lease == LEASE
    held = registry.take(["card"], kind="rollout")
    assert registry.survey()[0].holder.lease == ""
    held.release()
    assert fresh_lease() != fresh_lease()


def test_the_fifo_is_this_users_alone(inbox):
    """The FIFO is made with mode 0600, beside the lock file, and used again by the next inbox."""
    old = os.umask(0)
    try:
        assert inbox.open()
    finally:
        os.umask(old)
    status = os.stat(own_place(inbox))
    assert stat.S_ISFIFO(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    inbox.close()
    assert inbox.open()
    assert os.stat(own_place(inbox)).st_ino == status.st_ino


def _regular(path):
    with open(path, "w"):
        os.chmod(path, 0o600)


def _link(path):
    os.mkfifo(path + "-elsewhere", 0o600)
    os.symlink(path + "-elsewhere", path)


def _foreign(path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.mkfifo(path, 0o600)
    os.chown(path, 12345, 12345)


def _writable(path):
    os.mkfifo(path)
    os.chmod(path, 0o622)


@pytest.mark.parametrize("plant", [_regular, _link, _foreign, _writable, os.mkdir])
def test_planted_files_are_not_used(registry, inbox, plant):
    """Where something else than this user's own private FIFO is in its place, it is not listened to, nor left open."""
    plant(own_place(inbox))
    assert not inbox.open()
    assert not inbox.numbers
    assert not ask_for(registry)


@pytest.mark.parametrize("plant", [_link, _foreign, _regular])
def test_nothing_is_written_to_planted_files(registry, inbox, plant):
    """Who asks writes to this user's own FIFO only, also where a planted one has a reader."""
    path = own_place(inbox)
    plant(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert not ask_for(registry)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_who_cannot_be_asked_is_not(registry, inbox):
    """Without a lease, of another user or run, without a run, or without a record, nobody is asked."""
    assert inbox.open()
    assert not ask_for(registry, lease="")
    assert not ask_for(registry, lease="x" * 400)
    assert not ask_for(registry, uid=os.geteuid() + 1)
    assert not ask_for(registry, asker="another")
    assert not ask_for(registry, run="", asker="")
    assert not registry.ask(Busy("card", None, "unknown"), run="run", purpose="training", name="n", step=1)
    assert not registry.ask(Busy("", None, "unknown"), run="run", purpose="training", name="n", step=1)
    assert inbox.read() == []


def test_nobody_listens(registry, inbox):
    """A missing FIFO, and one that nobody reads, refuse at once, and nothing stays open."""
    assert not ask_for(registry)
    assert inbox.open()
    inbox.close()
    before = os.listdir("/proc/self/fd")
    assert not ask_for(registry)
    assert os.listdir("/proc/self/fd") == before


def test_a_full_fifo_refuses_at_once(registry, inbox):
    """Where the holder does not read, requests are refused once its FIFO is full; nobody waits."""
    assert inbox.open()
    sent = 0
    while ask_for(registry):
        sent += 1
        assert sent < 10_000
    assert sent > 100
    read = 0
    while asks := inbox.read():
        read += len(asks)
    assert read == sent


def test_garbage_is_ignored(registry, inbox):
    """Between binary data, empty and unfinished lines, every request is still found."""
    assert inbox.open()
    for garbage in (b"\0\xff" * 50, b"\n\n\n", b'{"lease":"', b'{"lease":"' + b"x" * 3000 + b"\n", b"[]\n"):
        os.write(inbox.numbers[0], garbage)
        assert ask_for(registry)
        found = inbox.read() + inbox.read()
        assert [ask.lease for ask in found] == [LEASE]


def test_a_flood_takes_neither_memory_nor_time(registry, inbox):
    """One reading takes one page, of a line without end nothing is kept, and after much of it the inbox gives up."""
    assert inbox.open()
    total = 0
    while not inbox.flooded:
        total += os.write(inbox.numbers[0], b"x" * 2 * PIPE_BUF)
        for _ in range(2):
            assert inbox.read() == []
            assert len(inbox._rest) <= PIPE_BUF
        assert total <= FLOOD + 4 * PIPE_BUF
    assert total > FLOOD / 2


def test_asking_does_not_die_of_a_holder_that_leaves(registry, inbox, monkeypatch):
    """A holder that stops listening between opening and writing is no error: there is a reader still."""
    assert inbox.open()
    write = os.write

    def leave_first(number, data):
        inbox.close()
        return write(number, data)

    monkeypatch.setattr(os, "write", leave_first)
    assert ask_for(registry)


def test_inboxes_need_devices(registry):
    """A hold gives an inbox for each device, and none once it is released; release calls what was given first."""
    held = registry.take(["a", "b"], kind="rollout", run="run", name="n", step=1)
    calls = []
    inboxes = held.inboxes(lambda: calls.append(held.keys))
    assert [inbox.key for inbox in inboxes] == ["a", "b"]
    assert all(inbox.announce(LEASE) for inbox in inboxes)
    assert [state.holder.lease for state in registry.survey()] == [LEASE, LEASE]
    held.release()
    assert calls == [("a", "b")]
    held.release()
    assert calls == [("a", "b")]
    assert not any(inbox.announce(LEASE) for inbox in inboxes)
    assert held.inboxes(print) == []


def test_a_dropped_hold_stops_listening_first(registry):
    """What is called before a release is called too where the hold is dropped."""
    calls = []
    registry.take(["a"], kind="rollout").inboxes(lambda: calls.append(1))
    gc.collect()
    assert calls == [1]
    assert registry.take(["a"], kind="rollout") is not None
