"""Taking devices: one try after the other until all are held or somebody says no."""

from __future__ import annotations

import time

from profwin.errors import StateError
from profwin.registry.file import hangs_up, held_here
from profwin.registry.held import Busy, hold_all, lock_all
from profwin.registry.process import gone, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from profwin.registry.file import LockFile
    from profwin.registry.held import Further, Held, What
    from profwin.registry.holder import Holder
    from profwin.registry.process import ProcessIdentity

__all__ = ["Attempt"]

_SETTLE = 2e-3  # seconds that a device may be between two holders before nobody is known to hold it
_SHORT = 5e-5
_SPURIOUS_PAUSE = 3e-5
_SLEPT = 1e-4
_SPURIOUS = 3  # immediate wake-ups in a row that found the device held, before each costs a pause
_SPURIOUS_LIMIT = 64  # and before the FIFO is opened anew, which waits for the next holder's end of it
# Seconds between tries without a wake-up. Many waiters on one device miss wake-ups, since the next holder may be there
# before they look, so they look often; behind one holder that stays there is nothing to miss.
_LOOK, _LONGEST_LOOK, _CALMEST = 0.010, 0.200, 5


class Attempt:
    """Tries to take some devices, all or none. For one thread at a time; close it in a ``finally``.

    ::

        attempt = registry.attempt(keys, ...)
        try:
            while (result := attempt.step()) is None:
                attempt.wait(remaining)
        finally:
            attempt.close()

    Attributes:
        busy: the last answer that was not "held"; None before there is one.
    """

    __slots__ = (
        "_blocked",
        "_calm",
        "_closed",
        "_files",
        "_further",
        "_owner",
        "_spurious",
        "_started",
        "_unsettled",
        "_wait_for",
        "_watched",
        "_what",
        "busy",
    )

    def __init__(
        self,
        further: Further,
        files: list[LockFile],
        what: What,
        wait_for: Callable[[Holder | None], bool],
        owner: frozenset[ProcessIdentity],
    ) -> None:
        self._further, self._files, self._what = further, files, what
        self._wait_for, self._owner = wait_for, owner
        self._closed = self._watched = False
        self._spurious = self._calm = 0
        self._blocked: LockFile | None = None
        self._started = self._unsettled = 0.0
        self.busy: Busy | None = None

    def step(self) -> Held | Busy | None:
        """Try once.

        Returns:
            The devices; or the final refusal; or None where ``wait_for`` said that the holder is worth
            waiting for.

        Raises:
            RegistryError: a lock file cannot be used or trusted. Nothing is held then.
            StateError: the attempt is closed.
        """
        if self._closed:
            raise StateError("this attempt is closed", "begin a new one")
        try:
            while True:
                self._blocked = blocked = lock_all(self._files, self._owner)
                if blocked is None:
                    held = hold_all(self._files, self._what, self._further)
                    self._closed = True
                    return held
                if blocked.mark is None and not blocked.watching:
                    blocked.watch()
                    continue
                if self._settled():
                    return self._judge()
                if self.busy is not None:
                    return None
                time.sleep(_SHORT)
        except BaseException:
            self.close()
            raise

    def wait(self, seconds: float) -> None:
        """Sleep until the device may be free, at most ``seconds``. Ctrl-C ends it at once.

        For callers that must not block, :meth:`pause` and :meth:`woken` are the two halves of it.
        """
        limit, number = self.pause(seconds)
        if limit <= 0:
            return
        began = time.monotonic()
        if number is None:
            time.sleep(limit)
            hung_up = False
        else:
            hung_up = hangs_up(number, limit)
        extra = self.woken(hung_up, time.monotonic() - began)
        if extra > 0:
            time.sleep(min(seconds, extra))

    def pause(self, seconds: float) -> tuple[float, int | None]:
        """Say how to sleep before the next :meth:`step`, without sleeping.

        Args:
            seconds: the longest sleep wanted.

        Returns:
            How many seconds to sleep at most, 0 for not at all; and the descriptor whose hang-up ends that sleep
            early, None where only time tells. Watch it for nothing but that it hangs up (it is a FIFO's read end into
            which nobody writes). It is valid until the next :meth:`woken`, :meth:`step` or :meth:`close`: stop
            watching it before these.
        """
        blocked, now = self._blocked, time.monotonic()
        self._watched = False
        if blocked is None or seconds <= 0:
            return 0.0, None
        if self._unsettled and now - self._unsettled < _SETTLE:
            return min(seconds, _SHORT), None
        limit = min(seconds, _LOOK * 2**self._calm, _LONGEST_LOOK)
        if blocked.mark is not None:
            return limit, None  # an engine's death or confirmed stop closes no FIFO
        self._watched = True
        return limit, blocked.numbers[1] if len(blocked.numbers) > 1 else None

    def woken(self, hung_up: bool, slept: float) -> float:
        """Take note of how a sleep that :meth:`pause` told of has ended.

        Args:
            hung_up: the descriptor hung up; False where the time was over.
            slept: seconds that it lasted.

        Returns:
            Seconds to sleep once more before the next :meth:`step`, watching nothing: 0 but where the FIFO wakes
            again and again while the device stays held.
        """
        blocked = self._blocked
        if blocked is None or not self._watched:
            return 0.0
        if not hung_up or slept > _SLEPT:
            self._spurious = 0  # it slept: waiters who lose to another waiter must not be slowed down
            return 0.0
        self._spurious += 1
        if self._spurious > _SPURIOUS_LIMIT:
            self._spurious = 0
            blocked.close()
            return 0.0
        return _SPURIOUS_PAUSE if self._spurious > _SPURIOUS else 0.0

    def close(self) -> None:
        """Leave nothing open, unless the devices are held: then this does nothing. May be called again."""
        if not self._closed:
            self._closed = True
            for file in self._files:
                file.close()

    def _settled(self) -> bool:
        """Say whether the record can be believed, or has been between two holders for too long."""
        blocked, now = self._blocked, time.monotonic()
        self._started = self._started or now
        if blocked is None:
            return True
        holder = None if blocked.mark is not None else blocked.holder()
        if holder is not None and holder.held and self._credible(holder, blocked):
            self._unsettled = 0.0
        elif blocked.mark is None:
            holder = None
            self._unsettled = self._unsettled or now
            if now - self._unsettled < _SETTLE:
                return False
        before = self.busy.holder if self.busy is not None else None
        self._calm = min(self._calm + 1, _CALMEST) if holder == before else 0
        self.busy = Busy(
            blocked.key, holder, "unknown" if holder is None else "busy", now - self._started, blocked.mark
        )
        return True

    @staticmethod
    def _credible(holder: Holder, file: LockFile) -> bool:
        own = holder.identity == identity()
        return held_here(file.path) if own else not gone(holder.identity)

    def _judge(self) -> Busy | None:
        busy = self.busy
        if busy is None:
            return None
        holder = busy.holder
        if holder is not None and holder.identity == identity():
            busy.reason = "self"
        elif self._wait_for(holder):
            return None
        elif holder is not None and holder.kind == "training":
            busy.reason = "peer"
        self.close()
        return busy
