"""How a collection ends: in the thread that ends it or, where an engine's stop may take long, beside that thread."""

from __future__ import annotations

import threading
import time

from profwin import clock
from profwin.errors import EngineError
from profwin.waits import TURN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from profwin.collection import Collection
    from profwin.errors import ProfwinError
    from profwin.listener import Timer
    from profwin.owner import Owner

__all__ = ["Closing"]

_MOMENT = 1.0
"""Seconds that answers are waited for in the caller's thread, which costs less than a thread that waits for them."""
_BESIDE = 0
"""Stands for a thread that closes beside another one: the end of a process waits for these by a limit of its own."""


class Closing:
    """Closes collections of one process, each once, from whatever thread.

    Args:
        owner: whose collections they are.

    Attributes:
        at_work: the threads that stop or export something now; 0 for each that does so beside another one.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.at_work: list[int] = []

    def claim(self, collection: Collection) -> bool:
        """Take it on to close a collection; False where it is closing or closed already."""
        with self._owner.mutex:
            if collection.state != "open":
                return False
            collection.state, collection.thread = "closing", threading.get_ident()
            return True

    def here(self, collection: Collection, reason: str, *, claimed: bool = False) -> ProfwinError | None:
        """Stop a collection, release its devices, then write its traces; return the first failure.

        Where another thread does so already, wait for that.
        """
        here, mine = threading.get_ident(), claimed
        marks = [_BESIDE if collection.detached else here]
        failure: ProfwinError | None = None
        self.at_work += marks
        try:
            try:
                with self._owner.mutex:
                    if collection.state == "open":  # one statement, so that Ctrl-C finds it claimed and known, or not
                        collection.state, collection.thread, mine = "closing", here, True
                if mine:
                    failure = collection.stop(reason)
            finally:
                if mine:
                    try:
                        collection.stop(reason)  # Ctrl-C may have come before all was stopped
                    finally:
                        with self._owner.mutex:
                            self.at_work.append(here)  # the process's end waits for an export, by whomever
                            marks.append(here)
                            collection.state = "closed"
                            self._owner.collections.remove(collection)
                        self._owner.session.position.recording_changed()
            if mine:
                failure = collection.export() or failure
        finally:
            for mark in marks:
                self.at_work.remove(mark)
        while not mine and collection.state == "closing" and collection.thread != here:
            time.sleep(TURN)
        return failure

    def beside(self, collection: Collection, reason: str, *, raising: bool, patience: float | None) -> None:
        """Close a collection in a thread, and wait for it no longer than training may be kept waiting.

        Engines that take requests are asked here. Where all answer within a moment, the rest is done here, too.

        Args:
            collection: of an engine whose stop may be called from any thread.
            reason: as the journal has it.
            raising: whether a failure is raised under ``strict``.
            patience: seconds to wait; None for what is left of the wait budget. Nobody waits in the thread whose event
                loop the engine needs.
        """
        budget, engine, unwanted = self._owner.session.budget, collection.engine, patience == 0
        if engine is not None and engine.needs(threading.get_ident()):
            patience = 0.0
        elif patience is None:
            patience = budget.left(collection.keys, collection.step)
        until = time.monotonic() + patience
        mine = self.claim(collection)
        if mine:
            answered = False
            try:
                answered = patience > 0 and collection.answered(min(patience, _MOMENT))
            finally:  # also for Ctrl-C
                self._finish(collection, reason, apart=not answered)
        if not collection.closed.wait(max(0.0, until - time.monotonic())):
            budget.spend(collection.keys, collection.step, patience)
            if not unwanted:  # whoever began the stop: nobody may have waited for it then, as where it was cut
                self._late(collection, patience, raising=raising)
                if not collection.late:
                    self._later(collection, max(budget.whole(), _MOMENT))
        elif mine and collection.failure is not None:
            self._owner.session.complain(collection.failure, raising=raising)

    def on_request(self, collection: Collection) -> None:
        """Close a claimed collection because another process asked for it, in a thread that nobody waits for."""
        if not collection.detached:
            self.finish(collection, "asked")
            return
        timer = self._later(collection, self._owner.session.budget.whole())
        try:
            self.finish(collection, "asked")
        finally:
            timer.cancel()

    def _finish(self, collection: Collection, reason: str, *, apart: bool) -> None:
        if apart:
            thread = threading.Thread(target=self.finish, args=(collection, reason), name="profwin-stop", daemon=True)
            try:
                thread.start()
                return
            except RuntimeError:  # too many threads, or (from Python 3.12) the interpreter is ending
                pass
        self.finish(collection, reason)

    def finish(self, collection: Collection, reason: str) -> None:
        """Close a claimed collection and say what fails, since perhaps nobody waits for it any more."""
        try:
            collection.failure = self.here(collection, reason, claimed=True)
            if collection.failure is not None:
                self._owner.session.complain(collection.failure, raising=False)
        finally:
            collection.closed.set()

    def _later(self, collection: Collection, patience: float) -> Timer:
        """See to it that a stop which nobody waits for is said to be late, once it is."""
        listener = self._owner.session.listener()
        return listener.at(clock.now() + patience, lambda: self._late(collection, patience, raising=False))

    def _late(self, collection: Collection, patience: float, *, raising: bool) -> None:
        """Say that a stop is late, once for each collection."""
        if collection.closed.is_set():
            return
        engine, session = collection.engine, self._owner.session
        if engine is not None and engine.needs(threading.get_ident()):
            problem = "its stop needs the event loop of this very thread, so nobody waits for it here"
        elif patience == 0:
            return  # the budget was used up before, perhaps by a wait for the device, so this one may be quick
        else:
            problem = f"its stop is not confirmed after {patience:.3g} s"
        with self._owner.mutex:
            said, collection.late = collection.late, True
        if said:
            return
        session.finding("late-stop", f"{collection.describe()}: {problem}; until it is, its devices are unknown")
        if raising and session.settings.strict:
            raise EngineError(collection.engine_name, "stop", problem)
