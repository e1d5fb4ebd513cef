"""Requests to release under attack: garbage, floods, other users and what they plant."""

from __future__ import annotations

import os

import pytest
from lock_support import Other
from request_support import ask, busy, finish, holder, reachable_registry

FOREIGN_USER = 12345


@pytest.fixture
def registry():
    """Give a registry that every user can reach."""
    with reachable_registry() as registry:
        yield registry


def foreigner(registry):
    """Start a process of another user."""
    other = Other(registry.directory)
    # The interpreter may lie where that user cannot read: import first.
    other.ask("import codecs, urllib.parse, profwin.registry.request")
    other.ask("codecs.lookup('ascii')")
    other.ask(f"os.setgroups([]); os.setgid({FOREIGN_USER}); os.setuid({FOREIGN_USER})")
    return other


def test_a_hostile_writer_keeps_nobody_from_being_asked(registry):
    """Garbage before a request does not hide it, and a flood on one device does not keep another from its release."""
    with holder(registry) as other, Other(registry.directory) as hostile:
        other.ask("one, two = hold('one'), hold('two')")
        path = f"{registry.directory}/{{}}.{os.geteuid()}.ask"
        hostile.ask("one = os.open({!r}, os.O_WRONLY | os.O_NONBLOCK)".format(path.format("one")))
        hostile.ask("two = os.open({!r}, os.O_WRONLY)".format(path.format("two")))
        hostile.ask("os.write(one, bytes(range(256)) * 8)")
        hostile.ask("signal.signal(signal.SIGPIPE, signal.SIG_IGN)")
        hostile.send("[os.write(two, b'{}\\n' * 1300) for _ in range(10**6)]")
        attempt = busy(registry, "one")
        assert ask(registry, attempt, "through")
        finish(attempt)
        with pytest.raises(RuntimeError, match="BrokenPipeError"):
            hostile.hear()
        attempt = busy(registry, "two")
        assert not ask(registry, attempt)
        attempt.close()
        assert other.ask("asked") == "['through']"
        assert other.ask("two.keys") == "('two',)"


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@needs_root
def test_another_user_cannot_ask(registry):
    """Neither does another user's process reach a holder, nor is it reached, though both see the lease."""
    with holder(registry) as root:
        root.ask("held = hold('root')")
        with foreigner(registry) as user:
            look = "attempt = registry.attempt(['root'], kind='training', run='run'); attempt.step()"
            user.ask(look)
            assert user.ask("len(attempt.busy.holder.lease)") == "16"
            send = "registry.ask(attempt.busy, run='run', purpose='training', name='n', step=1)"
            assert user.ask(send) == "False"
            path = f"{registry.directory}/root.0.ask"
            with pytest.raises(RuntimeError, match="PermissionError"):
                user.ask(f"os.open({path!r}, os.O_WRONLY | os.O_NONBLOCK)")
        assert root.ask("asked") == "[]"
        with foreigner(registry) as user:
            user.ask("held = take('user')")
            user.ask("from profwin.registry.holder import leased_record")
            user.ask("inbox, = held.inboxes(lambda: None)")
            assert user.ask("(inbox.open(), inbox.announce('0123456789abcdef'))") == "(True, True)"
            attempt = busy(registry, "user")
            assert attempt.busy.holder.lease == "0123456789abcdef"
            assert not ask(registry, attempt, run="other")
            assert user.ask("inbox.read()") == "[]"
            attempt.close()


@needs_root
def test_another_users_fifo_is_not_used(registry):
    """Where another user planted the FIFO and reads it, a holder cannot be asked, and nothing reaches that user."""
    with holder(registry) as root, foreigner(registry) as user:
        path = f"{registry.directory}/card.0.ask"
        user.ask(f"os.mkfifo({path!r})")
        user.ask(f"os.chmod({path!r}, 0o666)")
        user.ask(f"reader = os.open({path!r}, os.O_RDONLY | os.O_NONBLOCK)")
        root.ask("held = hold('card')")
        attempt = busy(registry)
        assert attempt.busy.holder.lease == ""
        # A record forged by anybody who can open the lock file leads there as little.
        root.ask("from profwin.registry.holder import leased_record")
        root.ask("held._files[0].rewrite(leased_record('run', 'rollout', 'n', 1, '0123456789abcdef'))")
        assert attempt.step() is None
        assert attempt.busy.holder.lease
        assert not ask(registry, attempt)
        assert user.ask("os.read(reader, 100)") == "b''"
        root.ask("held.release()")
        finish(attempt)
