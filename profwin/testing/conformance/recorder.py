"""Recordings of one backend without windows and stages around them, for :mod:`profwin.testing.conformance`."""

from __future__ import annotations

import gzip
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from profwin.backends import Recording, Request
    from profwin.testing.conformance.suite import Suite

__all__ = ["Recorder", "Take", "judge_files", "require"]


def require(condition: object, sentence: str) -> None:
    """Raise AssertionError with the sentence, unless the condition holds."""
    __tracebackhide__ = True
    if not condition:
        raise AssertionError(sentence)


def judge_files(folder: str, paths: list[str]) -> None:
    """Assert that paths are of finished files or folders below a folder, in which nothing else lies."""
    __tracebackhide__ = True
    for path in paths:
        require(os.path.isabs(path), f"export() returned {path!r}, not an absolute path")
        require(os.path.exists(path), f"export() returned {path}, which is not there")
        require(_below(path, folder), f"export() returned {path}, which is not below {folder}")
        require(os.path.isdir(path) or os.path.getsize(path), f"export() returned {path}, which is empty")
    written = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    left = [each for each in written if not any(_below(each, path) for path in paths)]
    require(not left, f"files were left that no export() named: {', '.join(left)}")


def _below(path: str, other: str) -> bool:
    path, other = os.path.realpath(path), os.path.realpath(other)
    return path == other or path.startswith(other + os.sep)


class Recorder:
    """Opens recordings as a collection does.

    Args:
        suite: whose backend it is.
        directory: below which each recording gets its own.

    Attributes:
        backend: the instance.
    """

    def __init__(self, suite: Suite, directory: str) -> None:
        from profwin.backends import load
        from profwin.settings import Settings

        self.suite, self._directory = suite, os.path.join(directory, "recordings")
        self.backend = load(suite.backend)(Settings({"steps": "all", **suite.settings}, {}))
        self._number = 0

    def take(self, name: str, spoil: Callable[[], None] | None = None) -> Take:
        """Return a new recording, not entered, whose directory does not exist.

        Args:
            name: of the window that it is said to be of.
            spoil: called whenever the backend asks for its path or its metadata.
        """
        from profwin.backends import Request

        self._number += 1
        number = self._number
        metadata = {
            "schema": 1, "run": "conformance", "attempt": 0, "purpose": "rollout", "step": number, "name": name,
            "occurrence": 1, "segment": 1, "devices": ["pretend-0"], "role": "rollout", "rank": None,
            "weight_version": None, "collection": number,
        }  # fmt: skip
        folder = os.path.join(self._directory, f"step_{number:06d}", name)
        stem = os.path.join(folder, f"norank_{name}_p{os.getpid()}_n1_a0")

        def asked(answer: Any) -> Any:
            if spoil is not None:
                spoil()
            return answer

        return Take(self, name, folder, Request(lambda: asked(stem), lambda: asked(metadata)))

    def record(self, name: str) -> list[str]:
        """Make a whole recording, and return its files, judged."""
        __tracebackhide__ = True
        foreign = self.backend.foreign()
        require(foreign is None, f"foreign() says, where nothing records: {foreign!r}")
        take = self.take(name)
        take.enter()
        try:
            self.suite.work()
        finally:
            take.leave()
        return take.export()


class Take:
    """One recording, from its entry to its export.

    Args:
        recorder: whose backend makes it.
        name: of the window that it is said to be of.
        folder: where its files go.
        request: what the backend is given.

    Attributes:
        recording: what the entry returned.
    """

    def __init__(self, recorder: Recorder, name: str, folder: str, request: Request) -> None:
        self._recorder, self._name, self.folder, self._request = recorder, name, folder, request
        self._manager: AbstractContextManager[Recording] | None = None
        self.recording: Any = None

    def enter(self) -> None:
        """Begin to record."""
        manager = self._recorder.backend.open(self._request)
        self.recording = manager.__enter__()
        self._manager = manager  # only now: what failed to be entered is not left

    def leave(self) -> None:
        """Stop."""
        manager, self._manager = self._manager, None
        if manager is not None:
            manager.__exit__(None, None, None)

    def export(self) -> list[str]:
        """Export; return the files, judged."""
        __tracebackhide__ = True
        paths = self.recording.export()
        require(isinstance(paths, list), f"export() returned {paths!r}, not a list of paths")
        lost = self._recorder.suite.writes and not paths
        require(not lost, f"export() of {self._name!r} returned no file, and raised nothing")
        judge_files(self.folder, paths)
        for path in paths:
            if os.path.isfile(path) and path.endswith((".json", ".json.gz")):
                self._judge_metadata(path)
        return list(paths)

    def export_or_lose(self) -> str | None:
        """Export what may be lost: return None where it is whole, else what said that it is lost, and left nothing."""
        __tracebackhide__ = True
        try:
            self.export()
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001  # in whatever form it says so
            judge_files(self.folder, [])
            return f"{type(error).__name__}: {error}"
        return None

    def _judge_metadata(self, path: str) -> None:
        __tracebackhide__ = True
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
            content = json.load(file)
        said = content.get("profwin") if isinstance(content, dict) else None
        expected = self._request.metadata
        require(said == expected, f"{path} does not have the metadata {expected} under the key 'profwin', but {said!r}")
