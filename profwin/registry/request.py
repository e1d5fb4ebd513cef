"""The request to release: one line, from a process that waits for a device to the one that holds it.

It goes through a FIFO beside the lock file, ``<device>.<user id>.ask``: each user has their own. The holder keeps both
ends open and writes a random *lease* into its record; a request names that lease, so that one which comes late,
from another run, or for an earlier holder means nothing. Who writes there is the same user and could as well send
signals; beyond that nothing in a request is trusted.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from select import PIPE_BUF

import msgspec

from profwin.registry.creation import close_all
from profwin.registry.holder import Holder, leased_record, printable, shortened
from profwin.registry.process import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.registry.file import LockFile
    from profwin.registry.held import What

__all__ = ["FLOOD", "Ask", "Inbox", "Offer", "decode_ask", "encode_ask", "fresh_lease", "place", "send"]

FLOOD = 1 << 20
"""Bytes after which an inbox takes no more: some thousand requests, where one for each process that waits is usual."""

_MODE = 0o600
_COMMON = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_AT_ONCE = PIPE_BUF  # bytes of one reading, so that a flood keeps nobody else waiting
_LEASE_SIZE = 16
_MOST_STEPS = 10**18  # as in a holder's record
_PURPOSES = {"rollout": "rollout window", "training": "training stage"}


class Ask(msgspec.Struct, frozen=True):
    """What somebody who waits for a device says to its holder. Not trusted: good for messages.

    Attributes:
        lease: of the holder that is asked.
        run: id of the run of the one who asks, as far as a record has room for it.
        pid, start: of the process that asks; see :class:`profwin.registry.process.ProcessIdentity`.
        purpose: what it wants the device for: ``"rollout"`` or ``"training"``.
        name: of its window or stage, cut like the run.
        step: its step, or None.
    """

    lease: str
    run: str
    pid: int
    start: int
    purpose: str
    name: str
    step: int | None

    def describe(self) -> str:
        """Name who asks, in words; safe to print, whoever wrote the request."""
        step = "" if self.step is None else f" of step {self.step}"
        return f"{_PURPOSES[self.purpose]} {self.name!r}{step}, pid {self.pid}, run {printable(self.run)}"


_ASK = msgspec.json.Decoder(Ask)


def fresh_lease() -> str:
    """Make a lease that nobody has had."""
    return os.urandom(_LEASE_SIZE // 2).hex()


def encode_ask(ask: Ask) -> bytes:
    """Encode a request, to be written in one piece.

    It begins with the end of a line, so that what somebody else left unfinished before it does no harm.
    """
    line = b"\n%b\n" % msgspec.json.encode(ask)
    return line if len(line) <= PIPE_BUF else b""  # no longer than what a FIFO takes whole or not at all


def decode_ask(line: bytes) -> Ask | None:
    """Decode a line; None where it is not a request. Never raises."""
    try:
        ask = _ASK.decode(line)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return ask if ask.purpose in _PURPOSES and len(ask.lease) == _LEASE_SIZE and ask.pid > 0 else None


def place(path: str) -> bytes:
    """Name this user's FIFO of the device whose lock file is at ``path``."""
    return b"%b.%d.ask" % (os.fsencode(path)[: -len(".lock")], os.geteuid())


def send(path: str, holder: Holder | None, *, run: str, purpose: str, name: str, step: int | None) -> bool:
    """Send a request to a holder: see :meth:`profwin.registry.lock.Registry.ask`.

    Args:
        path: of the device's lock file.
        holder: what its record says.
        run: id of the run of the one who asks.
        purpose: what it wants the device for.
        name: of its window or stage.
        step: its step.
    """
    if holder is None or len(holder.lease) != _LEASE_SIZE or holder.uid != os.geteuid():
        return False
    if not run or holder.run != shortened(run):
        return False
    numbers: deque[int] = deque()
    try:
        own = identity()
        if step is not None and not -_MOST_STEPS < step < _MOST_STEPS:
            step = None
        ask = Ask(holder.lease, holder.run, own.pid, own.start, purpose, shortened(name), step)
        line, target = encode_ask(ask), place(path)
        # Without a reader the first fails at once. The second sees to it that there is one still when the line is
        # written: else a process that has not left SIGPIPE ignored would die of a holder that just stopped listening.
        for flags in (os.O_WRONLY | _COMMON, os.O_RDONLY | _COMMON):
            numbers.extend(map(os.open, (target,), (flags,)))
            if not _ours(os.fstat(numbers[-1])):
                return False
        return bool(line) and os.write(numbers[0], line) == len(line)
    except (OSError, ValueError, msgspec.MsgspecError):
        return False
    finally:
        close_all(numbers)


def _ours(status: os.stat_result) -> bool:
    return stat.S_ISFIFO(status.st_mode) and status.st_uid == os.geteuid()


class Inbox:
    """The requests for one device that this process holds, as it reads them. Not safe for several threads at once.

    Attributes:
        key: the device.
        numbers: the FIFO's descriptor, while it is open.
        flooded: whether more came than sense could be in: it is then closed for good.
    """

    __slots__ = ("_file", "_left", "_rest", "_what", "flooded", "key", "numbers")

    def __init__(self, file: LockFile, what: What) -> None:
        self._file, self._what = file, what
        self.key = file.key
        self.numbers: deque[int] = deque()
        self.flooded = False
        self._left, self._rest = FLOOD, b""

    def open(self) -> bool:
        """Open the FIFO, made where it is missing.

        Returns:
            False where it cannot be had or trusted: it is no FIFO, another user's, a link, or of another mode than
            0600. Others then cannot ask for this device; that is no error.
        """
        path, flags = place(self._file.path), (os.O_RDWR | _COMMON,)
        try:
            try:
                self.numbers.extend(map(os.open, (path,), flags))
            except FileNotFoundError:
                try:
                    os.mkfifo(path, _MODE)
                except FileExistsError:
                    pass  # another process of this user just made it
                self.numbers.extend(map(os.open, (path,), flags))
            status = os.fstat(self.numbers[0])
            if _ours(status) and stat.S_IMODE(status.st_mode) == _MODE:
                return True
        except (OSError, IndexError):
            pass
        self.close()
        return False

    def announce(self, lease: str) -> bool:
        """Write the lease into the record, after :meth:`open`; False where the device is not held any more."""
        return self._file.rewrite(leased_record(*self._what, lease))

    def read(self) -> list[Ask]:
        """Return the requests that are there, without waiting; what is not one is left out.

        Takes one page at a time, and keeps of an unfinished line no more than the longest that can be one.
        """
        try:
            data = os.read(self.numbers[0], _AT_ONCE)
        except (OSError, IndexError):
            return []
        self._left -= len(data)
        self.flooded = self._left < 0
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest if len(rest) <= PIPE_BUF else b""
        return [ask for line in lines if line and (ask := decode_ask(line)) is not None]

    def close(self) -> None:
        """Stop taking requests: those who ask are refused at once. May be called again. Never raises."""
        close_all(self.numbers)
        self._rest = b""


class Offer:
    """That held devices may be asked for, until :meth:`withdraw` or their release.

    Made by :meth:`profwin.listener.Listener.offer`.

    Attributes:
        inboxes: one for each device; none once withdrawn.
        lease: the one that is valid now.
        on_ask: what the listener calls with the first request.
        run: whose requests count, as far as a record has room for it.
        served: whether there was a request.
    """

    __slots__ = ("_withdraw", "inboxes", "lease", "on_ask", "run", "served")

    def __init__(self, withdraw: Callable[[Offer], None], run: str, on_ask: Callable[[Ask], None]) -> None:
        self._withdraw, self.run, self.on_ask = withdraw, run, on_ask
        self.inboxes: list[Inbox] = []
        self.lease = ""
        self.served = False

    @property
    def devices(self) -> tuple[str, ...]:
        """The keys of the devices that can be asked for now; empty where none can, and in a forked child."""
        return tuple(inbox.key for inbox in self.inboxes if inbox.numbers)

    def announce(self) -> bool:
        """Write the lease into the record of each device; False where none is held any more."""
        return any([inbox.announce(self.lease) for inbox in self.inboxes])  # noqa: C419  # each, not up to the first

    def withdraw(self) -> None:
        """Stop listening: those who ask are refused at once. From any thread, any number of times. Never raises."""
        self._withdraw(self)
