"""The one thread in which a process hears requests to release, and looks at the time.

It sleeps in ``epoll`` until somebody asks, a timer is due, or it is told to end; it never polls. What is to be done
then is done in short-lived threads of their own: an engine's stop may take 19 seconds (measured on a vLLM server) and
must not keep other requests waiting.
"""

from __future__ import annotations

import os
from collections import deque
from select import EPOLLIN, epoll
from threading import RLock, Thread, current_thread

from profwin.registry.holder import shortened
from profwin.registry.request import Offer, fresh_lease
from profwin.timers import Timer, Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from profwin.registry.held import Held
    from profwin.registry.request import Ask, Inbox

__all__ = ["Listener", "Offer", "Timer", "forget"]

_WARNING, _ERROR = 30, 40
_LONGEST = 86400.0  # seconds of one sleep; epoll has a limit of some weeks
_PATIENCE = 5.0  # seconds for the thread to end; it takes microseconds, unless what waits for it holds what it needs

# Every listener with anything open, so that a forked child can let go of it.
_ALL: set[Listener] = set()


class _Watch:
    """What one thread sleeps on: the descriptors to hear from, and a bell that wakes it for anything else."""

    __slots__ = ("bell", "epoll")

    def __init__(self) -> None:
        self.epoll, self.bell = epoll(), deque[int]()
        self.bell.extend(map(os.eventfd, (0,), (os.EFD_CLOEXEC | os.EFD_NONBLOCK,)))
        self.epoll.register(self.bell[0], EPOLLIN)

    def ring(self) -> None:
        for number in self.bell:
            os.eventfd_write(number, 1)

    def close(self) -> None:
        self.epoll.close()
        while self.bell:
            os.close(self.bell.popleft())


class Listener:
    """Hears requests and keeps time for one process. Safe to use from any thread; starts its thread when first needed.

    A forked child has the same object, empty: no thread, no offers, no timers, and the parent's are untouched.
    If the thread dies all the same, whoever asks is refused at once, and the next offer or timer starts another, which
    serves also the offers that are still open, each with a new lease.
    """

    def __init__(self) -> None:
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        # What happens under it takes microseconds: no other lock is taken, nothing imported, no thread started there,
        # for a hold that the garbage collector drops withdraws its offer, and that may happen anywhere.
        self._mutex = RLock()
        self._watch: _Watch | None = None
        self._thread: Thread | None = None
        self._offers: dict[Offer, None] = {}
        self._inboxes: dict[int, tuple[Offer, Inbox]] = {}
        self._timers = Timers()

    def offer(self, held: Held, *, run: str, on_ask: Callable[[Ask], None]) -> Offer:
        """Let others of the same run and user ask for devices that are held; an earlier offer of them ends.

        Args:
            held: the devices. Devices by which it is extended later cannot be asked for.
            run: id of the run; requests of another are ignored.
            on_ask: called once, with the first request, in a thread of its own named ``profwin-release``. It may take
                its time, may withdraw and release, and may begin just after a withdrawal. What it raises is logged.

        Returns:
            The offer; its ``devices`` are empty where nobody can ask: the FIFOs or the thread cannot be had, nothing is
            held, or this is closed. That is never an error.
        """
        self._here()
        offer = Offer(self.withdraw, shortened(run), on_ask)
        if not self._closed:
            offer.inboxes = held.inboxes(offer.withdraw)
            with self._mutex:
                self._offers[offer] = None
            self._serve(offer)
        return offer

    def at(self, deadline: float, action: Callable[[], None]) -> Timer:
        """Call ``action`` at ``deadline``, in seconds of ``clock.now()``; at once if that is past.

        It is called in a thread of its own named ``profwin-release``, and not at all where this is closed. What it
        raises is logged.
        """
        self._here()
        timer, early = self._timers.add(deadline, action)
        if self._closed:
            timer.cancel()
        self._serve()
        if early:
            self._ring()
        return timer

    def look(self) -> None:
        """Look at the clock now, for one that may jump: the actions that are due have begun when this returns."""
        self._here()
        self._act()
        self._ring()

    def withdraw(self, offer: Offer) -> None:
        """End an offer: see :meth:`Offer.withdraw`."""
        self._here()
        with self._mutex:
            self._offers.pop(offer, None)
            for inbox in offer.inboxes:
                self._shut(inbox)
            offer.inboxes = []

    def close(self) -> None:
        """End all offers and timers and the thread, and wait for that; not for actions that have begun. Idempotent."""
        self._here()
        with self._mutex:
            self._closed = True
            for offer in list(self._offers):
                self.withdraw(offer)
            self._timers.clear()
            thread, watch, self._watch = self._thread, self._watch, None
            if watch is not None:
                watch.ring()  # with the change above it, or the thread would hear the one and not see the other
        _ALL.discard(self)
        if thread is not None and thread is not current_thread() and thread.is_alive():
            thread.join(_PATIENCE)

    def _ring(self) -> None:
        with self._mutex:
            if self._watch is not None:
                self._watch.ring()

    def _here(self) -> None:
        if self._pid != os.getpid():
            self._leave()

    def _leave(self) -> None:
        """Become empty in a forked child, where the parent's lock may be held by a thread that does not exist here.

        Its registrations are shared with the parent, so nothing is taken back: closing these descriptors leaves those
        of the parent alone.
        """
        watch, offers = self._watch, list(self._offers)
        _ALL.discard(self)
        self._begin()
        for offer in offers:
            for inbox in offer.inboxes:
                inbox.close()
            offer.inboxes = []
        if watch is not None:
            watch.close()

    def _serve(self, new: Offer | None = None) -> None:
        """See to it that there is a thread, and that it hears for every offer, also a ``new`` one."""
        starting = None
        with self._mutex:
            if self._closed:
                return
            _ALL.add(self)
            watch = self._watch
            if watch is None:
                try:
                    watch = self._watch = _Watch()
                except OSError:
                    return  # no descriptor left: nobody can ask before the next try
                self._thread = starting = Thread(target=self._run, args=(watch,), name="profwin-listener", daemon=True)
            # A new one may have been opened by another thread, which need not be so far as to say so.
            opened = [offer for offer in list(self._offers) if self._open(offer, watch) or offer is new]
        if starting is not None:
            try:
                starting.start()
            except RuntimeError as error:
                self._end(watch)
                _log(_WARNING, f"nobody can ask this process for its devices now: {error}")
                return
        for offer in opened:
            # Not under the mutex: this takes the lock file's own.
            if not offer.announce():
                offer.withdraw()

    def _open(self, offer: Offer, watch: _Watch) -> bool:
        if offer.served or offer.devices:
            return False
        offer.lease = fresh_lease()
        offer.inboxes = [inbox for inbox in offer.inboxes if self._hear_from(offer, inbox, watch)]
        if not offer.inboxes:
            self._offers.pop(offer, None)
        return bool(offer.inboxes)

    def _hear_from(self, offer: Offer, inbox: Inbox, watch: _Watch) -> bool:
        if inbox.flooded or not inbox.open():
            return False
        try:
            number = inbox.numbers[0]
            watch.epoll.register(number, EPOLLIN)
        except (OSError, IndexError):  # a signal handler released the devices meanwhile
            inbox.close()
            return False
        self._inboxes[number] = offer, inbox
        return True

    def _shut(self, inbox: Inbox) -> None:
        for number in list(inbox.numbers):
            known = self._inboxes.pop(number, None)
            if known is not None and self._watch is not None:
                # Closing is not enough: a child that has not reached its exec yet would keep it registered.
                self._watch.epoll.unregister(number)
        inbox.close()

    def _run(self, watch: _Watch) -> None:
        try:
            while self._watch is watch:
                for number, _ in watch.epoll.poll(self._timers.sleep(_LONGEST)):
                    self._hear(number, watch)
                self._act()
        except BaseException as error:  # noqa: BLE001  # whatever it is, its descriptors must be closed
            level = _ERROR if isinstance(error, Exception) else _WARNING
            _log(level, "the thread that hears requests to release has ended; the next window starts another", error)
        finally:
            self._end(watch)

    def _hear(self, number: int, watch: _Watch) -> None:
        with self._mutex:
            if number in watch.bell:
                os.eventfd_read(number)
            known = self._inboxes.get(number)
            if known is None:
                return  # closed since
            offer, inbox = known
            asks = [ask for ask in inbox.read() if ask.lease == offer.lease and ask.run == offer.run]
            if inbox.flooded:
                self._shut(inbox)
            serve = bool(asks) and not offer.served
            offer.served = offer.served or serve
        if serve:
            _do(offer.on_ask, asks[0])
        if inbox.flooded:
            _log(_WARNING, f"{inbox.key} cannot be asked for any more: somebody floods its FIFO")

    def _act(self) -> None:
        for timer in self._timers.due():
            _do(timer.action)

    def _end(self, watch: _Watch) -> None:
        with self._mutex:
            if self._watch is watch:  # nobody told it to end
                for _, inbox in list(self._inboxes.values()):
                    self._shut(inbox)
                self._watch = None
            watch.close()


def _do(action: Callable[..., None], *arguments: Any) -> None:
    def act() -> None:
        try:
            action(*arguments)
        except BaseException as error:  # noqa: BLE001  # it is said, and there is nobody here to raise it to
            _log(_ERROR, f"profwin failed to end a collection: {error!r}", error)

    try:
        Thread(target=act, name="profwin-release", daemon=True).start()
    except RuntimeError as error:
        _log(_WARNING, f"a collection goes on that was to end: {error}")


def _log(level: int, message: str, error: BaseException | None = None) -> None:
    import logging

    logging.getLogger("profwin").log(level, "profwin: %s", message, exc_info=error)


def forget() -> None:
    """Let go of everything in a forked child, without disturbing the parent. May be called again."""
    for listener in list(_ALL):
        listener._here()


os.register_at_fork(after_in_child=forget)
