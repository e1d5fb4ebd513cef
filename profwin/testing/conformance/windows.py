"""Rules for a backend under windows and stages: locks, nesting, closing, and that nothing of it breaks the training."""

from __future__ import annotations

import threading

import pytest

import profwin
from profwin.configuration import current
from profwin.registry.survey import survey
from profwin.testing.conformance.evidence import judge, made
from profwin.testing.conformance.recorder import require
from profwin.testing.conformance.recordings import in_thread
from profwin.testing.conformance.spy import POINTS, Spy
from profwin.testing.conformance.suite import Suite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["WindowRules"]


class WindowRules(Suite):
    """What profwin does with a backend, and what it takes for granted there."""

    def test_windows_and_stages(self) -> None:
        """Each is recorded whole, with spans inside; the device is locked meanwhile if the backend is exclusive."""
        for step in (1, 2):
            with profwin.rollout_window(step), profwin.span("part"):
                self._look_at_lock()
                self.work()
            self._look_free()
            with profwin.training_step(step), profwin.training_stage("update"):
                self._look_at_lock()
                with profwin.span("part"):
                    self.work()
            self._look_free()
        self._expect_whole(4)

    def test_one_collection_a_step(self) -> None:
        """With ``collect="step"`` a step's stages are one recording."""
        self.host.configure(**{"backend": self.backend, "collect": "step", **self.settings})
        with profwin.training_step(1):
            for name in ("log_probs", "update"):
                with profwin.training_stage(name):
                    self.work()
        self._expect_whole(1)

    def test_a_window_in_a_window(self) -> None:
        """A window inside another one of its step joins it: there is one recording, as long as the outer one."""
        spy = self._spy()
        with profwin.rollout_window(1):
            with profwin.rollout_window(1, name="more"):
                self.work()
            require(not spy.threads("exit"), "the outer window's recording ended with the inner one")
            self.work()
        require(len(spy.threads("entry")) == len(spy.threads("exit")) == 1, f"there was not one recording: {spy.acts}")
        self._expect_whole(1)

    def test_a_stage_in_a_window(self) -> None:
        """A stage that begins inside a window ends that window's recording first; both are whole."""
        with profwin.rollout_window(1):
            self.work()
            with profwin.training_step(1), profwin.training_stage("update"):
                self.work()
        self._look_free()
        self._expect_whole(2)

    def test_a_body_that_fails(self) -> None:
        """The body's own exception passes, and what was recorded up to there is whole."""
        for error in (ValueError("the body's own"), KeyboardInterrupt()):
            try:
                with profwin.rollout_window(1):
                    self.work()
                    raise error
            except (ValueError, KeyboardInterrupt) as raised:
                require(raised is error, f"{error!r} became {raised!r}")
            else:
                raise AssertionError(f"{error!r} of the body was swallowed")
            self._look_free()
        self._expect_whole(2)

    @pytest.mark.parametrize("point", POINTS)
    def test_failure(self, point: str) -> None:
        """Whatever of it fails, the body runs to its end, the device is free, and later windows are recorded."""
        spy = self._spy()
        spy.faults[point] = RuntimeError(f"{point}: told to fail")
        ran = []
        with profwin.rollout_window(1), profwin.span("part"):
            self.work()
            ran.append(point)
        require(ran, "the body did not run")
        self._look_free()
        spy.faults.clear()
        before = len(made(self.host.output))
        with profwin.rollout_window(2), profwin.span("part"):
            self.work()
        self._look_free()
        self._expect_whole(1, since=before)

    def test_closed_twice(self) -> None:
        """However often, and from however many threads, a window is closed, it is left once and exported once."""
        spy = self._spy()
        window = profwin.rollout_window(1)
        window.open()
        self.work()
        threads = [threading.Thread(target=window.close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        window.close()
        with profwin.rollout_window(2):
            self.work()
        for point in ("exit", "export"):
            require(len(spy.threads(point)) == 2, f"of two windows, {point} came {len(spy.threads(point))} times")
        self._look_free()
        self._expect_whole(2)

    def test_closed_in_another_thread(self) -> None:
        """Closed in another thread than it was opened in, a window's recording is whole.

        One that is bound to a thread is left there, when that thread next comes by.
        """
        spy = self._spy()
        window = profwin.rollout_window(1)
        window.open()
        self.work()
        in_thread(window.close)
        with profwin.rollout_window(2):
            self.work()
        if spy.thread_bound:
            here = threading.get_ident()
            wrong = [thread for thread in (*spy.threads("exit"), *spy.threads("entry")) if thread != here]
            require(not wrong, "a recording that is bound to a thread was entered or left in another one")
        self._look_free()
        self._expect_whole(2)

    def _spy(self) -> Spy:
        session = current()
        require(session is not None, "profwin is not set up")
        backends: list[Any] = session.backends() if session is not None else []
        spy = Spy(backends[0])
        backends[0] = spy
        return spy

    def _look_at_lock(self) -> None:
        __tracebackhide__ = True
        held = self._held()
        if self.kind.exclusive:
            require(held, "it is exclusive, and no device is locked while it records")
        else:
            require(not held, "it is not exclusive, and a device is locked while it records")

    def _look_free(self) -> None:
        __tracebackhide__ = True
        require(not self._held(), "a device stayed locked")

    def _held(self) -> list[str]:
        return [each.key for each in survey(self.host.lock_dir) if each.state != "free"]

    def _expect_whole(self, count: int, *, since: int = 0) -> None:
        """Assert that so many collections were recorded, whole, and left the files that the journal names."""
        __tracebackhide__ = True
        found = made(self.host.output)[since:]
        said = f"{count} recordings were to be made, and there are {len(found)}:\n{self.host.record}"
        require(len(found) == count, said)
        judge(self.host.output, found, writes=self.writes)
