"""Rules for a backend's recordings: what its protocol promises, without windows and stages around it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from profwin.testing.conformance.recorder import judge_files, require
from profwin.testing.conformance.suite import Suite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["RecordingRules", "in_thread"]


def in_thread(work: Callable[[], object]) -> None:
    """Do some work in another thread, and raise here what it raised there."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001  # raised again below, in the test's own thread
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


class RecordingRules(Suite):
    """Entry, spans, exit and export, and each of them failing."""

    def test_recordings_leave_finished_files(self) -> None:
        """Each export returns its own files, complete, with the request's metadata where they are JSON, and no others.

        Three in a row, so that none lives on what an earlier one left behind.
        """
        recorder = self.recorder()
        found = [path for number in range(3) for path in recorder.record(f"window{number}")]
        require(len(set(found)) == len(found), f"two exports returned one path: {found}")

    def test_spans(self) -> None:
        """Spans nest, in any thread, let exceptions pass, and do not keep the recording from being whole."""
        recorder = self.recorder()
        take = recorder.take("spans")
        take.enter()
        try:
            take.recording.step()
            if recorder.backend.ranges:
                self._nest(take.recording)
                if not recorder.backend.thread_bound:
                    in_thread(lambda: self._nest(take.recording))
            take.recording.step()
        finally:
            take.leave()
        take.export()

    def _nest(self, recording: Any) -> None:
        with recording.span("outer"), recording.span("inner"):
            self.work()
        with pytest.raises(KeyError), recording.span("fails"):
            raise KeyError("of the body")

    def test_ranges_that_end_elsewhere(self) -> None:
        """Ranges that a recording offers for what is not scoped may end in another thread, and in any order."""
        recorder = self.recorder()
        take = recorder.take("ranges")
        take.enter()
        try:
            if hasattr(take.recording, "loose_span"):
                first, second = take.recording.loose_span("first"), take.recording.loose_span("second")
                first.__enter__()
                second.__enter__()
                self.work()
                in_thread(lambda: first.__exit__(None, None, None))
                second.__exit__(None, None, None)
            if hasattr(take.recording, "lasting_range"):
                self._end_elsewhere(take.recording)
        finally:
            take.leave()
        take.export()

    def _end_elsewhere(self, recording: Any) -> None:
        require(isinstance(recording.ranges_outlast_it, bool), "ranges_outlast_it is no bool")
        first = recording.lasting_range("first", "rollout", "rollout", loose=True)
        second = recording.lasting_range("second", "rollout", "rollout", loose=True)
        self.work()
        in_thread(first.end)
        first.end()
        second.end()
        for each in (first, second):
            require(isinstance(each.open, bool), "open of a range is no bool")

    def test_left_in_another_thread(self) -> None:
        """Unless it is bound to a thread, it may be left and exported in another one than it was entered in."""
        recorder = self.recorder()
        take = recorder.take("elsewhere")
        take.enter()
        self.work()
        if recorder.backend.thread_bound:
            take.leave()
            take.export()
            return
        in_thread(take.leave)
        in_thread(take.export)
        recorder.record("after")

    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    def test_a_request_that_fails(self, error: type[BaseException]) -> None:
        """Where its path or metadata cannot be had, also for Ctrl-C, nothing goes on recording and no file is left."""
        recorder = self.recorder()

        def spoil() -> None:
            raise error("told to fail")

        take = recorder.take("spoilt", spoil)
        try:
            take.enter()
            take.leave()
            take.recording.export()
        except BaseException as problem:  # noqa: BLE001  # Ctrl-C is one of them
            require(isinstance(problem, (Exception, error)), f"it became {problem!r}")
        finally:
            take.leave()
        judge_files(take.folder, [])
        recorder.record("after")

    def test_a_place_that_cannot_be_written(self) -> None:
        """Where its directory cannot be made, it raises, at the latest from the export; the next recording is whole."""
        recorder = self.recorder()
        take = recorder.take("blocked")
        Path(take.folder).parent.mkdir(parents=True)
        Path(take.folder).write_text("a file where the directory should be", encoding="utf-8")
        paths = None
        try:
            take.enter()
            take.leave()
            paths = take.recording.export()
        except Exception:  # noqa: BLE001  # at any of these points, and whatever it raises
            pass
        finally:
            take.leave()
        require(not paths, f"export() returned {paths!r}, where nothing can be written")
        require(paths is None or not self.writes, "export() returned no file, and raised nothing")
        require(Path(take.folder).is_file(), "it removed the file that was in its way")
        recorder.record("after")
